"""Reads the events of a span, and the log records that belong to it."""

from __future__ import annotations

from typing import Any

from traceweir.streams.intake.spans.attributes import structure
from traceweir.streams.intake.spans.span import Span, SpanEvent

DETAILS = "gen_ai.client.inference.operation.details"
"""The event, of a span or in a log, with the whole content of a model call."""


def event_name(event: SpanEvent) -> str:
    """Returns the name of an event; a log record can have the name in its attribute `event.name`."""
    named = event.attributes.get("event.name")
    return event.name or (named if isinstance(named, str) else "")


def named_events(span: Span, name: str) -> list[SpanEvent]:
    """Returns the events of that name."""
    return [event for event in span.events if event_name(event) == name] if span.events else []


def event_field(event: SpanEvent, key: str) -> Any:
    """Returns an attribute of an event, or else that part of its body."""
    value = event.attributes.get(key)
    if value is None and isinstance(event.body, dict):
        value = event.body.get(key)
    return value


def event_fields(event: SpanEvent) -> dict[str, Any]:
    """Returns the attributes and the body of an event as one object; a body that is a text is its `content`."""
    value: dict[str, Any] = dict(event.attributes)
    body = structure(event.body)
    content = structure(value.get("gen_ai.event.content"))
    for each in (content, body):
        if isinstance(each, dict):
            value.update(each)
        elif each is not None and each != "":
            value["content"] = each
    return value
