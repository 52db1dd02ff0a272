"""Answers how two selections differ, for example two versions of an agent or two spans of time."""

from __future__ import annotations

import re
from typing import NamedTuple

from traceweir.streams.base.statistics.moments import Moments, mean_difference
from traceweir.streams.base.statistics.rate_intervals import rate_difference_interval
from traceweir.streams.board.store.answers import Comparison, JudgedFigures, MetricDifference
from traceweir.streams.board.store.diff import TooManyResultsError, diff
from traceweir.streams.board.store.differences import (
    DEPENDENT,
    LEAST,
    Pair,
    TestedDifference,
    corrected,
    sample_of,
    uncorrected,
)
from traceweir.streams.board.store.figures import Place, in_order, judged_figures_of, rollups_of, rows_by_place
from traceweir.streams.board.store.selection import Readable, Selection
from traceweir.streams.lab.comparison.compare import NoOverlapError
from traceweir.streams.lab.comparison.document import Diff, MetricComparison

_LARGEST_VALUE = 1e100
"""Values that are larger have no variance: a sum of their squares is no number."""
_VERSIONS = 200
"""How many versions of all agents are looked at, those with most results."""


class Sides(NamedTuple):
    """Two selections side by side."""

    comparison: Comparison
    pairs: Diff | None
    """The metrics that are compared by pairs, with their flips; None if there are none."""


def compare(store: Readable, first: Selection, second: Selection) -> Comparison:
    """Returns the figures of both selections and their differences, second minus first.

    Raises:
        StoreError: the store cannot answer.
    """
    return compare_with_pairs(store, first, second).comparison


def compare_with_pairs(store: Readable, first: Selection, second: Selection) -> Sides:
    """Returns the same as `compare`, and the pairs of results.

    A metric is compared by pairs if at least half of the values of its smaller side have a partner on the other side, which
    is the same result of the same session; else all results of both sides are compared.

    Raises:
        StoreError: the store cannot answer.
    """
    before, after = (_figures_by_place(store, selection) for selection in (first, second))
    common = _common_sessions(store, first, second) if first != second else 0
    pairs: Diff | None = None
    no_pairs_because = None
    if common:
        try:
            pairs = diff(store, first, second)
        except (NoOverlapError, TooManyResultsError) as error:
            no_pairs_because = str(error)
    by_pairs = {(each.metric, each.level): each for each in _paired(pairs)}
    samples = {
        place: Pair(place[1], sample_of(before[place]), sample_of(after[place]))
        for place in before.keys() & after.keys() - by_pairs.keys()
    }
    found = uncorrected(samples) | {
        place: difference for place, each in by_pairs.items() if (difference := _by_pairs(each)) is not None
    }
    differing = corrected(found, sum(each.p_value is not None for each in found.values()))
    metrics = []
    for place in sorted(before.keys() | after.keys(), key=in_order):
        shown = _difference(*place, before.get(place), after.get(place))
        if place in by_pairs:
            shown = _of_pairs(shown, by_pairs[place])
        if place in differing:
            tested = differing[place]
            shown = shown.model_copy(update={"p_value": tested.p_value, "differs": tested.differs})
        metrics.append(shown)
    comparison = Comparison(metrics=metrics, common_sessions=common, no_pairs_because=no_pairs_because)
    if pairs is None or not by_pairs:
        return Sides(comparison, None)
    kept = [each for each in pairs.metrics if each.pairing == "paired"]
    gate = pairs.gate if pairs.gate is not None and pairs.gate.pairing == "paired" else None
    return Sides(comparison, pairs.model_copy(update={"metrics": kept, "gate": gate}))


def _common_sessions(store: Readable, first: Selection, second: Selection) -> int:
    (one, parameters), (other, others) = (
        selection.where("occurred_at", side=side) for selection, side in ((first, "first_"), (second, "second_"))
    )
    (found,) = store.query(
        f"SELECT count(*) AS n FROM (SELECT DISTINCT key FROM results WHERE {one}) AS one JOIN "
        f"(SELECT DISTINCT key FROM results WHERE {other}) AS other ON one.key = other.key",
        parameters | others,
    )
    return int(found["n"])


def _paired(pairs: Diff | None) -> list[MetricComparison]:
    if pairs is None:
        return []
    every = [*pairs.metrics, *([pairs.gate] if pairs.gate is not None else [])]
    return [each for each in every if each.pairing == "paired"]


def _by_pairs(each: MetricComparison) -> TestedDifference | None:
    """Returns the difference of a metric by pairs; None with fewer pairs than are compared."""
    rate, of = (each.pass_rate, "pass rate") if each.pass_rate is not None else (each.value, "mean")
    if rate is None or rate.base_values < LEAST:
        return None
    p_value = rate.p_value
    if each.verdicts is not None and each.level != DEPENDENT:
        # An exact test, which also holds where all sessions differ by the same amount.
        p_value = each.verdicts.p_value
    low, high = (rate.difference if bound is None else bound for bound in (rate.low, rate.high))
    return TestedDifference(
        "pass rate" if of == "pass rate" else "mean",
        (rate.base_values,) * 2,
        rate.difference,
        low,
        high,
        p_value,
        differs=False,
    )


def _of_pairs(shown: MetricDifference, each: MetricComparison) -> MetricDifference:
    changes: dict[str, object] = {"compared": "pairs", "pairs": each.pairs_with_values}
    for name, found in (("pass_rate", each.pass_rate), ("mean", each.value)):
        # Without a p-value all sessions differ by the same amount, which says nothing about others.
        is_known = found is not None and found.p_value is not None
        changes[f"{name}_difference"] = found.difference if found is not None else None
        changes[f"{name}_difference_low"] = found.low if found is not None and is_known else None
        changes[f"{name}_difference_high"] = found.high if found is not None and is_known else None
    return shown.model_copy(update=changes)


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
        "SELECT agent_name, value AS agent_version, min(minute) AS first_seen_at FROM first_results "
        "WHERE kind = 'agent_version' AND (coalesce(agent_name, ''), value) IN ("
        f"SELECT coalesce(agent_name, ''), agent_version FROM {source} WHERE {where} AND agent_version IS NOT NULL "
        f"GROUP BY agent_name, agent_version HAVING sum(n) > 0 ORDER BY sum(n) DESC LIMIT {_VERSIONS}) "
        "GROUP BY agent_name, value",
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


def _figures_by_place(store: Readable, selection: Selection) -> dict[Place, JudgedFigures]:
    """Returns the figures of each metric and level, with variances that keep their digits where results are still stored."""
    known = _variances(store, selection)
    found = {}
    for place, rows in rows_by_place(store, selection).items():
        figures = judged_figures_of(rows)
        number, variance = known.get(place, (0, None))
        if number == figures.evaluated:
            figures = figures.model_copy(update={"variance": variance})
        found[place] = figures
    return found


def _variances(store: Readable, selection: Selection) -> dict[Place, tuple[int, float | None]]:
    """Returns the number of values and their variance, from the results themselves: sums of squares lose digits."""
    where, parameters = selection.where("occurred_at")
    rows = store.query(
        "SELECT metric, level, count(value) AS number, var_samp(value) AS variance FROM results "
        f"WHERE abs(value) <= {_LARGEST_VALUE} AND {where} GROUP BY metric, level HAVING count(value) > 1",
        parameters,
    )
    return {(row["metric"], row["level"]): (row["number"], row["variance"]) for row in rows}


def _difference(metric: str, level: str, first: JudgedFigures | None, second: JudgedFigures | None) -> MetricDifference:
    found = MetricDifference(metric=metric, level=level, first=first, second=second)
    if first is None or second is None:
        return found
    changes: dict[str, float | None] = {}
    if first.pass_rate is not None and second.pass_rate is not None:
        low, high = rate_difference_interval(
            (first.passed, first.passed + first.failed), (second.passed, second.passed + second.failed)
        )
        changes = {
            "pass_rate_difference": second.pass_rate - first.pass_rate,
            "pass_rate_difference_low": low,
            "pass_rate_difference_high": high,
        }
    if first.mean is not None and second.mean is not None:
        changes["mean_difference"] = second.mean - first.mean
        means = mean_difference(
            Moments(first.evaluated, first.mean, first.variance),
            Moments(second.evaluated, second.mean, second.variance),
        )
        if means is not None:
            changes |= {"mean_difference_low": means.low, "mean_difference_high": means.high}
    return found.model_copy(update=changes)
