"""Keeps the sessions with the worst values since any minute that may turn out to be the onset of an alarm."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from heapq import nsmallest

import msgspec
import numpy as np

from traceweir.schemas.alert import MOST_SESSIONS
from traceweir.streams.base.statistics.intervals import Floats

MOST_KEPT = 64
"""Sessions at most that are kept. If their values rise all the time, those of long ago are lost first."""


class WorstSession(msgspec.Struct, array_like=True, frozen=True, order=True, gc=False):
    """A session and its value. Of two, the one that comes first in an alert is the smaller."""

    value: float
    minus_minute: int
    """0 less the minute since 1970, so that of equal values the newest is the smallest."""
    session: str


def with_minute(
    kept: Sequence[WorstSession], minute: int, sessions: Sequence[str], values: Floats
) -> list[WorstSession]:
    """Returns what is to be kept after another minute.

    A session is kept unless `MOST_SESSIONS` others come before it in every alert that it could be in: these are not
    earlier, and not better.

    Args:
        kept: What this function returned for the minute before; empty at first.
        minute: The minute, later than all before.
        sessions: The sessions of the minute.
        values: The value of each.

    >>> kept = with_minute([], 1, ["a", "b"], np.array([0.0, 1.0]))
    >>> [each.session for each in worst_since(with_minute(kept, 2, ["c"], np.array([0.5])), 1)]
    ['a', 'c', 'b']
    """
    if len(values) > MOST_SESSIONS:
        bound = np.partition(values, MOST_SESSIONS - 1)[MOST_SESSIONS - 1]
        places: Iterable[int] = np.flatnonzero(values <= bound).tolist()
    else:
        places = range(len(values))
    listed = values.tolist()
    new = sorted(WorstSession(listed[place], -minute, sessions[place]) for place in places)[:MOST_SESSIONS]
    # Ascending in `minus_minute`: the newest first.
    by_time = sorted([*kept, *new], key=lambda each: (each.minus_minute, each))
    found: list[WorstSession] = []
    smallest: list[WorstSession] = []
    for each in by_time:
        if len(smallest) < MOST_SESSIONS or not smallest[-1] < each:
            found.append(each)
            insort(smallest, each)
            del smallest[MOST_SESSIONS:]
    return found[:MOST_KEPT]


def worst_since(kept: Iterable[WorstSession], minute: int) -> list[WorstSession]:
    """Returns the worst sessions since a minute, in the order of an alert."""
    return nsmallest(MOST_SESSIONS, (each for each in kept if -each.minus_minute >= minute))
