"""Answers which values of a metric are better."""

from __future__ import annotations

from traceweir.scorers.base import Direction
from traceweir.scorers.evaluation.description import description_of
from traceweir.streams.board.store.selection import Readable, Selection


def direction_of(store: Readable, selection: Selection, metric: str) -> Direction | None:
    """Returns which values of the selected metric are better; None if nothing says so.

    The scorer says it. No scorer is installed here for a criterion of one's own, and for some plugins. Then a verdict says
    it: a value above its threshold that has PASSED, or one below it that has FAILED, is of a metric of which more is better.

    Raises:
        StoreError: the store cannot answer.
    """
    if (direction := direction_of_scorer(metric)) is not None:
        return direction
    where, parameters = selection.where("occurred_at")
    (row,) = store.query(
        "SELECT count(*) FILTER ((status = 'PASSED') = (value > threshold)) AS higher, count(*) AS verdicts FROM results "
        f"WHERE value <> threshold AND status IN ('PASSED', 'FAILED') AND {where}",
        parameters,
    )
    if row["verdicts"] and row["higher"] in (0, row["verdicts"]):
        return "higher" if row["higher"] else "lower"
    return None


def direction_of_scorer(metric: str) -> Direction | None:
    """Returns which values of a metric are better; None if no scorer of this name is installed."""
    described = description_of(metric)
    return described.direction if described is not None else None
