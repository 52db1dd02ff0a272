"""Answers how two selections differ, for example two versions of an agent or two spans of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from traceweir.streams.base.statistics.rate_intervals import mean_difference_interval, rate_difference_interval
from traceweir.streams.board.store.answers import Comparison, MetricDifference
from traceweir.streams.board.store.figures import added, judged_figures_of, rows_by_place
from traceweir.streams.board.store.selection import Readable, Selection


def compare(store: Readable, first: Selection, second: Selection) -> Comparison:
    """Returns the figures of both selections and their differences, second minus first.

    Raises:
        StoreError: the store cannot answer.
    """
    before = rows_by_place(store, first)
    after = rows_by_place(store, second)
    return Comparison(
        metrics=[
            _difference(*place, before.get(place, ()), after.get(place, ()))
            for place in sorted(before.keys() | after.keys())
        ]
    )


def _difference(
    metric: str, level: str, first_rows: Sequence[Mapping[str, Any]], second_rows: Sequence[Mapping[str, Any]]
) -> MetricDifference:
    first, second = (judged_figures_of(rows) if rows else None for rows in (first_rows, second_rows))
    before = added(first_rows)
    after = added(second_rows)
    rate = mean = rate_bounds = mean_bounds = None
    if first is not None and second is not None and first.pass_rate is not None and second.pass_rate is not None:
        rate = second.pass_rate - first.pass_rate
        rate_bounds = rate_difference_interval(
            (first.passed, first.passed + first.failed), (second.passed, second.passed + second.failed)
        )
    if before["evaluated"] and after["evaluated"]:
        mean = after["value_sum"] / after["evaluated"] - before["value_sum"] / before["evaluated"]
        mean_bounds = mean_difference_interval(_moments(before), _moments(after))
    return MetricDifference(
        metric=metric,
        level=level,
        first=first,
        second=second,
        pass_rate_difference=rate,
        pass_rate_difference_low=rate_bounds and rate_bounds[0],
        pass_rate_difference_high=rate_bounds and rate_bounds[1],
        mean_difference=mean,
        mean_difference_low=mean_bounds and mean_bounds[0],
        mean_difference_high=mean_bounds and mean_bounds[1],
    )


def _moments(row: Mapping[str, Any]) -> tuple[int, float, float]:
    return int(row["evaluated"]), row["value_sum"], row["value_square_sum"]
