"""Converts the durations of the settings to the unit of record times."""

from __future__ import annotations


def milliseconds(seconds: float) -> int:
    """Returns a duration in whole milliseconds; a fraction of a millisecond is truncated.

    >>> milliseconds(1.5)
    1500
    """
    return int(seconds * 1000)
