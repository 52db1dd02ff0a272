"""Answers in which values of a dimension the pass rate of a metric differs from all other results, beyond chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from traceweir.streams.base.statistics.rate_intervals import rate_difference_interval
from traceweir.streams.base.statistics.significance import exact_rates, holm
from traceweir.streams.board.store.answers import MetricFigures, Slice, Slices
from traceweir.streams.board.store.figures import figures_of, rollups_of, sums
from traceweir.streams.board.store.moves import DEPENDENT, LEAST, LEVEL_OF_PROOF
from traceweir.streams.board.store.selection import Readable, Selection
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS

SHOWN = 12
"""Maximum number of slices of an answer."""
_SLICED_BY = (*RESULT_DIMENSIONS, "scorer_version", "config_digest")


def slices_of(store: Readable, selection: Selection, figures: Sequence[MetricFigures]) -> Slices:
    """Returns the slices of a metric that differ most, those that differ beyond chance first.

    A slice is compared with all other results by Fisher's exact test, and the p-values are corrected by Holm for all
    slices of all dimensions, also for those that are not returned. The test takes results as independent, so invocations
    are compared and not tested.

    Only one level is compared, because a session counts again in each of its invocations: that of sessions, or else the
    one with most verdicts.

    Args:
        store: The store.
        selection: The metric, the span and the dimensions.
        figures: The figures of the metric at each level.

    Raises:
        StoreError: the store cannot answer.
    """
    judged = [each for each in figures if each.passed + each.failed]
    if not judged:
        return Slices(level=None, tested=0, differing=[])
    level = max(judged, key=lambda each: (each.level == "session", each.passed + each.failed))
    rows: list[tuple[str, Mapping[str, Any]]] = []
    tested = 0
    for name in _SLICED_BY:
        farthest = _most_different(store, selection, name, level.level, level.passed, level.failed)
        tested += int(farthest[0]["tested"]) if farthest else 0
        rows += [(name, row) for row in farthest]
    found = ranked(rows, tested, level.passed, level.failed)
    if level.level == DEPENDENT:
        found = [each.model_copy(update={"p_value": None, "differs": False}) for each in found]
    return Slices(level=level.level, tested=tested, differing=found)


def ranked(rows: Sequence[tuple[str, Mapping[str, Any]]], tested: int, passed: int, failed: int) -> list[Slice]:
    """Returns the slices of some rows, those that differ beyond chance first, and of these the one that surely differs most.

    Args:
        rows: A dimension, and the sums of one of its values with the columns `slice_value` and `distance`.
        tested: The number of slices that were looked at; `rows` has those with the largest `distance`.
        passed: How many results of all passed.
        failed: How many results of all failed.
    """
    rows = sorted(rows, key=lambda each: (-each[1]["distance"], each[0], each[1]["slice_value"]))
    slices = [_slice(name, row, passed, failed) for name, row in rows[:SHOWN]]
    corrected = holm([each.p_value for each in slices], tests=tested)
    slices = [
        each.model_copy(update={"p_value": p_value, "differs": p_value <= LEVEL_OF_PROOF})
        for each, p_value in zip(slices, corrected, strict=True)
        if p_value is not None
    ]
    return sorted(slices, key=lambda each: (not each.differs, -_surely(each)))


def _most_different(
    store: Readable, selection: Selection, name: str, level: str, passed: int, failed: int
) -> list[dict[str, Any]]:
    """Returns the sums of the values of a dimension, with how far each is from the others, the farthest first."""
    source, where, parameters = rollups_of(selection)
    judged = "(passed + failed)"
    others = f"($judged - {judged})"
    distance = f"abs(passed / {judged} - ($passed - passed) / {others}) / sqrt(1.0 / {judged} + 1.0 / {others})"
    return store.query(
        f"SELECT *, {distance} AS distance, count(*) OVER () AS tested FROM (SELECT {name} AS slice_value, {sums()} "
        f"FROM {source} WHERE {where} AND level = $level AND {name} IS NOT NULL GROUP BY {name}) AS sliced "
        f"WHERE {judged} >= {LEAST} AND {others} >= {LEAST} ORDER BY distance DESC, slice_value LIMIT {SHOWN}",
        {**parameters, "level": level, "passed": passed, "judged": passed + failed},
    )


def _slice(name: str, row: Mapping[str, Any], passed: int, failed: int) -> Slice:
    figures = figures_of(row)
    others = passed - figures.passed, passed + failed - figures.passed - figures.failed
    own = figures.passed, figures.passed + figures.failed
    low, high = rate_difference_interval(others, own)
    return Slice(
        dimension=name,
        value=row["slice_value"],
        difference=own[0] / own[1] - others[0] / others[1],
        difference_low=low,
        difference_high=high,
        p_value=exact_rates(others, own),
        differs=False,
        **figures.model_dump(),
    )


def _surely(found: Slice) -> float:
    """Returns how much a slice differs at least: the distance of the interval from zero; 0 if it contains zero."""
    return max(0.0, found.difference_low, -found.difference_high)
