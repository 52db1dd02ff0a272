"""Answers how many results had no value, and how many records became dead letters, over time."""

from __future__ import annotations

from traceweir.streams.board.store.figures import rollups_of
from traceweir.streams.board.store.missing_answers import CountPoint
from traceweir.streams.board.store.selection import Readable, Selection, in_utc
from traceweir.streams.board.store.tables import REASONS

_STEP = "make_timestamp((epoch_us({time}) // {micros}) * {micros})"


def not_scored_over_time(store: Readable, selection: Selection, step_s: int) -> list[CountPoint]:
    """Returns the number of results without a value in each step of time, by reason; a step without one is left out.

    Raises:
        StoreError: the store cannot answer.
    """
    source, where, parameters = rollups_of(selection, step_s)
    sums = ", ".join(f"sum({reason}) AS {reason}" for reason in REASONS)
    rows = store.query(
        f"SELECT {_begin('minute', step_s)} AS begins_at, {sums} FROM {source} AS every WHERE {where} "
        "GROUP BY ALL ORDER BY begins_at",
        parameters,
    )
    return [
        CountPoint(begins_at=in_utc(row["begins_at"]), reason=reason, number=int(row[reason]))
        for row in rows
        for reason in REASONS
        if row[reason]
    ]


def dead_letters_over_time(store: Readable, selection: Selection, step_s: int) -> list[CountPoint]:
    """Returns the number of dead letters in each step of time, by reason; a step without one is left out.

    Raises:
        StoreError: the store cannot answer.
    """
    rows = store.query(
        f"SELECT {_begin('written_at', step_s)} AS begins_at, reason, count(*) AS number FROM dead_letters "
        "WHERE written_at >= $since AND written_at < $until GROUP BY ALL ORDER BY begins_at, reason",
        selection.span,
    )
    return [CountPoint(**row | {"begins_at": in_utc(row["begins_at"])}) for row in rows]


def _begin(time: str, step_s: int) -> str:
    return _STEP.format(time=time, micros=step_s * 1_000_000)
