"""Defines ReasoningTrace: KnowledgePulse's document of how an agent reached a result."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from traceweir.schemas.base import (
    MAX_IDENTIFIER_CHARS,
    Fraction,
    JsonObject,
    NonEmpty,
    Optionally,
    Whole,
    WireModel,
)

StepType = Literal["thought", "tool_call", "observation", "error_recovery"]
Visibility = Literal["private", "org", "network"]
PrivacyLevel = Literal["aggregated", "federated", "private"]

_UTC_TEXT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z", re.ASCII)


def utc_text(value: str) -> str:
    """Returns the text of a date-time in UTC.

    Raises:
        ValueError: the text is not a date-time, or does not end in Z.
    """
    if not _UTC_TEXT.fullmatch(value):
        raise ValueError("must be a UTC date-time that ends in Z, such as 2026-01-31T12:00:00Z")
    try:
        instant(value)
    except ValueError as error:
        raise ValueError(f"is not a valid date-time: {error}") from None
    return value


def instant(value: str) -> datetime:
    """Returns the date-time of a `UtcText`, to the microsecond."""
    return datetime.fromisoformat(value)


UtcText = Annotated[
    str,
    AfterValidator(utc_text),
    Field(json_schema_extra={"format": "date-time", "pattern": rf"^{_UTC_TEXT.pattern}$".replace(r"\d", "[0-9]")}),
]
"""A date-time in UTC, kept as text. KnowledgePulse accepts only the form that ends in Z."""


class Tool(WireModel):
    """The tool of a step. Two servers can provide tools with the same name; tool diversity counts names only."""

    name: str
    """Name of the tool."""
    mcp_server: Optionally[str] = None
    """The MCP server that provides the tool."""


class Step(WireModel):
    """One step of reasoning. Step ids can repeat and be unordered; the order of the list counts."""

    step_id: Annotated[Whole, Field(ge=0)]
    """Number of the step, at least 0; the order of the list counts."""
    type: StepType
    """Kind of the step."""
    content: Optionally[str] = None
    """Text of the step."""
    tool: Optionally[Tool] = None
    """The tool that was called."""
    input: Optionally[JsonObject] = None
    """Arguments of the call."""
    output_summary: Optionally[str] = None
    """Summary of the output."""
    latency_ms: Optionally[Annotated[float, Field(ge=0)]] = None
    """Duration in milliseconds, at least 0."""


class TraceMetadata(WireModel):
    """The origin, the domain and the visibility of a trace."""

    created_at: UtcText
    """When the trace was created, in UTC with a Z."""
    agent_id: Optionally[str] = None
    """Id of the agent."""
    framework: Optionally[str] = None
    """Framework of the agent."""
    task_domain: NonEmpty
    """Domain of the task; traces of the same domain are compared for novelty."""
    success: bool
    """Whether the task succeeded."""
    quality_score: Fraction
    """Quality from 0 to 1; published traces have their trace value here."""
    visibility: Visibility
    """Who may see the trace; only `network` is published."""
    privacy_level: PrivacyLevel
    """How the trace may be used; `private` is never published."""
    validated_by: Optionally[list[str]] = None
    """Ids of those that validated the trace."""
    session_id: str | None = None
    """The session of the trace. Traceweir's addition: not in KnowledgePulse's schema, not published on `network`."""
    invocation_id: str | None = None
    """The invocation that the trace tells of, if its sender also writes the events of this invocation.

    Such a trace stands for no invocation of its own while the events have not arrived. Traceweir's addition: not in
    KnowledgePulse's schema, not published on `network`.
    """
    withdrawn: bool | None = None
    """Whether the trace no longer counts in its session: a revision with true withdraws the trace.

    Traceweir's addition: not in KnowledgePulse's schema, not published on `network`.
    """


class Task(WireModel):
    """The task of the agent."""

    objective: NonEmpty
    """What the agent had to do."""
    input_schema: Optionally[JsonObject] = None
    """JSON Schema of the task's input."""


class Outcome(WireModel):
    """The result, and the confidence of the agent, from 0 to 1."""

    result_summary: str
    """Summary of the result."""
    confidence: Fraction
    """Confidence of the agent, from 0 to 1."""


class Entity(WireModel):
    """An entity that the trace mentions."""

    name: str
    """Name of the entity."""
    type: str
    """Kind of the entity."""


class Relationship(WireModel):
    """A fact, and the start of its validity."""

    fact: str
    """The fact, as a sentence."""
    valid_from: str
    """Since when the fact holds."""


class KnowledgeGraphDelta(WireModel):
    """The additions of a trace to a knowledge graph."""

    entities: list[Entity]
    """The new entities."""
    relationships: list[Relationship]
    """The new facts."""


class ReasoningTrace(WireModel):
    """How an agent reached a result, step by step.

    A document is valid exactly if KnowledgePulse's JSON Schema accepts the document without its unknown keys, and
    `created_at` ends in Z.
    """

    context: Literal["https://openknowledgepulse.org/schema/v1"] = Field(alias="@context")
    """The schema of the document."""
    kind: Literal["ReasoningTrace"] = Field(alias="@type")
    """The kind of the document."""
    id: Annotated[str, Field(pattern=r"^kp:trace:")]
    """Id of the trace, which begins with `kp:trace:`."""
    source_skill: Optionally[str] = None
    """The skill that the agent used."""
    metadata: TraceMetadata
    """Origin, domain and visibility."""
    task: Task
    """The task."""
    steps: Annotated[list[Step], Field(min_length=1)]
    """The steps, in order; at least one."""
    outcome: Outcome
    """The result."""
    knowledge_graph_delta: Optionally[KnowledgeGraphDelta] = None
    """Additions to a knowledge graph."""

    @property
    def created_at(self) -> datetime:
        """The creation time of the trace."""
        return instant(self.metadata.created_at)

    def document(self) -> JsonObject:
        """Returns the trace in KnowledgePulse's schema, without unknown keys, Traceweir's additions and unset keys."""
        own = {"metadata": {"session_id", "invocation_id", "withdrawn"}}
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=own)


def require_short_names(trace: ReasoningTrace) -> ReasoningTrace:
    """Returns the trace.

    KnowledgePulse limits no name, but a name becomes a record's key, and a part of rows and of other documents.

    Raises:
        ValueError: the id, the session id, the invocation id or the domain has more than `MAX_IDENTIFIER_CHARS` characters.
    """
    metadata = trace.metadata
    names = (
        ("id", trace.id),
        ("metadata.session_id", metadata.session_id or ""),
        ("metadata.invocation_id", metadata.invocation_id or ""),
        ("metadata.task_domain", metadata.task_domain),
    )
    for field, name in names:
        if len(name) > MAX_IDENTIFIER_CHARS:
            raise ValueError(f"{field}: must have at most {MAX_IDENTIFIER_CHARS} characters, not {len(name)}")
    return trace


PipelineTrace = Annotated[ReasoningTrace, AfterValidator(require_short_names)]
"""A trace inside the documents of Traceweir: its names have at most `MAX_IDENTIFIER_CHARS` characters."""
