"""Answers figures by groups and intervals, as JSON or CSV, for Grafana and for tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, cast

from fastapi import APIRouter, HTTPException, Query, Response
from pydantic import JsonValue

from traceweir.schemas.invocation import Level
from traceweir.schemas.text import printable
from traceweir.streams.board.dashboard.api.answers import answer
from traceweir.streams.board.dashboard.api.parameters import Selected
from traceweir.streams.board.dashboard.context import Serving
from traceweir.streams.board.store.query import (
    GROUPS,
    STATISTICS,
    Cell,
    QueryAnswer,
    QueryError,
    figures_by_group,
)

router = APIRouter()

INTERVALS_S: Mapping[str, int] = {
    "1m": 60, "5m": 300, "15m": 900, "1h": 3_600, "6h": 21_600, "1d": 86_400, "7d": 604_800,
}  # fmt: skip
_Interval = Literal["1m", "5m", "15m", "1h", "6h", "1d", "7d", "none"]
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What the text of a cell begins with that a program for tables would compute."""
_Name = TypeVar("_Name", bound=str)


def _pattern(names: Sequence[str], *others: str) -> dict[str, JsonValue]:
    name = f"({'|'.join(names)})"
    return {"pattern": f"^({'|'.join((f'{name}(,{name})*', *others))})$"}


@router.get(
    "/query",
    response_model=QueryAnswer,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}, "description": "The figures"}},
)
def read_query(
    selected: Selected,
    dashboard: Serving,
    statistic: Annotated[
        str, Query(max_length=300, description="Names with commas, each once.", json_schema_extra=_pattern(STATISTICS))
    ] = "results,mean,pass_rate",
    group_by: Annotated[
        str,
        Query(
            max_length=300,
            description="Names with commas, each once; `none`: all results are one group.",
            json_schema_extra=_pattern(GROUPS, "none"),
        ),
    ] = "metric,level",
    interval: Annotated[_Interval, Query(description="Length of an interval; `none`: the span is one.")] = "none",
    level: Annotated[Level | None, Query(description="The only level of results.")] = None,
    written_as: Annotated[Literal["json", "csv"], Query(alias="format")] = "json",
) -> Any:
    """Figures of each group of results in each interval of a span, at most 10,000 rows, as JSON or CSV.

    In CSV, a text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return has a `'` before it, so that no program
    for tables computes it.
    """
    try:
        found = figures_by_group(
            dashboard.store,
            selected,
            groups=[] if group_by == "none" else _names("group_by", group_by, GROUPS),
            statistics=_names("statistic", statistic, STATISTICS),
            interval_s=INTERVALS_S.get(interval),
            level=level,
        )
    except QueryError as error:
        raise HTTPException(422, str(error)) from None
    if written_as == "json":
        return answer(found, dashboard.options.content)
    names = ["time", *([] if group_by == "none" else group_by.split(",")), *statistic.split(",")]
    return Response(_csv(names, found.rows), media_type="text/csv; charset=utf-8; header=present")


def _names(parameter: str, text: str, known: Sequence[_Name]) -> list[_Name]:
    names = text.split(",")
    for name in names:
        if name not in known:
            raise HTTPException(422, f"{parameter}: {printable(name, 100)!r} is none of {', '.join(known)}")
        if names.count(name) > 1:
            raise HTTPException(422, f"{parameter}: {name!r} is named more than once")
    return cast("list[_Name]", names)


def _csv(names: Sequence[str], rows: Sequence[Mapping[str, Cell]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows([_cell(row[name]) for name in names] for row in rows)
    return text.getvalue()


def _cell(value: Cell) -> Cell:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
