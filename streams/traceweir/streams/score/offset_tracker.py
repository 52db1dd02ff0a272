"""Tracks how far a partition is done when its records finish in any order.

The committed offset is the one below which all records are done. A row keeps the records that are done above it as ranges, so a record
that takes minutes does not let the row grow with every record that is done meanwhile.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator

_VERSION = 2
_NUMBER = struct.Struct("@q")  # of version 1, whose rows contain only the offsets
_RANGE = struct.Struct(">qq")


class OffsetTracker:
    """The offsets of one input partition.

    >>> progress = OffsetTracker()
    >>> [progress.begin(offset) for offset in (4, 5, 7)]
    [True, True, True]
    >>> progress.end(5)
    >>> progress.mark, len(progress)
    (4, 2)
    >>> again = OffsetTracker()
    >>> again.load(progress.row())
    >>> [again.begin(offset) for offset in (4, 5, 7)]
    [True, False, True]
    """

    def __init__(self) -> None:
        self._open: dict[int, None] = {}
        self._next: int | None = None
        self._before: deque[tuple[int, int]] = deque()

    def __len__(self) -> int:
        """Returns the number of records in progress."""
        return len(self._open)

    def load(self, row: bytes) -> None:
        """Start from what a former reader had done above the offset that it committed.

        Raises:
            ValueError: the row was written by a version that this one does not read.
        """
        if len(row) % _NUMBER.size == 0:
            self._before = deque((number, number + 1) for (number,) in _NUMBER.iter_unpack(row))
        elif row[0] == _VERSION:
            self._before = deque(_RANGE.iter_unpack(row[1:]))
        else:
            raise ValueError(f"row of offsets that are done of format {row[0]}; this version reads 1 and {_VERSION}")

    def begin(self, offset: int) -> bool:
        """Starts the next record, whose offset is above all former ones. Returns whether it must still be done."""
        self._next = offset + 1
        while self._before and self._before[0][1] <= offset:
            self._before.popleft()
        if self._before and self._before[0][0] <= offset:
            return False
        self._open[offset] = None
        return True

    def end(self, offset: int) -> None:
        """Marks a record as done."""
        del self._open[offset]

    @property
    def mark(self) -> int | None:
        """Returns the offset below which all records are done; None before the first record."""
        return next(iter(self._open), self._next)

    def row(self) -> bytes:
        """Returns the row of the ranges that are done above the mark; empty if there are none."""
        ranges = b"".join([_RANGE.pack(*each) for each in self._done()])
        return ranges and bytes([_VERSION]) + ranges

    def _done(self) -> Iterator[tuple[int, int]]:
        # Offsets without a record, such as those of transaction markers, count as done together with their neighbours.
        read = self._next
        if read is not None:
            first, *others = [*self._open, read]
            for offset in others:
                if offset > first + 1:
                    yield first + 1, offset
                first = offset
        for start, end in self._before:
            if read is None or end > read:
                yield (start if read is None else max(start, read)), end
