"""Adds up figures per minute, so that charts need not read every result.

A row that is stored adds its figures, and a row that it replaces subtracts its own. The sum of all changes of a minute
is therefore what the present rows of this minute give, except that sums of decimal numbers are rounded differently. Costs
are not subtracted: a judge was paid for a replaced row too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import orjson

from traceweir.schemas.score import GATE
from traceweir.streams.board.store.tables import DIMENSIONS, REASONS, RESULT_DIMENSIONS, RESULTS
from traceweir.streams.tools.results.table import ColumnType

GROUPS: dict[str, ColumnType] = {
    "minute": "time",
    "metric": "text",
    "level": "text",
    "config_digest": "text",
    "scorer_version": "text",
    **dict.fromkeys(RESULT_DIMENSIONS, "text"),
}
"""By what figures are added up. The minute is that of `occurred_at`."""
FIGURES: dict[str, ColumnType] = {
    "n": "integer",
    "evaluated": "integer",
    "value_sum": "number",
    "value_square_sum": "number",
    "passed": "integer",
    "failed": "integer",
    **dict.fromkeys(REASONS, "integer"),
    # Sums of integers of 64 bits.
    "input_tokens": "number",
    "output_tokens": "number",
    "usd": "number",
}
"""What is added up: numbers of results that count, sums of their values, and what judges were paid for all results."""
ROLLUP_COLUMNS = GROUPS | FIGURES
"""The columns of the table `rollups`, whose rows with the same group have to be added up."""

HOUR_COLUMNS: dict[str, ColumnType] = {"hour": "time", **ROLLUP_COLUMNS}
"""The columns of the table `rollup_hours`: `rollups` by hour, for spans of days. `minute` is the first of the group."""

REJECTION_COLUMNS: dict[str, ColumnType] = {
    "minute": "time",
    **dict.fromkeys(DIMENSIONS, "text"),
    "reason": "text",
    "n": "integer",
}
"""The columns of the table `rejections`: how many traces the gate rejected for a reason."""


@dataclass(frozen=True)
class FigureTable:
    """A table of figures per minute, and the table of its changes, which are added up to it later."""

    name: str
    changes: str
    columns: Mapping[str, ColumnType]
    """The columns of both. Rows with the same texts and times have to be added up."""

    @property
    def groups(self) -> list[str]:
        """The columns by which rows are added up."""
        return [name for name in self.columns if name in GROUPS or name == "reason"]

    @property
    def sums(self) -> list[str]:
        """The columns that are added up."""
        return [name for name in self.columns if name not in self.groups]


ROLLUPS = FigureTable("rollups", "rollup_changes", ROLLUP_COLUMNS)
FIGURE_TABLES = (
    ROLLUPS,
    FigureTable("rejections", "rejection_changes", REJECTION_COLUMNS),
)

_group_of = itemgetter(
    *map(RESULTS.column_names.index, ("metric", "level", "config_digest", "scorer_version", *RESULT_DIMENSIONS))
)
_dimensions_of = itemgetter(*map(RESULTS.column_names.index, DIMENSIONS))
_decision_of = itemgetter(*map(RESULTS.column_names.index, ("metric", "status", "details")))
_time_of = itemgetter(RESULTS.column_names.index("occurred_at"))
_outcome_of = itemgetter(*map(RESULTS.column_names.index, ("value", "status", "not_evaluated_because")))
_cost_of = itemgetter(*map(RESULTS.column_names.index, ("cost_input_tokens", "cost_output_tokens", "cost_usd")))
_AT = {name: at for at, name in enumerate(FIGURES)}
_STATUS_AT = {"PASSED": _AT["passed"], "FAILED": _AT["failed"]}
"""The counters of verdicts; a value that is INFORMATIONAL is in none of them."""


class FigureChanges:
    """Collects the changes of the tables of figures by rows of results."""

    def __init__(self) -> None:
        self._rollups: dict[tuple[Any, ...], list[float]] = {}
        self._rejections: dict[tuple[Any, ...], int] = {}

    def add(self, rows: Iterable[tuple[Any, ...]], sign: int) -> None:
        """Adds rows of results that are stored (`sign` 1) or replaced (`sign` -1). What these have cost stays added."""
        for row in rows:
            group, figures = self._figures_of(row)
            minute = group[0]
            value, status, reason = _outcome_of(row)
            figures[0] += sign
            if value is None:
                figures[_AT[reason]] += sign
            else:
                figures[1] += sign
                figures[2] += sign * value
                figures[3] += sign * value * value
                if (at := _STATUS_AT.get(status)) is not None:
                    figures[at] += sign
            if sign > 0:
                _add_cost(figures, row)
            for reason in rejected_because(*_decision_of(row)):
                rejection = (minute, *_dimensions_of(row), reason)
                self._rejections[rejection] = self._rejections.get(rejection, 0) + sign

    def add_cost(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Adds what results have cost that were replaced before they were stored."""
        for row in rows:
            if any(_cost_of(row)):
                _, figures = self._figures_of(row)
                _add_cost(figures, row)

    def _figures_of(self, row: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[float]]:
        """Returns the group of a result, which begins with its minute, and the figures of the group."""
        minute = _time_of(row).replace(second=0, microsecond=0, tzinfo=None)
        group = (minute, *_group_of(row))
        figures = self._rollups.get(group)
        if figures is None:
            figures = self._rollups[group] = [0] * len(FIGURES)
        return group, figures

    def rows(self) -> Iterator[tuple[FigureTable, list[tuple[Any, ...]]]]:
        """Yields the changes of each table."""
        groups: tuple[dict[tuple[Any, ...], Sequence[float]], ...] = (
            {group: tuple(figures) for group, figures in self._rollups.items()},
            {group: (number,) for group, number in self._rejections.items()},
        )
        for table, found in zip(FIGURE_TABLES, groups, strict=True):
            yield table, [(*group, *figures) for group, figures in found.items()]


def _add_cost(figures: list[float], row: tuple[Any, ...]) -> None:
    for at, amount in enumerate(_cost_of(row), _AT["input_tokens"]):
        figures[at] += float(amount)


def rejected_because(metric: str, status: str, details: str | None) -> list[str]:
    """Returns why the gate rejected a trace; nothing for other results, and for what is no list of texts.

    >>> rejected_because("gate", "FAILED", '{"reasons": ["duplicate", 7]}')
    ['duplicate']
    """
    if metric != GATE or status != "FAILED" or details is None:
        return []
    try:
        found = orjson.loads(details)
    except ValueError:
        return []
    reasons = found.get("reasons") if isinstance(found, dict) else None
    return [each for each in reasons if isinstance(each, str) and each] if isinstance(reasons, list) else []


def by_hour(source: str) -> str:
    """Returns SQL that adds up rows with `ROLLUP_COLUMNS` by hour, as rows with `HOUR_COLUMNS`."""
    groups = ", ".join(name for name in GROUPS if name != "minute")
    sums = ", ".join(f"sum({name})" for name in FIGURES)
    # The first minute is that of a stored result; a change that only subtracts has none.
    first = "coalesce(min(minute) FILTER (n > 0), min(minute))"
    return f"SELECT date_trunc('hour', minute), {first}, {groups}, {sums} FROM {source} GROUP BY date_trunc('hour', minute), {groups}"


def merged_by_hour(source: str, table: FigureTable) -> str:
    """Returns SQL that adds up rows of figures per minute by hour, as rows of the same table whose minute begins an hour."""
    hour = "date_trunc('hour', minute)"
    groups = [hour if name == "minute" else name for name in table.groups]
    sums = [f"sum({name})" for name in table.sums]
    return f"SELECT {', '.join((*groups, *sums))} FROM {source} GROUP BY {', '.join(groups)}"
