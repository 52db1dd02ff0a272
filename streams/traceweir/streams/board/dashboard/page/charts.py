"""Turns figures into what the script of the charts draws. uPlot draws; this module only chooses what."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

from traceweir.streams.base.statistics.rate_intervals import rate_interval
from traceweir.streams.board.dashboard.page.formats import inert_text
from traceweir.streams.board.dashboard.page.marks import ChartMark
from traceweir.streams.board.dashboard.page.outages import Outage
from traceweir.streams.board.store.answers import (
    MetricFigures,
    SeriesPoint,
)
from traceweir.streams.board.store.missing_answers import CountPoint
from traceweir.streams.board.store.selection import Selection
from traceweir.streams.board.store.value_counts import Bin

MAX_LINES = 3
"""Lines of a chart; more cannot be told apart."""
MAX_MARKS = 100
"""Marks of a chart: each is also a line of text below it. Versions and configs come first, because they explain a change."""
MAX_TIMES = 1_000
"""Steps of a chart; a span has at most `overview.MAX_POINTS` of them, and one more if it begins within a step."""
FEWEST_RESULTS = 20
"""Results of a line, on average, that a step of a chart has; steps with fewer are merged."""
FEWEST_STEPS = 12
"""Steps that a chart keeps, however few results they have."""
_RATE_MARGIN = 2
"""Percent above and below the pass rates of a small chart."""
Place = tuple[str, str]
"""The name of a metric, and its level."""


def lines_to_draw(
    metrics: Sequence[MetricFigures], before: Sequence[MetricFigures], chosen: str | None = None
) -> list[Place]:
    """Returns the metrics whose pass rates a chart shows: those that fell or rose most, by name if nothing moved.

    Args:
        metrics: The figures in the span.
        before: The figures in the span before.
        chosen: The only metric to show.
    """
    rates = {(each.metric, each.level): each.pass_rate for each in before}

    def moved(figures: MetricFigures) -> float:
        earlier = rates.get((figures.metric, figures.level))
        return 0.0 if earlier is None or figures.pass_rate is None else abs(figures.pass_rate - earlier)

    possible = [each for each in metrics if each.pass_rate is not None and chosen in (None, each.metric)]
    # A criterion with failures says more than one without.
    ranked = sorted(possible, key=lambda each: (-moved(each), -each.failed, each.metric))
    return sorted((each.metric, each.level) for each in ranked[:MAX_LINES])


def pass_rate_chart(
    series: Sequence[SeriesPoint],
    places: Sequence[Place],
    marks: Sequence[ChartMark],
    step_s: int,
    selection: Selection,
    outages: Sequence[Outage] = (),
) -> dict[str, Any] | None:
    """Returns a chart of pass rates with their 95 % intervals over the whole span; None without a verdict."""
    steps, step_s = _merged([each for each in series if each.passed + each.failed], places, step_s)
    if not steps:
        return None
    times = _times(selection, step_s)
    lines = []
    for place in places:
        found = [steps.get(at, {}).get(place) for at in times]
        bounds = [rate_interval(each.passed, each.judged) if each else (None, None) for each in found]
        lines.append(
            {
                "label": _label(place, places),
                "values": [_percent(each.passed / each.judged) if each else None for each in found],
                "low": [_percent(low) for low, _ in bounds],
                "high": [_percent(high) for _, high in bounds],
                "counts": [each.judged if each else None for each in found],
            }
        )
    return _lines(" %", step_s, times, lines, marks, selection, _seen(series, step_s), _spans(outages, places))


def mean_chart(
    series: Sequence[SeriesPoint],
    places: Sequence[Place],
    marks: Sequence[ChartMark],
    step_s: int,
    selection: Selection,
    outages: Sequence[Outage] = (),
) -> dict[str, Any] | None:
    """Returns a chart of means over the whole span; None without a point."""
    steps, step_s = _merged(series, places, step_s)
    if not steps:
        return None
    times = _times(selection, step_s)
    lines = []
    for place in places:
        found = [steps.get(at, {}).get(place) for at in times]
        lines.append(
            {
                "label": _label(place, places),
                "values": [each.value_sum / each.evaluated if each else None for each in found],
                "counts": [each.evaluated if each else None for each in found],
            }
        )
    return _lines("", step_s, times, lines, marks, selection, _seen(series, step_s), _spans(outages, places))


def count_chart(
    points: Sequence[CountPoint], marks: Sequence[ChartMark], step_s: int, selection: Selection
) -> dict[str, Any] | None:
    """Returns a chart of numbers of records by reason, the most frequent ones; None without a record."""
    totals = Counter[str]()
    for each in points:
        totals[each.reason] += each.number
    if not totals:
        return None
    times = _times(selection, step_s)
    numbers = {(each.reason, int(each.begins_at.timestamp())): each.number for each in points}
    lines = [
        {
            "label": inert_text(reason.replace("_", " ")),
            "values": [numbers.get((reason, at), 0) for at in times],
            "counts": [None] * len(times),
        }
        for reason, _ in totals.most_common(MAX_LINES)
    ]
    return _lines("", step_s, times, lines, marks, selection, set(times))


def histogram(bins: Sequence[Bin]) -> dict[str, Any] | None:
    """Returns a chart of a distribution; None without a result."""
    if not bins:
        return None
    return {
        "kind": "bars",
        "x": [(each.low + each.high) / 2 for each in bins],
        "lows": [each.low for each in bins],
        "highs": [each.high for each in bins],
        "values": [each.results for each in bins],
    }


def sparkline(series: Sequence[SeriesPoint], place: Place, step_s: int, selection: Selection) -> dict[str, Any] | None:
    """Returns a small chart of a metric's pass rate, or of its mean without a verdict; None with fewer than two points."""
    of_place = [each for each in series if (each.metric, each.level) == place]
    judged = [each for each in of_place if each.passed + each.failed]
    steps, step_s = _merged(judged or of_place, [place], step_s)
    if len(steps) < 2:
        return None
    times = _times(selection, step_s)
    cells = [steps.get(at, {}).get(place) for at in times]
    means = [each.value_sum / each.evaluated for each in cells if each]
    values = [
        None if each is None else _percent(each.passed / each.judged) if judged else each.value_sum / each.evaluated
        for each in cells
    ]
    return {
        "kind": "spark",
        "of": "pass rate" if judged else "mean",
        "x": times,
        "values": values,
        "span": _span(selection),
        # A fixed margin would hide the trend of small means, such as those of seconds.
        "margin": _RATE_MARGIN if judged else max(means) / 10 - min(means) / 10 or max(abs(means[0]), 1.0),
    }


@dataclass
class _Cell:
    evaluated: int = 0
    passed: int = 0
    failed: int = 0
    value_sum: float = 0.0

    @property
    def judged(self) -> int:
        return self.passed + self.failed


def _merged(
    series: Sequence[SeriesPoint], places: Sequence[Place], step_s: int
) -> tuple[dict[int, dict[Place, _Cell]], int]:
    """Returns the figures in steps that are long enough for a rate to mean something, and the length of a step."""
    points = [each for each in series if each.evaluated and (each.metric, each.level) in places]
    wanted = FEWEST_RESULTS * max(1, len(places))
    results = sum(each.evaluated for each in points)
    steps = len({each.begins_at for each in points})
    factor = 1
    while results * factor < wanted * steps and steps / factor > FEWEST_STEPS:
        factor *= 2
    found: dict[int, dict[Place, _Cell]] = {}
    for each in sorted(points, key=lambda each: each.begins_at):
        at = int(each.begins_at.timestamp()) // (step_s * factor) * step_s * factor
        cell = found.setdefault(at, {}).setdefault((each.metric, each.level), _Cell())
        cell.evaluated += each.evaluated
        cell.passed += each.passed
        cell.failed += each.failed
        cell.value_sum += (each.mean or 0.0) * each.evaluated
    return found, step_s * factor


def _lines(
    unit: str,
    step_s: int,
    times: list[int],
    lines: list[dict[str, Any]],
    marks: Sequence[ChartMark],
    selection: Selection,
    seen: Set[int],
    without_values: Sequence[Sequence[float]] = (),
) -> dict[str, Any]:
    return {
        "kind": "lines",
        "unit": unit,
        "step": step_s,
        "x": times,
        "lines": lines,
        # The script writes their names from left to right.
        "marks": [_mark(each) for each in _kept(marks)],
        "span": _span(selection),
        # Steps in which nothing at all was scored.
        "empty": [at for at in times if at not in seen],
        # Times in which a metric of the chart had results and no value.
        "without_values": without_values,
    }


def _kept(marks: Sequence[ChartMark]) -> list[ChartMark]:
    """Returns at most `MAX_MARKS` marks, by time: the newest changes of versions and configs, then the newest alerts."""
    newest = sorted(marks, key=lambda mark: mark.at, reverse=True)
    kept = sorted(newest, key=lambda mark: mark.interval is not None)[:MAX_MARKS]
    return sorted(kept, key=lambda mark: mark.at)


def _mark(mark: ChartMark) -> dict[str, Any]:
    found: dict[str, Any] = {"x": int(mark.at.timestamp()), "label": inert_text(mark.label)}
    if mark.interval is not None:
        found["interval"] = [int(bound.timestamp()) for bound in mark.interval]
    return found


def _spans(outages: Sequence[Outage], places: Sequence[Place]) -> list[list[float]]:
    drawn = {metric for metric, _ in places}
    return [[each.since.timestamp(), each.until.timestamp()] for each in outages if each.metric in drawn]


def _span(selection: Selection) -> list[float]:
    return [selection.since.timestamp(), selection.until.timestamp()]


def _times(selection: Selection, step_s: int) -> list[int]:
    """Returns when each step of the span begins, in seconds since 1970; also of steps without a result."""
    since, until = _span(selection)
    return list(range(int(since // step_s) * step_s, math.ceil(until), step_s))[:MAX_TIMES]


def _seen(series: Sequence[SeriesPoint], step_s: int) -> set[int]:
    return {int(each.begins_at.timestamp()) // step_s * step_s for each in series}


def _label(place: Place, places: Sequence[Place]) -> str:
    # The script reads it from JSON, in which an escape of the template is a character again.
    metric, level = map(inert_text, place)
    return metric if sum(name == metric for name, _ in places) == 1 else f"{metric}, {level}"


def _percent(share: float | None) -> float | None:
    return None if share is None else round(share * 100, 2)


def sparklines(
    metrics: Sequence[MetricFigures], series: Sequence[SeriesPoint], step_s: int, selection: Selection
) -> dict[Place, dict[str, Any] | None]:
    """Returns the small chart of each metric."""
    return {place: sparkline(series, place, step_s, selection) for place in by_place(metrics)}


def by_place(metrics: Sequence[MetricFigures]) -> dict[Place, MetricFigures]:
    """Returns the figures of each metric by its place."""
    return {(each.metric, each.level): each for each in metrics}
