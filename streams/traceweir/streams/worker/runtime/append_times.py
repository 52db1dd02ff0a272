"""Tells when the next record of an input was appended at the earliest, whatever its producer wrote as timestamp."""

from __future__ import annotations

from collections import deque

_MIN_DISTANCE_S = 1.0
"""Distance of two ends that are kept. Fetches return many times per second."""
_MAX_ENDS = 1_000
"""Number of ends that are kept. Beyond it every second end is dropped: the answer is then earlier, and not wrong."""


class AppendTimes:
    """The ends of one input that fetches reported, each with its time.

    A record at or after an end was appended after the time of this end. When the input is read up to the end, all
    further records are therefore newer than this time.

    >>> times = AppendTimes()
    >>> times.note(500, 60.0), times.note(800, 70.0)
    (None, None)
    >>> times.next_after(499), times.next_after(500), times.next_after(900)
    (0.0, 60.0, 70.0)
    """

    def __init__(self) -> None:
        self._ends: deque[tuple[int, float]] = deque()
        self._passed = 0.0
        self._distance_s = _MIN_DISTANCE_S

    def note(self, end: int, at: float) -> None:
        """Notes the end of the input, an offset, at a time in seconds since 1970."""
        if self._ends and end == self._ends[-1][0]:
            # Nothing was appended in between.
            self._ends[-1] = end, at
        elif not self._ends or at - self._ends[-1][1] >= self._distance_s:
            self._ends.append((end, at))
            if len(self._ends) > _MAX_ENDS:
                self._ends = deque(list(self._ends)[::2])
                self._distance_s *= 2

    def next_after(self, position: int) -> float:
        """Returns the time after which the record at this offset was appended, in seconds since 1970; 0 if unknown.

        Args:
            position: The offset of the next record; offsets of successive calls must not decrease.
        """
        while self._ends and self._ends[0][0] <= position:
            self._passed = self._ends.popleft()[1]
        if not self._ends:
            self._distance_s = _MIN_DISTANCE_S
        return self._passed
