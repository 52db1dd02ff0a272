"""Remembers the candidates of a session, so that its next revision or attempt sends only the changed ones."""

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
    """Digest of the id, and digest of the content, of each trace."""

    def pack(self) -> bytes:
        """Returns the row."""
        if self.attempt:
            return _HEAD_2.pack(2, self.last_record, self.revision, self.attempt) + self.digests
        return _HEAD.pack(1, self.last_record, self.revision) + self.digests

    @classmethod
    def unpack(cls, row: bytes) -> _Given:
        """Returns the content of a row.

        Raises:
            ValueError: this version does not read the format of the row.
        """
        if row[0] == 1:
            _, last_record, revision = _HEAD.unpack_from(row)
            return cls(last_record, revision, 0, row[_HEAD.size :])
        if row[0] == 2:
            _, last_record, revision, attempt = _HEAD_2.unpack_from(row)
            return cls(last_record, revision, attempt, row[_HEAD_2.size :])
        raise ValueError(f"row of given candidates of format {row[0]}; this version reads 1 and 2")


class CandidateChanges:
    """The candidates of sessions that can get another revision.

    Args:
        kept: Maximum distance in milliseconds of record time behind the latest session at which another revision can come.
    """

    def __init__(self, kept: int) -> None:
        self._kept, self._latest = kept, 0
        self._given: OrderedDict[bytes, _Given] = OrderedDict()
        self._changed: dict[bytes, bytes | None] = {}

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the state from the rows of the last finished checkpoint.

        Raises:
            ValueError: this version does not read the format of a row.
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
        """Returns the candidates that are new or changed for this segment.

        Returns all of them if a later revision or attempt gave candidates before: the gate then rejects them as `superseded`.

        Args:
            session: The session id.
            result: The result of scoring the session, with segment, revision and attempt.
            last_record: Timestamp of the last record of the session, in milliseconds since 1970.
            candidates: All candidates of this result.
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
        """Returns the changed rows since the last call."""
        rows, self._changed = list(self._changed.items()), {}
        return rows

    def _forget(self, last_record: int) -> None:
        self._latest = max(self._latest, last_record)
        while self._given and (first := next(iter(self._given.items())))[1].last_record < self._latest - self._kept:
            del self._given[first[0]]
            self._changed[first[0]] = None
