"""Defines Span: a finished OpenTelemetry span with its resource, independent of the encoding in which it arrived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from traceweir.streams.intake.spans.key_sets import KeySet, key_set_of

Value: TypeAlias = "str | bool | int | float | bytes | list[Value] | dict[str, Value] | None"
"""The value of an attribute: OpenTelemetry's AnyValue."""

Attributes = Mapping[str, Value]

Status = Literal["UNSET", "OK", "ERROR"]

Kind = Literal["agent", "workflow", "chain", "llm", "tool", "retriever", "judge", "other"]
"""What a span is; a judge's work is no work of the agent."""


class SpanEvent(NamedTuple):
    """Something that happened during a span: an event of the span, or a log record that names the span."""

    name: str
    """Name of the event; empty if the log record has none."""
    time_ns: int
    """When the event occurred, in nanoseconds since 1970; 0 if unknown."""
    attributes: Attributes
    """The attributes of the event."""
    body: Value = None
    """The body of a log record; None for an event of a span."""


@dataclass(slots=True, eq=False)
class Span:
    """One operation of an agent, with the start, the end and the attributes that its instrumentation recorded."""

    trace_id: str
    """Id of the trace, 32 lower-case hexadecimal digits, not all 0."""
    span_id: str
    """Id of the span, 16 lower-case hexadecimal digits, not all 0."""
    parent_id: str
    """Id of the parent span; empty for a root span."""
    name: str
    """Name of the span."""
    start_ns: int
    """When the span began, in nanoseconds since 1970; 0 if unknown."""
    end_ns: int
    """When the span ended, in nanoseconds since 1970; 0 if unknown."""
    attributes: Attributes
    """The attributes of the span."""
    events: list[SpanEvent] = field(default_factory=list)
    """The events of the span, then the log records that name the span."""
    status: Status = "UNSET"
    """The status of the span."""
    status_message: str = ""
    """The description of an ERROR."""
    resource: Attributes = field(default_factory=dict)
    """The attributes of the resource, such as `service.name`."""
    scope: str = ""
    """Name of the instrumentation scope."""
    flags: int = 0
    """W3C trace flags; bit 0: sampled."""
    trace_state: str = ""
    """W3C trace state."""
    dropped_attributes: int = 0
    """Number of attributes that the SDK dropped because of its limits."""
    cut_texts: int = 0
    """Number of texts, in the attributes of the span and its events, that were cut and are None here."""
    _key_set: KeySet | None = field(default=None, init=False, repr=False)

    @property
    def key_set(self) -> KeySet:
        """The keys of the attributes, which stay as they are from here on."""
        key_set = self._key_set
        if key_set is None:
            key_set = self._key_set = key_set_of(self.attributes)
        return key_set
