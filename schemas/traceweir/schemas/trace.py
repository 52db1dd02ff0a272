"""ReasoningTrace: KnowledgePulse's document of how an agent reached a result."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from traceweir.schemas.base import Fraction, JsonObject, NonEmpty, Optionally, Whole, WireModel

StepType = Literal["thought", "tool_call", "observation", "error_recovery"]
Visibility = Literal["private", "org", "network"]
PrivacyLevel = Literal["aggregated", "federated", "private"]

_UTC_TEXT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z", re.ASCII)


def utc_text(value: str) -> str:
    """The text.

    Raises:
        ValueError: it is no date-time, or does not end in Z.
    """
    if not _UTC_TEXT.fullmatch(value):
        raise ValueError("must be a UTC date-time that ends in Z, such as 2026-01-31T12:00:00Z")
    try:
        instant(value)
    except ValueError as error:
        raise ValueError(f"is no date-time: {error}") from None
    return value


def instant(value: str) -> datetime:
    """The moment that such a text names, to the microsecond."""
    return datetime.fromisoformat(value)


UtcText = Annotated[
    str,
    AfterValidator(utc_text),
    Field(json_schema_extra={"format": "date-time", "pattern": rf"^{_UTC_TEXT.pattern}$".replace(r"\d", "[0-9]")}),
]
"""A date-time in UTC, kept as it was written. KnowledgePulse accepts only the form that ends in Z."""


class Tool(WireModel):
    """The tool of a step. Two servers may offer tools of one name; the name alone counts for tool diversity."""

    name: str
    mcp_server: Optionally[str] = None


class Step(WireModel):
    """One step of reasoning. Ids need not be unique or in order; the list's order is the order."""

    step_id: Annotated[Whole, Field(ge=0)]
    type: StepType
    content: Optionally[str] = None
    tool: Optionally[Tool] = None
    input: Optionally[JsonObject] = None
    output_summary: Optionally[str] = None
    latency_ms: Optionally[Annotated[float, Field(ge=0)]] = None


class TraceMetadata(WireModel):
    """Who made a trace, in which field, and who may see it."""

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
    """Traceweir's addition: the session that the trace belongs to. Not part of KnowledgePulse's schema, and not on `network`."""


class Task(WireModel):
    """What the agent was asked to do."""

    objective: NonEmpty
    input_schema: Optionally[JsonObject] = None


class Outcome(WireModel):
    """What came of it, and how sure the agent was, from 0 to 1."""

    result_summary: str
    confidence: Fraction


class Entity(WireModel):
    """A thing that the trace speaks of."""

    name: str
    type: str


class Relationship(WireModel):
    """A fact, and from when on it holds."""

    fact: str
    valid_from: str


class KnowledgeGraphDelta(WireModel):
    """What a trace adds to a knowledge graph."""

    entities: list[Entity]
    relationships: list[Relationship]


class ReasoningTrace(WireModel):
    """How an agent reached a result, step by step.

    A document is accepted exactly when KnowledgePulse's JSON Schema accepts it without its unknown keys and `created_at` ends in Z.
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
        """When the trace was made."""
        return instant(self.metadata.created_at)

    def document(self) -> JsonObject:
        """The trace as KnowledgePulse's schema knows it: unknown keys and the session id dropped, absent keys absent."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"metadata": {"session_id"}})
