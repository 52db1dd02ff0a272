"""LangChain4j's extension for Quarkus, which names the spans of its services, and sets no status."""

from __future__ import annotations

from traceweir.streams.intake.spans.attributes import ABSENT
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.span import Kind, Span
from traceweir.streams.intake.spans.span_events import named_events

_AI_SERVICE = "langchain4j.aiservices."


def _kind_of_name(span: Span) -> Kind | None:
    return "agent" if span.name.startswith(_AI_SERVICE) else None


def _agent_of(span: Span) -> str:
    """Returns the class and the method of a service."""
    return span.name.removeprefix(_AI_SERVICE) if span.name.startswith(_AI_SERVICE) else ""


def _has_failed(span: Span, result: object) -> bool:
    """Returns whether a tool failed: Quarkus sets no status."""
    return span.name.startswith("langchain4j.") and result is ABSENT and bool(named_events(span, "exception"))


LANGCHAIN4J = Convention(
    name="LangChain4j of Quarkus",
    kind_of_name=_kind_of_name,
    agent_of={"agent": _agent_of},
    has_failed=_has_failed,
)
