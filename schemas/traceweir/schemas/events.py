"""Defines the events that agents emit: a JSON object per record, with its type in `type`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field, JsonValue, TypeAdapter, model_validator

from traceweir.schemas.base import Identifier, JsonObject, Timestamp, WireModel
from traceweir.schemas.evaluation_row import EvaluationRow
from traceweir.schemas.invocation import Content, Invocation, RetrievedChunk
from traceweir.schemas.reference import Reference

Tokens = Annotated[int, Field(ge=0)]


class Event(WireModel):
    """The fields of every event.

    `occurred_at` only orders the events of a session; the closing of a session depends on the timestamps of the
    records.
    """

    event_id: Identifier | None = None
    session_id: Identifier
    invocation_id: str = ""
    app_name: str = ""
    user_id: str | None = None
    occurred_at: Timestamp
    reference_id: str | None = None
    reference: Reference | None = None
    """The reference of this invocation, inline; otherwise the reference is looked up by `reference_id` or by question."""


class InvocationStarted(Event):
    """The user sent a message."""

    type: Literal["invocation.started"]
    user_content: Content | None = None


class ToolCalled(Event):
    """The agent called a tool."""

    type: Literal["tool.called"]
    name: str
    args: JsonObject | None = None
    call_id: str | None = None


class ToolReturned(Event):
    """A tool returned a response. A failed tool has its error message in `error`."""

    type: Literal["tool.returned"]
    name: str
    call_id: str | None = None
    response: JsonValue = None
    error: str | None = None


class ResponseIntermediate(Event):
    """An agent or sub-agent sent an intermediate response."""

    type: Literal["response.intermediate"]
    author: str = ""
    content: Content


class RetrievalReturned(Event):
    """A retriever returned context."""

    type: Literal["retrieval.returned"]
    chunks: list[RetrievedChunk]


class ModelCalled(Event):
    """A model was called; the event contains its input and output tokens."""

    type: Literal["model.called"]
    model: str
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None


class InvocationCompleted(Event):
    """The agent sent its final answer to the user."""

    type: Literal["invocation.completed"]
    final_response: Content | None = None


class InvocationRecorded(Event):
    """A whole invocation: `invocation` in Google ADK's schema, or a `row` of Databricks Agent Evaluation."""

    type: Literal["invocation.recorded"]
    invocation: Invocation | None = None
    row: EvaluationRow | None = None

    plain_with: ClassVar[tuple[str, ...]] = ("invocation",)
    """An event that has these keys and no `row` satisfies the rule below."""

    @model_validator(mode="after")
    def _check_invocation_or_row(self) -> InvocationRecorded:
        if (self.invocation is None) == (self.row is None):
            raise ValueError("needs either invocation or row" + (", not both" if self.row else ""))
        return self


class SessionEnded(Event):
    """The session ended; only late records follow."""

    type: Literal["session.ended"]


InvocationEvent = Annotated[
    InvocationStarted
    | ToolCalled
    | ToolReturned
    | ResponseIntermediate
    | RetrievalReturned
    | ModelCalled
    | InvocationCompleted
    | InvocationRecorded
    | SessionEnded,
    Field(discriminator="type"),
]

EVENT: TypeAdapter[InvocationEvent] = TypeAdapter(InvocationEvent)
"""Validates an event of any type: `EVENT.validate_json(value)`."""

TYPES: dict[str, type[Event]] = {
    get_args(model.model_fields["type"].annotation)[0]: model for model in get_args(get_args(InvocationEvent)[0])
}
"""The model of each `type`."""
