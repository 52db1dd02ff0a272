"""Answers in which values of a dimension a metric differs from all other results, beyond chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from traceweir.streams.board.store.answers import MetricFigures, Slice, Slices
from traceweir.streams.board.store.differences import LEAST, Pair, differences_of, sample_of
from traceweir.streams.board.store.figures import added, figures_of, figures_of_results, rollups_of, sums
from traceweir.streams.board.store.rollups import FIGURES
from traceweir.streams.board.store.selection import Readable, Selection
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS

SHOWN = 12
"""Maximum number of slices of an answer."""
MAX_LABELLINGS = 5_000
"""Maximum number of different sets of labels; with more of them, labels are as many as results, and are not compared."""
_SLICED_BY = (*RESULT_DIMENSIONS, "scorer_version", "config_digest")
_Row = Mapping[str, Any]
_Known = tuple[str, str, _Row]
"""A dimension, one of its values, and the sums of the results with this value."""


class _Source(NamedTuple):
    """Where the sums of a metric at one level come from."""

    table: str
    where: str
    parameters: Mapping[str, Any]
    total: _Row
    """The sums of all results."""


def slices_of(store: Readable, selection: Selection, figures: Sequence[MetricFigures]) -> Slices:
    """Returns the slices of a metric that differ most, those that differ beyond chance first.

    A slice is compared with all other results, and the p-values are corrected for all slices of all dimensions, also for
    those that are not returned. Only one level is compared, because a session counts again in each of its invocations: that
    of sessions, or else the one with most verdicts. The results of a user and of a label are those that the store still has.

    Args:
        store: The store.
        selection: The metric, the span and the dimensions.
        figures: The figures of the metric at each level.

    Raises:
        StoreError: the store cannot answer.
    """
    with_values = [each for each in figures if each.evaluated]
    if not with_values:
        return Slices(level=None, tested=0, differing=[], left_out=[])
    has_verdicts = any(each.passed + each.failed for each in with_values)

    def rank(each: MetricFigures) -> tuple[bool, bool, int]:
        verdicts = each.passed + each.failed
        return bool(verdicts) or not has_verdicts, each.level == "session", verdicts or each.evaluated

    level = max(with_values, key=rank).level
    of_figures = _source(store, *rollups_of(selection), level)
    of_results = _source(store, *figures_of_results(selection, "level", "user_id", "labels"), level)
    compared = 0
    rows: list[tuple[_Known, _Row]] = []
    for source, name in [*((of_figures, name) for name in _SLICED_BY), (of_results, "user_id")]:
        farthest = _farthest(store, source, name)
        compared += int(farthest[0]["compared"]) if farthest else 0
        rows += [((name, row["slice_value"], row), source.total) for row in farthest]
    labelled = _of_labels(store, of_results)
    for each in labelled or ():
        if _is_compared(each[2], of_results.total):
            compared += 1
            rows.append((each, of_results.total))
    return Slices(
        level=level,
        tested=compared,
        differing=ranked(rows, compared, level),
        left_out=[] if labelled is not None else ["labels"],
    )


def ranked(rows: Sequence[tuple[_Known, _Row]], tested: int, level: str) -> list[Slice]:
    """Returns the slices of some rows, those that differ beyond chance first, and of these the one that surely differs most.

    Args:
        rows: The slices, each with the sums of all results.
        tested: The number of slices that were looked at; of each dimension, `rows` has those that are farthest from the
            others.
        level: The level of the results.
    """
    slices = {(name, value): (figures_of(row), _others(row, total)) for (name, value, row), total in rows}
    found = differences_of(
        {key: Pair(level, sample_of(others), sample_of(own)) for key, (own, others) in slices.items()}, tests=tested
    )
    listed = sorted(found, key=lambda key: (not found[key].differs, -found[key].surely, found[key].p_value or 0.0, key))
    return [
        Slice(
            dimension=key[0],
            value=key[1],
            of=found[key].of,
            others=found[key].numbers[0],
            difference=found[key].difference,
            difference_low=found[key].low,
            difference_high=found[key].high,
            p_value=found[key].p_value,
            differs=found[key].differs,
            **slices[key][0].model_dump(),
        )
        for key in listed[:SHOWN]
    ]


def _source(store: Readable, table: str, where: str, parameters: Mapping[str, Any], level: str) -> _Source:
    where = f"{where} AND level = $level"
    parameters = {**parameters, "level": level}
    (total,) = store.query(f"SELECT {sums()} FROM {table} AS every WHERE {where}", parameters)
    # The sums of no row are empty.
    return _Source(table, where, parameters, {name: total[name] or 0 for name in FIGURES})


def _farthest(store: Readable, source: _Source, name: str) -> list[dict[str, Any]]:
    """Returns the sums of the values of a dimension that are farthest from the others, and how many were compared."""
    total = source.total
    if total["passed"] + total["failed"]:
        number = "(passed + failed)"
        numbers = total["passed"] + total["failed"]
        amount = "passed"
    else:
        number = "evaluated"
        numbers = total["evaluated"]
        amount = "value_sum"
    others = f"($numbers - {number})"
    distance = f"abs({amount} / {number} - ($amount - {amount}) / {others}) / sqrt(1.0 / {number} + 1.0 / {others})"
    return store.query(
        f"SELECT *, {distance} AS distance, count(*) OVER () AS compared FROM (SELECT {name} AS slice_value, {sums()} "
        f"FROM {source.table} AS every WHERE {source.where} AND {name} IS NOT NULL GROUP BY {name}) AS sliced "
        f"WHERE {number} >= {LEAST} AND {others} >= {LEAST} ORDER BY distance DESC, slice_value LIMIT {SHOWN}",
        {**source.parameters, "amount": total[amount], "numbers": numbers},
    )


def _of_labels(store: Readable, source: _Source) -> list[_Known] | None:
    """Returns the sums of each value of each label; None if there are more than `MAX_LABELLINGS` sets of labels."""
    rows = store.query(
        f"SELECT labels, {sums()} FROM {source.table} AS every WHERE {source.where} AND labels IS NOT NULL "
        f"GROUP BY labels LIMIT {MAX_LABELLINGS + 1}",
        source.parameters,
    )
    if len(rows) > MAX_LABELLINGS:
        return None
    by_label: dict[tuple[str, str], list[_Row]] = {}
    for row in rows:
        for name, value in labels_in(row["labels"]):
            by_label.setdefault((f"label {name}", value), []).append(row)
    return [(name, value, added(rows)) for (name, value), rows in sorted(by_label.items())]


def labels_in(text: str) -> list[tuple[str, str]]:
    """Returns the labels of a result; none if the text is no object of texts, which only a forged record can have."""
    try:
        found = orjson.loads(text)
    except ValueError:
        return []
    return [each for each in found.items() if isinstance(each[1], str)] if isinstance(found, dict) else []


def _is_compared(row: _Row, total: _Row) -> bool:
    counted = ("passed", "failed") if total["passed"] + total["failed"] else ("evaluated",)
    own = sum(row[name] for name in counted)
    return bool(own >= LEAST and sum(total[name] for name in counted) - own >= LEAST)


def _others(row: _Row, total: _Row) -> Any:
    return figures_of({name: total[name] - row[name] for name in FIGURES})
