"""Orders the revisions of a session: one revision is scored at a time, because the last revision must reach the gate last.

Only the newest waiting revision of a segment is scored, because it contains everything that the others contain.
Therefore a hanging session that is reopened several times keeps one record waiting.
"""

from __future__ import annotations

from traceweir.streams.base.stages.base import Record
from traceweir.streams.pipeline.score.session_header import read_header


class RevisionQueue:
    """Holds the sessions in progress and their waiting revisions."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, dict[object, tuple[int, Record]]] = {}

    def busy(self, session: bytes | None) -> bool:
        """Returns whether a revision of this session is in progress."""
        return session in self._waiting

    def admit(self, record: Record) -> tuple[bool, Record | None]:
        """Admits a record.

        Returns:
            Whether the record can be scored now; and the record that a newer revision supersedes, or None. The
            superseded record can be the admitted record.
        """
        # Assemble writes no record without a key.
        if record.key is None:
            return True, None
        waiting = self._waiting.get(record.key)
        if waiting is None:
            self._waiting[record.key] = {}
            return True, None
        head = read_header(record.value)
        # Scoring will report the problem of the record.
        if head is None:
            waiting[record.offset] = 0, record
            return False, None
        # The time of the first record is part of the key, because a reused session id starts at segment 0 again.
        segment = head.segment, head.first_record_at
        before = waiting.get(segment)
        # A replay can send an earlier revision.
        if before is not None and before[0] > head.revision:
            return False, record
        waiting.pop(segment, None)
        waiting[segment] = head.revision, record
        return False, before and before[1]

    def release(self, record: Record) -> Record | None:
        """Releases a finished record, and returns the next waiting record of its session, if any."""
        if record.key is None:
            return None
        waiting = self._waiting[record.key]
        if not waiting:
            del self._waiting[record.key]
            return None
        _, following = waiting.pop(next(iter(waiting)))
        return following
