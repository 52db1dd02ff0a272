"""Answers what is known of one metric: its values, their course, where they differ, and which results to look at."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from traceweir.scorers.base import Direction
from traceweir.streams.base.statistics.rate_intervals import rate_interval
from traceweir.streams.board.store.answers import (
    DimensionValues,
    MetricOverTime,
    MetricResult,
)
from traceweir.streams.board.store.direction import direction_of
from traceweir.streams.board.store.figures import rollups_of
from traceweir.streams.board.store.overview import changes_in, figures_with_quantiles, series_of, step_of
from traceweir.streams.board.store.selection import Readable, Selection, in_utc
from traceweir.streams.board.store.slices import slices_of
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS
from traceweir.streams.board.store.value_counts import Bin, CategoryCount

BINS = 20
"""Number of ranges of a distribution."""
MAX_RESULTS = 10
MAX_CATEGORIES = 100
"""Maximum number of answers at a level that are counted; a criterion has 50 categories at most."""
MAX_VALUES = 100
"""Maximum number of values of a dimension that `dimension_values` returns."""


def metric(store: Readable, selection: Selection) -> MetricOverTime:
    """Returns what is known of the selected metric in a span of time.

    Raises:
        ValueError: the selection has no metric.
        StoreError: the store cannot answer.
    """
    if selection.metric is None:
        raise ValueError("a metric has to be selected")
    step_s = step_of((selection.until - selection.since).total_seconds())
    figures = figures_with_quantiles(store, selection)
    direction = direction_of(store, selection, selection.metric)
    return MetricOverTime(
        metric=selection.metric,
        since=selection.since,
        until=selection.until,
        step_s=step_s,
        figures=figures,
        series=series_of(store, selection, step_s),
        changes=changes_in(store, selection),
        distribution=_distribution(store, selection),
        categories=_categories(store, selection),
        slices=slices_of(store, selection, figures),
        direction=direction,
        worst=_worst(store, selection, direction),
        nearest=[
            *_results(
                store,
                selection,
                "status = 'FAILED' AND threshold IS NOT NULL",
                "abs(threshold - value)",
                MAX_RESULTS // 2,
            ),
            *_results(
                store,
                selection,
                "status = 'PASSED' AND threshold IS NOT NULL",
                "abs(value - threshold)",
                MAX_RESULTS // 2,
            ),
        ],
    )


def dimension_values(store: Readable, selection: Selection) -> DimensionValues:
    """Returns the values of dimensions and the metrics that results of a selection have.

    What is selected of a dimension, or the metric, does not apply to its own values, so that another one can be selected.

    Raises:
        StoreError: the store cannot answer.
    """
    found: dict[str, list[str]] = {}
    for name in (*RESULT_DIMENSIONS, "metric"):
        others = {each: value for each, value in selection.dimensions.items() if each != name}
        metric = selection.metric if name != "metric" else None
        source, where, parameters = rollups_of(replace(selection, dimensions=others, metric=metric))
        rows = store.query(
            f"SELECT {name} AS found, sum(n) AS results FROM {source} WHERE {where} AND {name} IS NOT NULL "
            f"GROUP BY {name} HAVING sum(n) > 0 ORDER BY results DESC, found LIMIT {MAX_VALUES}",
            parameters,
        )
        found[name] = [row["found"] for row in rows]
    metrics = sorted(found.pop("metric"))
    return DimensionValues(dimensions=found, metrics=metrics)


def _distribution(store: Readable, selection: Selection) -> list[Bin]:
    where, parameters = selection.where("occurred_at")
    (bounds,) = store.query(
        f"SELECT min(value) AS low, max(value) AS high FROM results WHERE value IS NOT NULL AND {where}", parameters
    )
    low = bounds["low"]
    high = bounds["high"]
    if low is None:
        return []
    width = (high - low) / BINS
    if not width:
        (row,) = store.query(f"SELECT count(*) AS n FROM results WHERE value IS NOT NULL AND {where}", parameters)
        return [Bin(low=low, high=high, results=row["n"])]
    rows = store.query(
        f"SELECT least(CAST(floor((value - $low) / $width) AS INTEGER), {BINS - 1}) AS bin, count(*) AS n FROM results "
        f"WHERE value IS NOT NULL AND {where} GROUP BY bin",
        parameters | {"low": low, "width": width},
    )
    numbers = {row["bin"]: row["n"] for row in rows}
    return [
        Bin(low=low + at * width, high=low + (at + 1) * width if at < BINS - 1 else high, results=numbers.get(at, 0))
        for at in range(BINS)
    ]


def _categories(store: Readable, selection: Selection) -> list[CategoryCount]:
    where, parameters = selection.where("occurred_at")
    rows = store.query(
        "SELECT level, category, min(value) AS least, max(value) AS most, count(*) AS n FROM results "
        f"WHERE category IS NOT NULL AND {where} GROUP BY level, category ORDER BY level, n DESC, category",
        parameters,
    )
    totals = Counter[str]()
    for row in rows:
        totals[row["level"]] += row["n"]
    shown = Counter[str]()
    found = []
    for row in rows:
        level = row["level"]
        shown[level] += 1
        if shown[level] > MAX_CATEGORIES:
            continue
        low, high = rate_interval(row["n"], totals[level])
        found.append(
            CategoryCount(
                level=level,
                category=row["category"],
                value=row["least"] if row["least"] == row["most"] else None,
                results=row["n"],
                share=row["n"] / totals[level],
                share_low=low,
                share_high=high,
            )
        )
    return found


def _worst(store: Readable, selection: Selection, direction: Direction | None) -> list[MetricResult]:
    if direction in (None, "neutral"):
        return []
    order = "value" if direction == "higher" else "value DESC"
    return _results(store, selection, "value IS NOT NULL", order, MAX_RESULTS)


def _results(store: Readable, selection: Selection, condition: str, order: str, limit: int) -> list[MetricResult]:
    where, parameters = selection.where("occurred_at")
    columns = ", ".join(MetricResult.model_fields)
    rows = store.query(
        f"SELECT {columns} FROM results WHERE {condition} AND {where} ORDER BY {order}, occurred_at DESC, result_id "
        f"LIMIT {limit}",
        parameters,
    )
    return [MetricResult(**row | {"occurred_at": in_utc(row["occurred_at"])}) for row in rows]
