"""Reads what the API is asked about from the parameters of a request."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Depends, HTTPException, Query, Request
from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field, create_model
from pydantic_core import PydanticCustomError

from traceweir.schemas.score import Cause, NotEvaluated, ReportedStatus
from traceweir.streams.board.dashboard.context import dashboard_of
from traceweir.streams.board.dashboard.page.filters import DEFAULT_SPAN, SPANS
from traceweir.streams.board.store.conditions import Conditions
from traceweir.streams.board.store.selection import Selection, whole_minutes
from traceweir.streams.board.store.sessions import MAX_LISTED
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS

_NO_TEXT = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?", re.IGNORECASE)


def _is_no_number(value: Any) -> Any:
    # Pydantic takes a number for the seconds since 1970; the document says that a time is a text of ISO 8601.
    if isinstance(value, str) and _NO_TEXT.fullmatch(value.strip()):
        raise PydanticCustomError("datetime_parsing", "Input should be a valid datetime such as 2026-01-31T12:00:00Z")
    return value


_Time = Annotated[AwareDatetime, BeforeValidator(_is_no_number)]
_Name = Annotated[str | None, Field(min_length=1, max_length=1_024)]


class SpanAndDimensions(BaseModel):
    """A time range, and values of dimensions."""

    span: Annotated[
        Literal["1h", "6h", "24h", "7d", "30d"],
        Field(description="Length of the time range; of no effect with `since`."),
    ] = DEFAULT_SPAN
    since: Annotated[_Time | None, Field(description="Begin of the time range; default: as `span` says.")] = None
    until: Annotated[_Time | None, Field(description="End of the time range; default: now.")] = None
    app_name: _Name = None
    agent_name: _Name = None
    agent_version: _Name = None
    environment: _Name = None
    model: _Name = None
    judge: _Name = None
    metric: _Name = None

    def selection(self, now: datetime) -> Selection:
        """Returns the selection.

        Raises:
            HTTPException: the time range ends before it begins, or begins before the year 1.
        """
        until = self.until or now
        dimensions = {name: value for name in RESULT_DIMENSIONS if (value := getattr(self, name)) is not None}
        try:
            return Selection(*whole_minutes(self.since or until - SPANS[self.span], until), dimensions, self.metric)
        except (ValueError, OverflowError) as error:
            raise HTTPException(422, str(error)) from None


class ConditionParameters(BaseModel):
    """What a session must have: a result, a trace, or a record like this."""

    status: Annotated[ReportedStatus | None, Field(description="A result of this status.")] = None
    reason: Annotated[NotEvaluated | None, Field(description="A result without a value for this reason.")] = None
    cause: Annotated[
        Cause | Literal["none"] | None, Field(description="A result without a value for this cause, or for none.")
    ] = None
    least: Annotated[float | None, Field(allow_inf_nan=False, description="A result of at least this value.")] = None
    most: Annotated[float | None, Field(allow_inf_nan=False, description="A result of at most this value.")] = None
    user_id: Annotated[_Name, Field(description="A result of this user, as results name users.")] = None
    config_digest: Annotated[_Name, Field(description="A result by this config.")] = None
    label: Annotated[
        str | None, Field(max_length=1_024, pattern="=", description="A result with this label, as NAME=VALUE.")
    ] = None
    rationale: Annotated[_Name, Field(description="A result whose rationale contains this text.")] = None
    gate_reason: Annotated[_Name, Field(description="A trace that the gate rejected for this reason.")] = None
    text: Annotated[_Name, Field(description="An id or a record that contains this text.")] = None
    tool: Annotated[_Name, Field(description="A call of the tool with this name.")] = None
    tool_error: Annotated[_Name, Field(description="A call of the tool with this name that failed.")] = None


class OfMetric(SpanAndDimensions):
    """A span of time, values of dimensions, and a metric."""

    metric: Annotated[str, Field(min_length=1, max_length=1_024)]


def _prefixed(side: str) -> Callable[..., Selection]:
    """Returns a dependency that reads a selection from parameters whose names begin with the side."""
    fields: dict[str, Any] = {
        f"{side}_{name}": (field.annotation, field) for name, field in SpanAndDimensions.model_fields.items()
    }
    parameters_type = create_model(f"{side.title()}Selection", **fields)

    def read(request: Request, given: Annotated[Any, Query()]) -> Selection:
        values = {name: getattr(given, f"{side}_{name}") for name in SpanAndDimensions.model_fields}
        return SpanAndDimensions.model_construct(**values).selection(dashboard_of(request).options.now())

    read.__annotations__ = {"request": Request, "given": Annotated[parameters_type, Query()], "return": Selection}
    return read


def _selection(request: Request, given: Annotated[SpanAndDimensions, Query()]) -> Selection:
    return given.selection(dashboard_of(request).options.now())


def _conditions(given: Annotated[ConditionParameters, Query()]) -> Conditions:
    return Conditions(**given.model_dump())


def _selection_of_metric(request: Request, given: Annotated[OfMetric, Query()]) -> Selection:
    return given.selection(dashboard_of(request).options.now())


Selected = Annotated[Selection, Depends(_selection)]
"""The selection of a request."""
SelectedMetric = Annotated[Selection, Depends(_selection_of_metric)]
"""The selection of a request that has to name a metric."""
First = Annotated[Selection, Depends(_prefixed("first"))]
"""The first selection of a comparison, from the parameters `first_since`, `first_app_name` and so on."""
Second = Annotated[Selection, Depends(_prefixed("second"))]
"""The second selection of a comparison."""
Wanted = Annotated[Conditions, Depends(_conditions)]
"""What the sessions of a request must have."""
Limit = Annotated[int, Query(ge=1, le=MAX_LISTED)]
"""The most entries of a list that a request wants."""
