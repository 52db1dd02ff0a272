"""Answers figures of metrics by groups and intervals of time, for tools that draw them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, get_args

from pydantic import BaseModel

from traceweir.schemas.invocation import Level
from traceweir.streams.board.store.figures import figures_of, rollups_of, sums
from traceweir.streams.board.store.selection import Readable, Selection, in_utc

Group = Literal["metric", "level", "app_name", "agent_name", "agent_version", "environment", "model", "judge"]
"""By what figures can be divided."""
Statistic = Literal[
    "results", "evaluated", "passed", "failed", "informational", "mean", "pass_rate", "pass_rate_low", "pass_rate_high",
    "input_tokens", "output_tokens", "usd",
]  # fmt: skip
"""What can be asked of the results of a group in an interval; each is a field of `Figures`."""
GROUPS: tuple[Group, ...] = get_args(Group)
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
MAX_ROWS = 10_000
"""Maximum number of rows of an answer."""
MAX_INTERVALS = 11_000
"""Maximum number of intervals in a span."""

Cell = str | float | int | None


class QueryError(ValueError):
    """The answer would be too large. The message says what to change."""


class QueryAnswer(BaseModel):
    """Figures of each group in each interval."""

    since: datetime
    """Begin of the span, in UTC."""
    until: datetime
    """End of the span, in UTC; not part of the span."""
    interval_s: int | None
    """Seconds of an interval; null: the span is one interval."""
    rows: list[dict[str, Cell]]
    """A row for each group with results in an interval: `time` (the begin of the interval as ISO 8601 in UTC), the groups,
    then the statistics, by time and by group. A statistic without results that it is about is null."""


def figures_by_group(
    store: Readable,
    selection: Selection,
    *,
    groups: Sequence[Group],
    statistics: Sequence[Statistic],
    interval_s: int | None = None,
    level: Level | None = None,
) -> QueryAnswer:
    """Returns figures of the selected results.

    Args:
        store: Answers.
        selection: The span, and the values of dimensions.
        groups: By what the figures are divided; none: all results are one group.
        statistics: What is asked of each group.
        interval_s: Seconds of an interval, a multiple of 60, whose begin is a multiple of it since 1970; None: the span is
            one interval.
        level: The only level of results; None: all.

    Raises:
        QueryError: there are more than `MAX_INTERVALS` intervals, or more than `MAX_ROWS` rows.
        StoreError: the store cannot answer.
    """
    span_s = (selection.until - selection.since).total_seconds()
    if interval_s is not None and span_s / interval_s > MAX_INTERVALS:
        raise QueryError(
            f"the span has more than {MAX_INTERVALS} intervals of {interval_s} s: choose a longer interval or a shorter span"
        )
    source, where, parameters = rollups_of(selection, interval_s or 60)
    if interval_s is None:
        time = "$since"
    else:
        micros = interval_s * 1_000_000
        time = f"make_timestamp((epoch_us(minute) // {micros}) * {micros})"
    if level is not None:
        where += " AND level = $level"
        parameters["level"] = level
    columns = "".join(f", {name}" for name in groups)
    grouped = ", ".join(("begins_at", *groups))
    rows = store.query(
        f"SELECT {time} AS begins_at{columns}, {sums()} FROM {source} WHERE {where} GROUP BY {grouped} "
        "HAVING sum(n) > 0 OR sum(input_tokens) + sum(output_tokens) + sum(usd) > 0 "
        f"ORDER BY {grouped} LIMIT {MAX_ROWS + 1}",
        parameters,
    )
    if len(rows) > MAX_ROWS:
        raise QueryError(
            f"the answer has more than {MAX_ROWS} rows: choose a longer interval, fewer groups or a shorter span"
        )
    found: list[dict[str, Cell]] = []
    for row in rows:
        figures = figures_of(row)
        begins_at = in_utc(row["begins_at"]).isoformat().replace("+00:00", "Z")
        named: dict[str, Cell] = {"time": begins_at, **{name: row[name] for name in groups}}
        found.append(named | {name: getattr(figures, name) for name in statistics})
    return QueryAnswer(since=selection.since, until=selection.until, interval_s=interval_s, rows=found)
