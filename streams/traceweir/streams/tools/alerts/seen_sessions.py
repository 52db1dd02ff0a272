"""Remembers which sessions have counted in a stream today and yesterday, by eight bytes each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.uint64]
MOST_SEEN = 2_000_000
"""Sessions at most that are remembered, over all streams; those that counted first are forgotten first."""
_DAYS = 2
_ROW_DIGESTS = 50_000
"""Digests in a row at most: a row has half a megabyte then."""


def session_digests(salt: bytes, day: int, sessions: Iterable[str]) -> Digests:
    """Returns what stands for sessions of a stream on a day.

    Args:
        salt: Of the stream; at most 48 bytes.
        day: Days since 1970.
        sessions: Ids of sessions.
    """
    keyed = blake2b(digest_size=8, key=salt + day.to_bytes(8, "big", signed=True))
    found = bytearray()
    for session in sessions:
        # The key costs as much as the session, and is hashed once.
        each = keyed.copy()
        each.update(session.encode("utf-8", "surrogatepass"))
        found += each.digest()
    return np.frombuffer(found, ">u8").astype(np.uint64)


class SeenSessions:
    """The digests of sessions that have counted.

    >>> seen = SeenSessions()
    >>> seen.add(20_000, np.array([5, 7], np.uint64))
    >>> seen.contains(np.array([7, 8], np.uint64)).tolist()
    [True, False]
    """

    def __init__(self, most: int = MOST_SEEN) -> None:
        self._most = most
        self._pieces: dict[int, tuple[int, Digests]] = {}
        self._sorted: Digests = np.empty(0, np.uint64)
        self._next = 0
        self._written = 0
        self._dropped: list[int] = []

    def contains(self, digests: Digests) -> NDArray[np.bool_]:
        """Returns which of the digests are known."""
        if not len(self._sorted):
            return np.zeros(len(digests), bool)
        places = np.searchsorted(self._sorted, digests).clip(max=len(self._sorted) - 1)
        found: NDArray[np.bool_] = self._sorted[places] == digests
        return found

    def add(self, day: int, digests: Digests) -> None:
        """Remembers sessions that count on a day, later than or equal to that of all calls before."""
        old = [number for number, (of, _) in self._pieces.items() if of <= day - _DAYS]
        self._keep(day, digests)
        left = sum(len(each) for _, each in self._pieces.values())
        for number, (_, each) in self._pieces.items():
            if left <= self._most:
                break
            if number not in old:
                old.append(number)
            left -= len(each)
        for number in old:
            del self._pieces[number]
            self._dropped.append(number)
        if old:
            self._sort()
        else:
            new = np.sort(digests)
            self._sorted = np.insert(self._sorted, np.searchsorted(self._sorted, new), new)

    def load(self, rows: Mapping[int, bytes]) -> None:
        """Takes the rows that `changes` returned, by their numbers."""
        for number in sorted(rows):
            day = int.from_bytes(rows[number][:8], "big", signed=True)
            self._pieces[number] = day, np.frombuffer(rows[number][8:], ">u8").astype(np.uint64)
            self._next = self._written = number + 1
        self._sort()

    def changes(self) -> Iterator[tuple[int, bytes | None]]:
        """Yields the rows since the last call, by their numbers; None removes a row."""
        for number in self._dropped:
            if number < self._written:
                yield number, None
        self._dropped.clear()
        for number in range(self._written, self._next):
            if (piece := self._pieces.get(number)) is not None:
                yield number, piece[0].to_bytes(8, "big", signed=True) + piece[1].astype(">u8").tobytes()
        self._written = self._next

    def _keep(self, day: int, digests: Digests) -> None:
        last = self._pieces.get(self._next - 1)
        # A minute has few sessions, and a row for each would be many.
        if (
            self._next > self._written
            and last is not None
            and last[0] == day
            and len(last[1]) + len(digests) <= _ROW_DIGESTS
        ):
            self._pieces[self._next - 1] = day, np.append(last[1], digests)
            return
        for at in range(0, len(digests), _ROW_DIGESTS):
            self._pieces[self._next] = day, digests[at : at + _ROW_DIGESTS]
            self._next += 1

    def _sort(self) -> None:
        every = [each for _, each in self._pieces.values()]
        self._sorted = np.sort(np.concatenate(every)) if every else np.empty(0, np.uint64)
