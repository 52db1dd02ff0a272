"""Finds the times in which a metric had results and no values, such as an outage of a judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from traceweir.streams.board.store.answers import SeriesPoint
from traceweir.streams.board.store.differences import LEAST, LEVEL_OF_PROOF


class Outage(NamedTuple):
    """A time in which no result of a metric has a value, beyond chance."""

    metric: str
    since: datetime
    """When the first step without a value begins, in UTC."""
    until: datetime
    """When the last one ends."""
    results: int
    """Number of results in this time."""


def outages(series: Sequence[SeriesPoint], step_s: int) -> list[Outage]:
    """Returns when metrics had no values, by time; a metric without any value in the span has none.

    An outage has ten results or more. The expected number of runs of as many results without a value is 0.05 at most for all
    metrics together, if chance left out as many values as were left out in the whole span.

    Args:
        series: The figures of each metric and level in each step of time.
        step_s: Length of a step in seconds.
    """
    levels = _levels(series)
    found = []
    for metric, level in levels.items():
        points = sorted(
            (each for each in series if (each.metric, each.level) == (metric, level) and each.results),
            key=lambda each: each.begins_at,
        )
        results = sum(each.results for each in points)
        missing = 1 - sum(each.evaluated for each in points) / results
        if missing == 1:
            continue
        for has_values, steps in groupby(points, key=lambda each: each.evaluated > 0):
            run = list(steps)
            number = sum(each.results for each in run)
            expected = results * missing**number
            if not has_values and number >= LEAST and expected <= LEVEL_OF_PROOF / len(levels):
                until = run[-1].begins_at + timedelta(seconds=step_s)
                found.append(Outage(metric, run[0].begins_at, until, number))
    return sorted(found, key=lambda each: (each.since, each.metric))


def _levels(series: Sequence[SeriesPoint]) -> dict[str, str]:
    """Returns the level of each metric that is looked at: that of sessions, or else the one with most results."""
    results = Counter[tuple[str, str]]()
    for each in series:
        results[each.metric, each.level] += each.results
    places = sorted(results, key=lambda place: (place[1] == "session", results[place]))
    return dict(places)
