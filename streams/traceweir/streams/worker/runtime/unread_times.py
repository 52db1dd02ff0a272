"""Tells how close to its deletion the oldest record of an input is that no checkpoint contains.

Kafka deletes whole segments, from the beginning of the log, each when its latest timestamp is older than `retention.ms`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from traceweir.streams.base.stages.base import Record


class _Batch(NamedTuple):
    end: int
    first: int
    last: int


class UnreadTimes:
    """The timestamps of the records of one input, as they are read and cut.

    The segment with a record is never deleted before the record is older than the retention, and no later segment is
    deleted before it. So the highest timestamp at or before the oldest record that is not cut tells when that record can
    be deleted at the earliest, whatever the order of the timestamps: the age that follows from it is never too low.
    The next record itself need not be read for this.

    >>> from traceweir.streams.testing import Message
    >>> times = UnreadTimes()
    >>> times.since(is_behind=True) is None  # nothing was read yet
    True
    >>> times.note_read([Message("traces", 0, 7, 1_000, None, None), Message("traces", 0, 8, 4_000, None, None)])
    >>> times.since(is_behind=False)
    1000
    >>> times.note_cut(9)
    >>> times.since(is_behind=True), times.since(is_behind=False)
    (4000, None)
    """

    def __init__(self) -> None:
        self._batches: deque[_Batch] = deque()
        self._passed: int | None = None

    def note_read(self, records: Sequence[Record]) -> None:
        """Notes records that follow those before, at least one."""
        self._batches.append(_Batch(records[-1].offset + 1, records[0].timestamp, records[-1].timestamp))

    def note_cut(self, offset: int) -> None:
        """Notes the offset below which a checkpoint contains every record."""
        while self._batches and self._batches[0].end <= offset:
            batch = self._batches.popleft()
            self._passed = max(batch.first, batch.last, batch.first if self._passed is None else self._passed)

    def since(self, *, is_behind: bool) -> int | None:
        """Returns a time such that no record that is not cut is deleted before this time plus the retention.

        Args:
            is_behind: Whether the log has records that were not read.

        Returns:
            Milliseconds since 1970; None if no record waits, or if none was read yet.
        """
        if self._batches:
            first = self._batches[0].first
            return first if self._passed is None else max(first, self._passed)
        return self._passed if is_behind else None
