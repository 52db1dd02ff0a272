"""Tracks the progress of a partition whose records finish in any order.

All records below the committed offset are done. A row stores the finished records above this offset as ranges, so that
the row stays small while one record takes minutes and many later records finish.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator

_VERSION = 2
# Version 1, in which a row contains only offsets.
_NUMBER = struct.Struct("@q")
_RANGE = struct.Struct(">qq")


class OffsetTracker:
    """Holds the offsets of one input partition.

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
        """Restores the finished records above the committed offset.

        Raises:
            ValueError: this version does not read the format of the row.
        """
        if len(row) % _NUMBER.size == 0:
            self._before = deque((number, number + 1) for (number,) in _NUMBER.iter_unpack(row))
        elif row[0] == _VERSION:
            self._before = deque(_RANGE.iter_unpack(row[1:]))
        else:
            raise ValueError(
                f"a row of finished offsets has the format {row[0]}; this version reads the formats 1 and {_VERSION}"
            )

    def begin(self, offset: int) -> bool:
        """Starts the next record and returns whether it is not done yet; the offset must exceed all earlier offsets."""
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

    def frontier(self, offset: int) -> int:
        """Returns the first offset, from this one on, from which no record was begun; now or before the last load."""
        begun = self._before[-1][1] if self._before else 0
        return max(offset, self._next or 0, begun)

    @property
    def mark(self) -> int | None:
        """The offset below which all records are done; None before the first record."""
        return next(iter(self._open), self._next)

    def row(self) -> bytes:
        """Returns the row of the finished ranges above the mark; empty if there are none."""
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
