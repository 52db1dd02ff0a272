"""Says how often a state without alerts is written: the seldomer, the more there is to write."""

from __future__ import annotations

WRITE_EVERY_S = 5.0
"""Seconds between two writes of a state without alerts, at least; one with alerts is written at once."""
WRITE_WITHIN_S = 300.0
"""The same, at most, however many streams have changed: a process that takes over reads so much again."""
STREAM_S = 0.03
"""By how many seconds a stream that has changed delays the next write. A stream has 12 kB, so that up to 10,000 streams
write at most 24 MB a minute."""


def write_after_s(changed_streams: int) -> float:
    """Returns the seconds after which a state without alerts is written again.

    >>> write_after_s(0), write_after_s(1_000), write_after_s(20_000)
    (5.0, 30.0, 300.0)
    """
    return min(max(WRITE_EVERY_S, STREAM_S * changed_streams), WRITE_WITHIN_S)
