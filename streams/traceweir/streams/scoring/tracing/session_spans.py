"""Writes the spans of sessions: which sessions are traced, and how a span names its session and its parent."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from traceweir.streams.scoring.tracing.ids import Part, span_id_of, trace_id_of
from traceweir.streams.scoring.tracing.sampling import bound_of, is_chosen

SCOPE = InstrumentationScope("traceweir.streams")
"""The scope of each span. The stage `collect` leaves out spans whose scope is Traceweir's own."""
Attribute = str | bool | int | float | Sequence[str]
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class SpanReceiver(Protocol):
    """Takes finished spans, as OpenTelemetry's span processors do."""

    def on_end(self, span: ReadableSpan) -> None: ...
    def close(self) -> None:
        """Passes on what it has taken, within a few seconds."""


@dataclass(frozen=True, slots=True)
class SpanOf:
    """A segment of a session, and the key of a span in it."""

    session_id: str
    segment: int
    key: tuple[Part, ...]
    """The work, such as `("score", revision, attempt)`."""

    @property
    def context(self) -> SpanContext:
        """The ids of the span."""
        trace_id = trace_id_of(self.session_id, self.segment)
        return SpanContext(trace_id, span_id_of(self.session_id, self.segment, *self.key), False, _SAMPLED)

    def other(self, *key: Part) -> SpanOf:
        """Returns another span of the same trace."""
        return SpanOf(self.session_id, self.segment, key)


class SessionSpans:
    """Writes finished spans.

    Args:
        share: Share of the sessions that is traced, from 0 to 1.
        receiver: Takes the spans of the sessions that are traced.
        resource: What the spans say about this process.
    """

    def __init__(self, share: float, receiver: SpanReceiver, resource: Resource) -> None:
        self._bound = bound_of(share)
        self.receiver = receiver
        self.resource = resource

    def now_ns(self) -> int:
        """Returns the time in nanoseconds since 1970."""
        return time.time_ns()

    def traces(self, session_id: bytes) -> bool:
        """Returns whether a session is traced."""
        return is_chosen(session_id, self._bound)

    def write(
        self,
        name: str,
        span: SpanOf,
        parent: SpanOf | None,
        start_ns: int,
        end_ns: int | None = None,
        *,
        attributes: Mapping[str, Attribute | None] | None = None,
        links: Iterable[Link] = (),
        error_type: str | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        """Writes a span of a session that is traced.

        Args:
            name: The name, of low cardinality.
            span: What the span is about.
            parent: What its parent is about; None for the first span of the trace.
            start_ns: Start in nanoseconds since 1970.
            end_ns: End in nanoseconds since 1970; None: now.
            attributes: Attributes beside the session; those with the value None are left out.
            links: Links to spans of other traces.
            error_type: Why the work failed, of low cardinality; None: it did not fail.
            kind: The kind of the span.
        """
        found = {name: value for name, value in (attributes or {}).items() if value is not None}
        found |= {"gen_ai.conversation.id": span.session_id, "traceweir.segment": span.segment}
        if error_type is not None:
            found["error.type"] = error_type
        end_ns = self.now_ns() if end_ns is None else end_ns
        self.receiver.on_end(
            ReadableSpan(
                name,
                span.context,
                parent.context if parent is not None else None,
                self.resource,
                found,
                links=tuple(links),
                kind=kind,
                status=Status(StatusCode.ERROR if error_type is not None else StatusCode.UNSET),
                start_time=start_ns,
                end_time=max(start_ns, end_ns),
                instrumentation_scope=SCOPE,
            )
        )


def assembled(session_id: str, segment: int, revision: int) -> SpanOf:
    """Returns the span of joining the records of a revision: the first span of its trace."""
    return SpanOf(session_id, segment, ("assemble", revision))


def scored(session_id: str, segment: int, revision: int, attempt: int) -> SpanOf:
    """Returns the span of scoring a revision, under an attempt number."""
    return SpanOf(session_id, segment, ("score", revision, attempt))
