"""Tells the time of events: UTC, in microseconds, rising within an invocation whatever happens to the system's clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

Clock = Callable[[], int]
"""Returns nanoseconds."""


class RisingClock:
    """Reads the system's clock once, and then a clock that is never set back.

    Events are ordered by their times, and the latency of an invocation is the difference of two of them.
    """

    __slots__ = ("_last_us", "_start_us", "_started_ns", "_steady_ns")

    def __init__(self, wall_ns: Clock = time.time_ns, steady_ns: Clock = time.perf_counter_ns) -> None:
        """Begins at the time that `wall_ns` tells.

        Args:
            wall_ns: Returns nanoseconds since 1970.
            steady_ns: Returns nanoseconds from any start; never goes back.
        """
        self._steady_ns = steady_ns
        self._start_us = wall_ns() // 1_000
        self._started_ns = steady_ns()
        self._last_us = self._start_us - 1

    def text(self) -> str:
        """Returns the time as a date-time that ends in Z. Each call in a thread returns a later time than the one before."""
        now_us = self._start_us + (self._steady_ns() - self._started_ns) // 1_000
        if now_us <= self._last_us:
            now_us = self._last_us + 1
        self._last_us = now_us
        return utc_text(now_us)


def utc_text(microseconds: int) -> str:
    """Returns a time since 1970 as a date-time that ends in Z.

    >>> utc_text(1_769_860_800_000_250)
    '2026-01-31T12:00:00.000250Z'
    """
    seconds, fraction = divmod(microseconds, 1_000_000)
    return f"{_second(seconds)}.{fraction:06d}Z"


# Most events share their second with the one before.
@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
