"""Collects the trace contexts of the records of a session, and reads them as links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opentelemetry.trace import Link, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from traceweir.schemas.dead_letter import Headers

HEADER = "traceparent"
"""The header of W3C Trace Context, in which a producer sends the trace and the span of a record."""
MAX_LINKS = 128
"""Maximum number of links of a span, as in OpenTelemetry's limits. Further contexts are left out."""
_LENGTH = 55
"""Length of the header in version 00, the only version of W3C Trace Context."""

_propagator = TraceContextTextMapPropagator()


def note_context(contexts: dict[bytes, None], headers: Headers) -> None:
    """Adds the trace context of a record to those of its session, unless there are `MAX_LINKS` already."""
    if len(contexts) < MAX_LINKS:
        for name, content in headers:
            if name == HEADER and content is not None and len(content) == _LENGTH:
                contexts[content] = None


def links_of(contexts: Iterable[bytes]) -> Iterator[Link]:
    """Yields a link for each valid header; the others are left out, because any producer can send anything.

    >>> valid = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    >>> [f"{link.context.span_id:x}" for link in links_of([valid, b"00-zz", b"\\xff" * 55])]
    ['b7ad6b7169203331']
    """
    for content in contexts:
        found = get_current_span(_propagator.extract({HEADER: content.decode("latin-1")})).get_span_context()
        if found.is_valid:
            yield Link(found)
