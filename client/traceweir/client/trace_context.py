"""Reads the active span of OpenTelemetry, if its API is installed."""

from __future__ import annotations

from collections.abc import Callable

SpanIds = tuple[str, str]
"""The trace id and the span id, as 32 and 16 hexadecimal digits in lower case."""


def active_span_reader() -> Callable[[], SpanIds | None]:
    """Returns a function that tells the ids of the active span; it tells None without OpenTelemetry or without a span."""
    try:
        from opentelemetry.trace import get_current_span
    except ImportError:
        return lambda: None

    def read() -> SpanIds | None:
        context = get_current_span().get_span_context()
        return (f"{context.trace_id:032x}", f"{context.span_id:016x}") if context.is_valid else None

    return read
