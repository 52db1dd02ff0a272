"""Remembers the candidates of a session, so that its next revision or attempt sends only the changed candidates."""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from traceweir.streams.base.stages.base import Rows
from traceweir.streams.scoring.sessions.result import OfferedCandidate, ScoringResult

_KEY = b"t"
# Format 1, for attempt 0: format, last record, revision.
_HEAD = struct.Struct(">BqI")
# Format 2, for later attempts: the same fields, then the attempt.
_HEAD_2 = struct.Struct(">BqII")
_DIGEST = 16


class _Sent(NamedTuple):
    last_record_ms: int
    revision: int
    attempt: int
    digests: bytes
    """For each trace, the digest of its id and the digest of its content."""

    def pack(self) -> bytes:
        """Returns the row."""
        if self.attempt:
            return _HEAD_2.pack(2, self.last_record_ms, self.revision, self.attempt) + self.digests
        return _HEAD.pack(1, self.last_record_ms, self.revision) + self.digests

    @classmethod
    def unpack(cls, row: bytes) -> _Sent:
        """Returns the content of a row.

        Raises:
            ValueError: this version does not read the format of the row.
        """
        if row[0] == 1:
            _, last_record_ms, revision = _HEAD.unpack_from(row)
            return cls(last_record_ms, revision, 0, row[_HEAD.size :])
        if row[0] == 2:
            _, last_record_ms, revision, attempt = _HEAD_2.unpack_from(row)
            return cls(last_record_ms, revision, attempt, row[_HEAD_2.size :])
        raise ValueError(f"a row of sent candidates has the format {row[0]}; this version reads the formats 1 and 2")


class CandidateChanges:
    """Holds the sent candidates of the sessions that can get another revision.

    Args:
        revised_within_ms: Maximum record time between a session and the latest session at which the session can
            get another revision.
    """

    def __init__(self, revised_within_ms: int) -> None:
        self._revised_within_ms = revised_within_ms
        self._latest_ms = 0
        self._sent: OrderedDict[bytes, _Sent] = OrderedDict()
        self._changed: dict[bytes, bytes | None] = {}

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the state from the rows of the last finished checkpoint.

        Raises:
            ValueError: this version does not read the format of a row.
        """
        found = []
        for key, row in rows.items():
            if key.startswith(_KEY):
                found.append((key, _Sent.unpack(row)))
        self._sent = OrderedDict(sorted(found, key=lambda item: item[1].last_record_ms))
        self._latest_ms = max((sent.last_record_ms for sent in self._sent.values()), default=0)

    def changed(
        self, session: bytes, result: ScoringResult, last_record_ms: int, candidates: Sequence[OfferedCandidate]
    ) -> Sequence[OfferedCandidate]:
        """Returns the candidates that are new or changed for this segment.

        If a later revision or attempt has sent candidates before, the method returns all candidates: the gate then
        rejects them as `superseded`.

        Args:
            session: The session id.
            result: The result of scoring the session, with segment, revision and attempt.
            last_record_ms: Timestamp of the last record of the session, in milliseconds since 1970.
            candidates: All candidates of this result.
        """
        self._forget(last_record_ms)
        if not candidates:
            return candidates
        key = _KEY + session + result.segment.to_bytes(4)
        before = self._sent.get(key)
        if before is not None and (before.revision, before.attempt) > (result.revision, result.attempt):
            return candidates
        self._sent.pop(key, None)
        digests = b"".join([each.trace + each.digest for each in candidates])
        sent = self._sent[key] = _Sent(last_record_ms, result.revision, result.attempt, digests)
        self._changed[key] = sent.pack()
        if before is None:
            return candidates
        known = before.digests
        pairs = {known[at : at + 2 * _DIGEST] for at in range(0, len(known), 2 * _DIGEST)}
        return [each for each in candidates if each.trace + each.digest not in pairs]

    def rows(self) -> Rows:
        """Returns the changed rows since the last call."""
        rows = list(self._changed.items())
        self._changed = {}
        return rows

    def _forget(self, last_record_ms: int) -> None:
        self._latest_ms = max(self._latest_ms, last_record_ms)
        while (
            self._sent
            and (first := next(iter(self._sent.items())))[1].last_record_ms < self._latest_ms - self._revised_within_ms
        ):
            del self._sent[first[0]]
            self._changed[first[0]] = None
