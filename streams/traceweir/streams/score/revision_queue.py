"""Turns: one revision of a session is scored at a time, as what the gate sees last has to be the last.

Of those of a segment that wait only the newest is worth its turn: it holds all that the others hold. So a session that hangs, and is
opened again and again meanwhile, keeps one record waiting and not one for each time.
"""

from __future__ import annotations

from traceweir.streams.score.session_header import read_header
from traceweir.streams.stages.base import Record


class RevisionQueue:
    """Which sessions are at work, and what waits for them."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, dict[object, tuple[int, Record]]] = {}

    def busy(self, session: bytes | None) -> bool:
        """Whether a revision of this session is at work."""
        return session in self._waiting

    def admit(self, record: Record) -> tuple[bool, Record | None]:
        """Tell whether this record's turn is now, and else which record, maybe this one, another one makes worthless."""
        if record.key is None:  # assemble writes none without
            return True, None
        waiting = self._waiting.get(record.key)
        if waiting is None:
            self._waiting[record.key] = {}
            return True, None
        head = read_header(record.value)
        if head is None:  # its turn will say what is wrong with it
            waiting[record.offset] = 0, record
            return False, None
        # Of one moment, for an id that is used again begins at segment 0 again, and holds nothing of what was before.
        segment = head.segment, head.first_record_at
        before = waiting.get(segment)
        if before is not None and before[0] > head.revision:  # as a replay may bring it
            return False, record
        waiting.pop(segment, None)
        waiting[segment] = head.revision, record
        return False, before and before[1]

    def release(self, record: Record) -> Record | None:
        """A record is done: the one of its session whose turn is next, if any waits."""
        if record.key is None:
            return None
        waiting = self._waiting[record.key]
        if not waiting:
            del self._waiting[record.key]
            return None
        _, following = waiting.pop(next(iter(waiting)))
        return following
