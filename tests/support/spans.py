"""Contains spans made by hand."""

from __future__ import annotations

from typing import Any

from traceweir.streams.intake.spans.span import Span, SpanEvent

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def span(number: int, parent: int, name: str, attributes: dict[str, Any], *events: SpanEvent, **fields: Any) -> Span:
    """Returns a span; a parent of 0 makes a root, which ends last. Numbers are ids and seconds of the start."""
    defaults: dict[str, Any] = {"start_ns": number * 10**9, "end_ns": number * 10**9 + 5 * 10**8}
    defaults |= {"end_ns": 99 * 10**9} if not parent else {}
    ids: dict[str, Any] = {
        "trace_id": TRACE,
        "span_id": f"{number:016x}",
        "parent_id": f"{parent:016x}" if parent else "",
    }
    return Span(name=name, attributes=attributes, events=list(events), **ids, **(defaults | fields))


def event(name: str, body: Any = None, **attributes: Any) -> SpanEvent:
    """Returns an event of a span; `__` in the name of an attribute stands for a dot."""
    return SpanEvent(name, 10**9, {key.replace("__", "."): value for key, value in attributes.items()}, body)
