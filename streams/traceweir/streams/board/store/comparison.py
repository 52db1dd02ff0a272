"""Answers how two selections differ, for example two versions of an agent or two spans of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from traceweir.streams.base.statistics.rate_intervals import mean_difference_interval, rate_difference_interval
from traceweir.streams.board.store.answers import Comparison, MetricDifference
from traceweir.streams.board.store.figures import added, judged_figures_of, rollups_of, rows_by_place
from traceweir.streams.board.store.selection import Readable, Selection

_VERSIONS = 200
"""How many versions of all agents are looked at."""


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


def last_versions(store: Readable, selection: Selection) -> tuple[str, str] | None:
    """Returns the two versions of an agent of which the newer one appeared last in a span, the older one first.

    None if no agent has two versions there.

    Raises:
        StoreError: the store cannot answer.
    """
    source, where, parameters = rollups_of(selection)
    rows = store.query(
        f"SELECT agent_name, agent_version FROM {source} WHERE {where} AND agent_version IS NOT NULL "
        "GROUP BY agent_name, agent_version HAVING sum(n) > 0 "
        f"ORDER BY min(minute) DESC, agent_version DESC, agent_name LIMIT {_VERSIONS}",
        parameters,
    )
    newest: dict[str | None, str] = {}
    for row in rows:
        agent = row["agent_name"]
        if agent in newest:
            return row["agent_version"], newest[agent]
        newest[agent] = row["agent_version"]
    return None


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
