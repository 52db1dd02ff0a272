"""Defines the events that agents emit: a JSON object per record, with its type in `type`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field, JsonValue, TypeAdapter, model_validator

from traceweir.schemas.base import MAX_IDENTIFIER_CHARS, Identifier, JsonObject, Timestamp, WireModel
from traceweir.schemas.dimensions import MaybeLabels, MaybeText, Probability, TraceContext
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
    """Id of the event, for the detection of duplicates; without an id, equal events are duplicates."""
    session_id: Identifier
    """The session of the event."""
    invocation_id: str = ""
    """The invocation of the event; empty: the invocation of the event before."""
    app_name: MaybeText = ""
    """Name of the agent's app; this and the next seven fields are dimensions, by which scores are grouped.

    Each text has at most 256 characters, and an empty text is unknown. The last known value of an invocation counts, so
    that one event, or every event, can have the dimensions.
    """
    agent_name: MaybeText | None = None
    """Name of the agent."""
    agent_version: MaybeText | None = None
    """Version of the agent, as its team writes versions."""
    environment: MaybeText | None = None
    """Where the agent runs, for example `production`."""
    model: MaybeText | None = None
    """Name of the model."""
    labels: MaybeLabels | None = None
    """At most 8 labels, each a name and a value of 1 to 256 characters."""
    trace_context: TraceContext | None = None
    """The span of the invocation in OpenTelemetry."""
    sampling_probability: Probability | None = None
    """Probability with which the invocation was recorded, above 0 and at most 1."""
    user_id: Annotated[str, Field(max_length=MAX_IDENTIFIER_CHARS)] | None = None
    """Id of the user, a dimension too; at most 1,024 characters. Scores have a hash of the id unless configured."""
    occurred_at: Timestamp
    """When the event occurred, as a date-time with its zone; orders the events of a session."""
    reference_id: str | None = None
    """Id of the invocation's reference on the topic `references`."""
    reference: Reference | None = None
    """The reference of this invocation, inline; otherwise the reference is looked up by `reference_id` or by question."""
    missing: list[str] | None = None
    """Parts of the invocation that the source does not contain, a sentence for each, which begins with the part.

    For example `the answer is not in the spans: ...` or `the arguments of the call of tool 'x' are not in ...`.
    """
    replaces: list[str] | None = None
    """Ids of other events of the session that no longer count, because this event says better what happened.

    A source that learns more after it has sent an event sends another one with an id of its own. The order in which
    the two arrive does not matter.
    """

    of_invocation: ClassVar[bool] = True
    """Whether an event of the type is a part of an invocation; False for one that only tells of its session."""

    @property
    def has_reference(self) -> bool:
        """Whether the event names what is expected of its invocation."""
        return self.reference is not None or self.reference_id is not None


class InvocationStarted(Event):
    """The user sent a message."""

    type: Literal["invocation.started"]
    """The type of the event."""
    user_content: Content | None = None
    """The message of the user."""


class ToolCalled(Event):
    """The agent called a tool."""

    type: Literal["tool.called"]
    """The type of the event."""
    name: str
    """Name of the tool."""
    args: JsonObject | None = None
    """Arguments of the call; null if the call has none."""
    call_id: str | None = None
    """Id of the call, by which its response is found."""
    model_call_id: str | None = None
    """Id of the model call whose answer asked for this call, unique in its invocation; null: unknown.

    Calls one after the other with the same id are parallel: the order between them means nothing.
    """


class ToolReturned(Event):
    """A tool returned a response. A failed tool has its error message in `error`."""

    type: Literal["tool.returned"]
    """The type of the event."""
    name: str
    """Name of the tool."""
    call_id: str | None = None
    """Id of the call that is answered."""
    response: JsonValue = None
    """The response, any JSON."""
    error: str | None = None
    """The error message of a failed call; null if the call succeeded."""


class ResponseIntermediate(Event):
    """An agent or sub-agent sent an intermediate response."""

    type: Literal["response.intermediate"]
    """The type of the event."""
    author: str = ""
    """Name of the agent that sent the response."""
    content: Content
    """The response."""


class RetrievalReturned(Event):
    """A retriever returned context."""

    type: Literal["retrieval.returned"]
    """The type of the event."""
    chunks: list[RetrievedChunk]
    """The retrieved pieces, in order."""


class ModelCalled(Event):
    """A model was called; the event contains its input and output tokens."""

    type: Literal["model.called"]
    """The type of the event."""
    model: MaybeText
    """Name of the model, at most 256 characters; `unknown` if the source does not name it."""
    input_tokens: Tokens | None = None
    """Number of input tokens; null if unknown."""
    output_tokens: Tokens | None = None
    """Number of output tokens; null if unknown."""


class InvocationCompleted(Event):
    """The agent sent its final answer to the user."""

    type: Literal["invocation.completed"]
    """The type of the event."""
    final_response: Content | None = None
    """The answer; null if the agent gave none."""
    error: str | None = None
    """The error message of an invocation that failed, such as that of the model's provider; null if it did not fail."""


class InvocationRecorded(Event):
    """A whole invocation: `invocation` in Google ADK's schema, or a `row` of Databricks Agent Evaluation."""

    type: Literal["invocation.recorded"]
    """The type of the event."""
    invocation: Invocation | None = None
    """The invocation; excludes `row`."""
    row: EvaluationRow | None = None
    """The row; excludes `invocation`."""

    plain_with: ClassVar[tuple[str, ...]] = ("invocation",)
    """An event that has these keys and no `row` satisfies the rule below."""

    @model_validator(mode="after")
    def _check_invocation_or_row(self) -> InvocationRecorded:
        if (self.invocation is None) == (self.row is None):
            raise ValueError("needs either invocation or row" + (", not both" if self.row else ""))
        return self


class Expected(WireModel):
    """How many records of a session its producer has sent."""

    events: Annotated[int, Field(ge=1)]
    """Number of events of the session, its `session.ended` included; a repeated event counts once."""
    traces: Annotated[int, Field(ge=0)]
    """Number of reasoning traces of the session; a repeated trace counts once, and a revised trace again."""


class SessionEnded(Event):
    """The session ended; only late records follow."""

    of_invocation: ClassVar[bool] = False

    type: Literal["session.ended"]
    """The type of the event."""
    expects: Expected | None = None
    """The number of records of the session. The session closes as soon as exactly these have come.

    Otherwise, also with other numbers, it closes some time after this event, when the records on their way have come.
    """


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
