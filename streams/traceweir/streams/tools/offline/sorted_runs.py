"""Sorts more items than fit into memory: each run is sorted, and the runs are merged when they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from typing import Any, Generic, TypeVar

from traceweir.streams.tools.offline.block_file import BlockFile, Items

T = TypeVar("T")
BLOCK_BYTES = 16 << 10
"""Size of the pieces in which a run is read again. One piece of each run is in memory at a time."""


class SortedRuns(Generic[T]):
    """Items in sorted runs, in memory or in a file.

    Args:
        kind: The type of the items, as msgspec knows it.
        key: Returns what an item is ordered by. Items with equal keys keep the order in which they were added.

    >>> runs = SortedRuns(int, key=abs)
    >>> runs.add([3, -1, 2])
    >>> runs.add([1, -3])
    >>> list(runs)
    [-1, 1, 2, 3, -3]
    """

    def __init__(self, kind: type[T], key: Callable[[T], Any]) -> None:
        self._kind = kind
        self._key = key
        self._runs: list[Iterable[T]] = []

    def add(self, items: Iterable[T], file: BlockFile | None = None) -> None:
        """Sorts items and adds them as a run, to a file if one is given.

        Raises:
            TemporaryFileError: the file cannot be written.
        """
        run = sorted(items, key=self._key)
        if file is None:
            self._runs.append(run)
            return
        written = Items(file, self._kind, BLOCK_BYTES)
        for item in run:
            written.add(item)
        written.flush()
        self._runs.append(written)

    def __iter__(self) -> Iterator[T]:
        """Yields all items in order.

        Raises:
            TemporaryFileError: the file cannot be read.
        """
        return merge(*self._runs, key=self._key) if len(self._runs) != 1 else iter(self._runs[0])
