"""Revisions: which candidates a session gave before, so that its next revision gives those only that have changed."""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from traceweir.streams.scoring.result import OfferedCandidate
from traceweir.streams.stages.base import Rows

_KEY = b"t"
_VERSION = 1
_HEAD = struct.Struct(">BqI")
_DIGEST = 16


class _Given(NamedTuple):
    last_record: int
    revision: int
    digests: bytes
    """Of each trace its name and its digest."""


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
                version, last_record, revision = _HEAD.unpack_from(row)
                if version != _VERSION:
                    raise ValueError(f"row of given candidates of format {version}; this version reads {_VERSION}")
                found.append((key, _Given(last_record, revision, row[_HEAD.size :])))
        self._given = OrderedDict(sorted(found, key=lambda item: item[1].last_record))
        self._latest = max((given.last_record for given in self._given.values()), default=0)

    def changed(
        self, session: bytes, segment: int, revision: int, last_record: int, candidates: Sequence[OfferedCandidate]
    ) -> Sequence[OfferedCandidate]:
        """Those of a segment's candidates that it did not give before as they are now.

        All of them, if a later revision was there before: the gate then says so.

        Args:
            session: Its id.
            segment: Its number.
            revision: Its revision.
            last_record: The timestamp of its last record, in milliseconds since 1970.
            candidates: All that it gives now.
        """
        self._forget(last_record)
        if not candidates:
            return candidates
        key = _KEY + session + segment.to_bytes(4)
        before = self._given.get(key)
        if before is not None and before.revision > revision:
            return candidates
        self._given.pop(key, None)
        digests = b"".join([each.trace + each.digest for each in candidates])
        self._given[key] = _Given(last_record, revision, digests)
        self._changed[key] = _HEAD.pack(_VERSION, last_record, revision) + digests
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
