"""Answers how two selections differ, for example two versions of an agent or two spans of time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from traceweir.streams.base.statistics.rate_intervals import mean_difference_interval, rate_difference_interval
from traceweir.streams.board.store.answers import Comparison, MetricDifference
from traceweir.streams.board.store.figures import added, judged_figures_of, rollups_of, rows_by_place
from traceweir.streams.board.store.moves import differing_rates, judged
from traceweir.streams.board.store.selection import Readable, Selection

_VERSIONS = 200
"""How many versions of all agents are looked at, those with most results."""


def compare(store: Readable, first: Selection, second: Selection) -> Comparison:
    """Returns the figures of both selections and their differences, second minus first.

    Raises:
        StoreError: the store cannot answer.
    """
    before = rows_by_place(store, first)
    after = rows_by_place(store, second)
    metrics = [
        _difference(*place, before.get(place, ()), after.get(place, ()))
        for place in sorted(before.keys() | after.keys())
    ]
    differing = differing_rates(
        {
            (each.metric, each.level): (judged(each.first), judged(each.second))
            for each in metrics
            if each.first is not None and each.second is not None
        }
    )
    return Comparison(
        metrics=[each.model_copy(update={"differs": (each.metric, each.level) in differing}) for each in metrics]
    )


class LastVersions(NamedTuple):
    """Two versions of one agent."""

    agent: str | None
    """Name of the agent; None: its results have no name."""
    older: str
    newer: str


def last_versions(store: Readable, selection: Selection) -> LastVersions | None:
    """Returns the two newest versions of an agent in a span; of several agents, that of which a version came last.

    A version is as new as its first result, which can be older than the span: both can run at the same time. None if no
    agent has two versions there.

    Raises:
        StoreError: the store cannot answer.
    """
    source, where, parameters = rollups_of(selection)
    rows = store.query(
        "SELECT agent_name, agent_version, min(minute) AS first_seen_at FROM ("
        "SELECT minute, n, agent_name, agent_version FROM rollup_hours UNION ALL "
        "SELECT minute, n, agent_name, agent_version FROM rollup_changes) AS known "
        "WHERE n > 0 AND (coalesce(agent_name, ''), agent_version) IN ("
        f"SELECT coalesce(agent_name, ''), agent_version FROM {source} WHERE {where} AND agent_version IS NOT NULL "
        f"GROUP BY agent_name, agent_version HAVING sum(n) > 0 ORDER BY sum(n) DESC LIMIT {_VERSIONS}) "
        "GROUP BY agent_name, agent_version",
        parameters,
    )
    versions: dict[str | None, list[str]] = {}
    for row in sorted(rows, key=lambda row: (row["first_seen_at"], _natural(row["agent_version"])), reverse=True):
        versions.setdefault(row["agent_name"], []).append(row["agent_version"])
    # The agents are in the order of their newest versions.
    return next((LastVersions(agent, found[1], found[0]) for agent, found in versions.items() if len(found) > 1), None)


def _natural(version: str) -> list[tuple[bool, int, str]]:
    """Returns a key by which 1.9 is before 1.10."""
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", version)]


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
