"""Revisions: which candidates a session gave before, so that its next revision gives those only that have changed."""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from traceweir.streams.scoring.result import OfferedCandidate, ScoringResult
from traceweir.streams.stages.base import Rows

_KEY = b"t"
_HEAD = struct.Struct(">BqI")  # format 1, of attempt 0: format, last record, revision
_HEAD_2 = struct.Struct(">BqII")  # format 2, of the attempts after it: the same, and the attempt
_DIGEST = 16


class _Given(NamedTuple):
    last_record: int
    revision: int
    attempt: int
    digests: bytes
    """Of each trace its name and its digest."""

    def pack(self) -> bytes:
        """The row."""
        if self.attempt:
            return _HEAD_2.pack(2, self.last_record, self.revision, self.attempt) + self.digests
        return _HEAD.pack(1, self.last_record, self.revision) + self.digests

    @classmethod
    def unpack(cls, row: bytes) -> _Given:
        """What a row holds.

        Raises:
            ValueError: the row was written by a version that this one does not read.
        """
        if row[0] == 1:
            _, last_record, revision = _HEAD.unpack_from(row)
            return cls(last_record, revision, 0, row[_HEAD.size :])
        if row[0] == 2:
            _, last_record, revision, attempt = _HEAD_2.unpack_from(row)
            return cls(last_record, revision, attempt, row[_HEAD_2.size :])
        raise ValueError(f"row of given candidates of format {row[0]}; this version reads 1 and 2")


class CandidateChanges:
    """The candidates given by sessions that may come again.

    Args:
        kept: By how many milliseconds of record time a session may lie behind the latest one and still come again.
    """

    def __init__(self, kept: int) -> None:
        self._kept, self._latest = kept, 0
        self._given: OrderedDict[bytes, _Given] = OrderedDict()
        self._changed: dict[bytes, bytes | None] = {}

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Start from the rows of the last finished checkpoint.

        Raises:
            ValueError: a row was written by a version that this one does not read.
        """
        found = []
        for key, row in rows.items():
            if key.startswith(_KEY):
                found.append((key, _Given.unpack(row)))
        self._given = OrderedDict(sorted(found, key=lambda item: item[1].last_record))
        self._latest = max((given.last_record for given in self._given.values()), default=0)

    def changed(
        self, session: bytes, result: ScoringResult, last_record: int, candidates: Sequence[OfferedCandidate]
    ) -> Sequence[OfferedCandidate]:
        """The candidates that the segment did not give before as they are now.

        All of them, if a later revision or attempt gave candidates before: the gate then rejects them as `superseded`.

        Args:
            session: Its id.
            result: What scoring the session gave: it names segment, revision and attempt.
            last_record: The timestamp of its last record, in milliseconds since 1970.
            candidates: All that it gives now.
        """
        self._forget(last_record)
        if not candidates:
            return candidates
        key = _KEY + session + result.segment.to_bytes(4)
        before = self._given.get(key)
        if before is not None and (before.revision, before.attempt) > (result.revision, result.attempt):
            return candidates
        self._given.pop(key, None)
        digests = b"".join([each.trace + each.digest for each in candidates])
        given = self._given[key] = _Given(last_record, result.revision, result.attempt, digests)
        self._changed[key] = given.pack()
        if before is None:
            return candidates
        known = before.digests
        pairs = {known[at : at + 2 * _DIGEST] for at in range(0, len(known), 2 * _DIGEST)}
        return [each for each in candidates if each.trace + each.digest not in pairs]

    def rows(self) -> Rows:
        """What changed since the last call."""
        rows, self._changed = list(self._changed.items()), {}
        return rows

    def _forget(self, last_record: int) -> None:
        self._latest = max(self._latest, last_record)
        while self._given and (first := next(iter(self._given.items())))[1].last_record < self._latest - self._kept:
            del self._given[first[0]]
            self._changed[first[0]] = None
