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
        ValueError: The text is not a date-time, or does not end in Z.
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
    mcp_server: Optionally[str] = None


class Step(WireModel):
    """One step of reasoning. Step ids can repeat and be unordered; the order of the list counts."""

    step_id: Annotated[Whole, Field(ge=0)]
    type: StepType
    content: Optionally[str] = None
    tool: Optionally[Tool] = None
    input: Optionally[JsonObject] = None
    output_summary: Optionally[str] = None
    latency_ms: Optionally[Annotated[float, Field(ge=0)]] = None


class TraceMetadata(WireModel):
    """The origin, the domain and the visibility of a trace."""

    created_at: UtcText
    agent_id: Optionally[str] = None
    framework: Optionally[str] = None
    task_domain: NonEmpty
    success: bool
    quality_score: Fraction
    visibility: Visibility
    privacy_level: PrivacyLevel
    validated_by: Optionally[list[str]] = None
    session_id: str | None = None
    """The session of the trace. Traceweir's addition: not in KnowledgePulse's schema, not published on `network`."""


class Task(WireModel):
    """The task of the agent."""

    objective: NonEmpty
    input_schema: Optionally[JsonObject] = None


class Outcome(WireModel):
    """The result, and the confidence of the agent, from 0 to 1."""

    result_summary: str
    confidence: Fraction


class Entity(WireModel):
    """An entity that the trace mentions."""

    name: str
    type: str


class Relationship(WireModel):
    """A fact, and the start of its validity."""

    fact: str
    valid_from: str


class KnowledgeGraphDelta(WireModel):
    """The additions of a trace to a knowledge graph."""

    entities: list[Entity]
    relationships: list[Relationship]


class ReasoningTrace(WireModel):
    """How an agent reached a result, step by step.

    A document is valid exactly if KnowledgePulse's JSON Schema accepts the document without its unknown keys, and
    `created_at` ends in Z.
    """

    context: Literal["https://openknowledgepulse.org/schema/v1"] = Field(alias="@context")
    kind: Literal["ReasoningTrace"] = Field(alias="@type")
    id: Annotated[str, Field(pattern=r"^kp:trace:")]
    source_skill: Optionally[str] = None
    metadata: TraceMetadata
    task: Task
    steps: Annotated[list[Step], Field(min_length=1)]
    outcome: Outcome
    knowledge_graph_delta: Optionally[KnowledgeGraphDelta] = None

    @property
    def created_at(self) -> datetime:
        """The creation time of the trace."""
        return instant(self.metadata.created_at)

    def document(self) -> JsonObject:
        """Returns the trace in KnowledgePulse's schema, without unknown keys, the session id and unset keys."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"metadata": {"session_id"}})


def require_short_names(trace: ReasoningTrace) -> ReasoningTrace:
    """Returns the trace.

    KnowledgePulse limits no name, but a name becomes a record's key, and a part of rows and of other documents.

    Raises:
        ValueError: The id, the session id or the domain has more than `MAX_IDENTIFIER_CHARS` characters.
    """
    metadata = trace.metadata
    names = (
        ("id", trace.id),
        ("metadata.session_id", metadata.session_id or ""),
        ("metadata.task_domain", metadata.task_domain),
    )
    for field, name in names:
        if len(name) > MAX_IDENTIFIER_CHARS:
            raise ValueError(f"{field}: must have at most {MAX_IDENTIFIER_CHARS} characters, not {len(name)}")
    return trace


PipelineTrace = Annotated[ReasoningTrace, AfterValidator(require_short_names)]
"""A trace inside the documents of Traceweir: its names have at most `MAX_IDENTIFIER_CHARS` characters."""
