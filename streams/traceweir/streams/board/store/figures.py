"""Reads the figures per minute, which the table `rollups` has in parts that have to be added up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from traceweir.streams.base.statistics.moments import Moments
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
    selection: Selection, step_s: int = 3_600, *, of_results: bool = True, divided_at: Iterable[datetime] = ()
) -> tuple[str, str, dict[str, Any]]:
    """Returns the source of the figures of a span, the condition for its rows, and the parameters.

    Whole hours come from `rollup_hours`, which has a fraction of the rows, and the rest from the figures per minute.

    Args:
        selection: The span and the dimensions.
        step_s: Seconds of the steps into which the figures are divided.
        of_results: Whether the metric and the judge of the selection are conditions.
        divided_at: Times at which the figures are divided beside the steps; an hour with such a time is read by the minute.
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
    moments = [stored(moment) for moment in divided_at]
    divided = sorted({hour for moment in moments if begin < moment < end and (hour := _hour_of(moment)) != moment})
    for at, hour in enumerate(divided):
        parameters |= {f"divided{at}": hour, f"divided{at}_end": hour + timedelta(hours=1)}
        hours += f" AND hour <> $divided{at}"
        rest += f" OR minute >= $divided{at} AND minute < $divided{at}_end"
    source = (
        f"(SELECT hour AS minute, {columns} FROM rollup_hours WHERE {hours} UNION ALL "
        f"SELECT * FROM rollups WHERE {rest} UNION ALL SELECT * FROM rollup_changes)"
    )
    return source, where, parameters


def sums() -> str:
    """Returns the columns of a query that adds up all figures, under their own names."""
    return ", ".join(f"sum({name}) AS {name}" for name in FIGURES)


def figures_of_results(selection: Selection, *columns: str) -> tuple[str, str, dict[str, Any]]:
    """Returns the same as `rollups_of`, of results that the store still has, with columns that figures do not have.

    Args:
        selection: The span, the dimensions and the metric.
        columns: The columns beside the figures; the level of a result is one.
    """
    where, parameters = selection.where("occurred_at")
    figures = {
        "n": "1",
        "evaluated": "CASE WHEN value IS NULL THEN 0 ELSE 1 END",
        "value_sum": "coalesce(value, 0)",
        "value_square_sum": "coalesce(value * value, 0)",
        "passed": "CASE WHEN status = 'PASSED' THEN 1 ELSE 0 END",
        "failed": "CASE WHEN status = 'FAILED' THEN 1 ELSE 0 END",
        **{reason: f"CASE WHEN not_evaluated_because = '{reason}' THEN 1 ELSE 0 END" for reason in REASONS},
        "input_tokens": "cost_input_tokens",
        "output_tokens": "cost_output_tokens",
        "usd": "cost_usd",
    }
    cells = ", ".join((*columns, *(f"{sql} AS {name}" for name, sql in figures.items())))
    return f"(SELECT {cells} FROM results WHERE {where})", "true", parameters


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
    places = sorted((place for place, rows in found.items() if any(row["n"] for row in rows)), key=in_order)
    return {place: found[place] for place in places}


def in_order(place: Place) -> tuple[str, bool, str]:
    """Returns a key that sorts metrics by name, and the level of sessions before the others."""
    metric, level = place
    return metric, level != "session", level


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
    moments = Moments.of_sums(evaluated, row["value_sum"], row["value_square_sum"]) if evaluated else None
    return Figures(
        results=int(row["n"]),
        evaluated=evaluated,
        passed=passed,
        failed=failed,
        informational=evaluated - judged,
        not_evaluated={reason: int(row[reason]) for reason in REASONS if row[reason]},
        mean=moments.mean if moments is not None else None,
        variance=moments.variance if moments is not None else None,
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
