"""Reads the figures per minute, which the table `rollups` has in parts that have to be added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from traceweir.streams.base.statistics.rate_intervals import rate_interval
from traceweir.streams.board.store.answers import Figures, JudgedFigures, JudgeFigures
from traceweir.streams.board.store.rollups import FIGURES, ROLLUP_COLUMNS
from traceweir.streams.board.store.selection import Readable, Selection, stored
from traceweir.streams.board.store.tables import REASONS

Place = tuple[str, str]
"""A metric and a level."""
_BY_MINUTE = "(SELECT * FROM rollups UNION ALL SELECT * FROM rollup_changes)"
_SHORTEST = timedelta(hours=2)
"""Spans that are shorter are read by the minute."""


def rollups_of(
    selection: Selection, step_s: int = 3_600, *, of_results: bool = True
) -> tuple[str, str, dict[str, Any]]:
    """Returns the source of the figures of a span, the condition for its rows, and the parameters.

    Whole hours come from `rollup_hours`, which has a fraction of the rows, and the rest from the figures per minute.

    Args:
        selection: The span and the dimensions.
        step_s: Seconds of the steps into which the figures are divided.
        of_results: Whether the metric and the judge of the selection are conditions.
    """
    where, parameters = selection.where("minute", of_results=of_results)
    if step_s % 3_600 or selection.until - selection.since < _SHORTEST:
        return _BY_MINUTE, where, parameters
    columns = ", ".join(name for name in ROLLUP_COLUMNS if name != "minute")
    begin = _hour_from(stored(selection.since))
    end = _hour_of(stored(selection.until))
    parameters |= {"first_hour": begin, "end_hour": end}
    # The minute of an hour is in this hour. ClickHouse has its rows in the order of minutes, and needs to be told those.
    hours = "hour >= $first_hour AND hour < $end_hour AND minute >= $first_hour AND minute < $end_hour"
    rest = "minute >= $since AND minute < $first_hour OR minute >= $end_hour AND minute < $until"
    source = (
        f"(SELECT hour AS minute, {columns} FROM rollup_hours WHERE {hours} UNION ALL "
        f"SELECT * FROM rollups WHERE {rest} UNION ALL SELECT * FROM rollup_changes)"
    )
    return source, where, parameters


def sums() -> str:
    """Returns the columns of a query that adds up all figures, under their own names."""
    return ", ".join(f"sum({name}) AS {name}" for name in FIGURES)


def rows_by_place(store: Readable, selection: Selection) -> dict[Place, list[dict[str, Any]]]:
    """Returns the sums of each metric and level, one row for each judge; a row without a judge has None.

    A judge of which only replaced results are left has a row too, because it was paid.

    Raises:
        StoreError: the store cannot answer.
    """
    source, where, parameters = rollups_of(selection)
    rows = store.query(
        f"SELECT metric, level, judge, {sums()} FROM {source} WHERE {where} GROUP BY metric, level, judge "
        "HAVING sum(n) > 0 OR sum(input_tokens) + sum(output_tokens) + sum(usd) > 0 "
        "ORDER BY metric, level, sum(n) DESC, judge",
        parameters,
    )
    found: dict[Place, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["metric"], row["level"]), []).append(row)
    return {place: rows for place, rows in found.items() if any(row["n"] for row in rows)}


def added(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the sums of rows with the columns of `sums`."""
    return {name: sum(row[name] for row in rows) for name in FIGURES}


def judged_figures_of(rows: Sequence[Mapping[str, Any]]) -> JudgedFigures:
    """Returns what the rows of a metric say, which `rows_by_place` has returned: together, and judge by judge."""
    with_values = [row for row in rows if row["evaluated"]]
    by_judge = with_values if any(row["judge"] is not None for row in with_values) else []
    return JudgedFigures(
        **figures_of(added(rows)).model_dump(),
        by_judge=[JudgeFigures(judge=row["judge"], **figures_of(row).model_dump()) for row in by_judge],
    )


def figures_of(row: Mapping[str, Any]) -> Figures:
    """Returns what a row with the columns of `sums` says."""
    evaluated, passed, failed = (int(row[name]) for name in ("evaluated", "passed", "failed"))
    judged = passed + failed
    low, high = rate_interval(passed, judged) if judged else (None, None)
    return Figures(
        results=int(row["n"]),
        evaluated=evaluated,
        passed=passed,
        failed=failed,
        informational=evaluated - judged,
        not_evaluated={reason: int(row[reason]) for reason in REASONS if row[reason]},
        mean=row["value_sum"] / evaluated if evaluated else None,
        pass_rate=passed / judged if judged else None,
        pass_rate_low=low,
        pass_rate_high=high,
        input_tokens=int(row["input_tokens"]),
        output_tokens=int(row["output_tokens"]),
        usd=row["usd"],
    )


def _hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def _hour_from(moment: datetime) -> datetime:
    """Returns the first full hour at this time or after it."""
    hour = _hour_of(moment)
    return hour if hour == moment else hour + timedelta(hours=1)
