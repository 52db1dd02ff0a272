"""Finds the times in which a metric had results and no values, such as an outage of a judge."""

from __future__ import annotations

from collections import Counter, defaultdict
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
    metrics together, if chance left out as many values as were left out in the whole span. Results of one session lack their
    values together, so that below the level of sessions they count as fewer: divided by `_dispersion` of the other steps.

    Args:
        series: The figures of each metric and level in each step of time.
        step_s: Length of a step in seconds.
    """
    levels = _levels(series)
    by_metric = defaultdict[str, list[SeriesPoint]](list)
    for each in series:
        if levels[each.metric] == each.level and each.results:
            by_metric[each.metric].append(each)
    found = []
    for metric, points in by_metric.items():
        points.sort(key=lambda each: each.begins_at)
        results = sum(each.results for each in points)
        missing = 1 - sum(each.evaluated for each in points) / results
        if missing == 1:
            continue
        for has_values, steps in groupby(points, key=lambda each: each.evaluated > 0):
            run = list(steps)
            number = sum(each.results for each in run)
            if has_values or number < LEAST:
                continue
            since = run[0].begins_at
            until = run[-1].begins_at + timedelta(seconds=step_s)
            together = 1.0
            if levels[metric] != "session":
                together = _dispersion([each for each in points if not since <= each.begins_at < until])
            expected = results / together * missing ** (number / together)
            if expected <= LEVEL_OF_PROOF / len(levels):
                found.append(Outage(metric, since, until, number))
    return sorted(found, key=lambda each: (each.since, each.metric))


def _dispersion(points: Sequence[SeriesPoint]) -> float:
    """Returns by how much more the numbers of missing values vary than those of independent results; 1 or more.

    It is Pearson's statistic divided by its degrees of freedom (McCullagh and Nelder 1989, Generalized Linear Models, 4.5).
    """
    results = sum(each.results for each in points)
    missing = 1 - sum(each.evaluated for each in points) / results if results else 0.0
    if len(points) < 2 or not 0 < missing < 1:
        return 1.0
    squares = sum((each.results - each.evaluated - each.results * missing) ** 2 / each.results for each in points)
    return max(1.0, squares / (missing * (1 - missing)) / (len(points) - 1))


def _levels(series: Sequence[SeriesPoint]) -> dict[str, str]:
    """Returns the level of each metric that is looked at: that of sessions, or else the one with most results."""
    results = Counter[tuple[str, str]]()
    for each in series:
        results[each.metric, each.level] += each.results
    places = sorted(results, key=lambda place: (place[1] == "session", results[place]))
    return dict(places)
