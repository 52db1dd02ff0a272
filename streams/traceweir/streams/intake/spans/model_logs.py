"""Tells which log records belong to model calls, and are read with their spans."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions import keys_of
from traceweir.streams.intake.spans.span import SpanEvent

_BEGINNINGS = keys_of(lambda each: each.log_events)
_MARKS = tuple(beginning.encode() for beginning in _BEGINNINGS)


def may_be_of_model(record: bytes) -> bool:
    """Returns whether an encoded log record can belong to a model call; most can not, and need no decoding."""
    return any(mark in record for mark in _MARKS)


def is_of_model(event: SpanEvent) -> bool:
    """Returns whether a log record belongs to a model call, as its name or its attribute `event.name` says."""
    names = (event.name, event.attributes.get("event.name"))
    return any(isinstance(name, str) and name.startswith(_BEGINNINGS) for name in names)
