"""Answers with the scores of a criterion as labels are compared with them."""

from __future__ import annotations

from typing import Any

from traceweir.schemas.score import Score
from traceweir.streams.board.store.review import drawn_below, review_purpose
from traceweir.streams.board.store.selection import Readable, Selection, in_utc
from traceweir.streams.board.store.slices import labels_in
from traceweir.streams.board.store.tables import KEPT_SCORES

MAX_JUDGED = 20_000
"""About how many scores of a criterion labels are compared with at most. More would make an interval hardly narrower."""


def judged_scores(store: Readable, selection: Selection) -> tuple[list[Score], int]:
    """Returns the scores of the selected criterion that count, without their texts, and how many there are.

    Of more than `MAX_JUDGED`, those with the lowest points of `review_point` are returned: a random part, because the
    points know nothing of verdicts, with whatever was drawn for review by a lower share.

    Raises:
        StoreError: the store cannot answer.
    """
    where, parameters = selection.where("occurred_at")
    (found,) = store.query(f"SELECT count(*) AS n FROM results WHERE {where}", parameters)
    if found["n"] > MAX_JUDGED:
        where = f"{where} AND {drawn_below(MAX_JUDGED / found['n'])}"
        parameters |= review_purpose(selection)
    names = ", ".join(f'"{name}"' for name in (*KEPT_SCORES.column_names, "not_evaluated_because", "labels"))
    rows = store.query(f"SELECT {names} FROM results WHERE {where} ORDER BY occurred_at, result_id", parameters)
    # What the store has was a score on the topic; its texts were not read.
    return [_score(row) for row in rows], found["n"]


def _score(row: dict[str, Any]) -> Score:
    labels = dict(labels_in(row["labels"])) if row["labels"] is not None else None
    return Score.model_construct(**{**row, "occurred_at": in_utc(row["occurred_at"]), "labels": labels})
