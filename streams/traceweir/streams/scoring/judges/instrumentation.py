"""Keeps spans of judges' calls from coming back as an agent's: they would be scored, and would cause more calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex

from opentelemetry import context

from traceweir.streams.base.judge_mark import JUDGE_MARK
from traceweir.streams.base.process_log import CURRENT_SPAN

SUPPRESSING_KEYS = (
    context._SUPPRESS_INSTRUMENTATION_KEY,  # noqa: SLF001  # each instrumentation reads it
    # What older instrumentations read.
    "suppress_instrumentation",
)


@contextmanager
def uninstrumented() -> Iterator[None]:
    """Makes instrumentations record no span of what the block calls.

    Someone can start a worker with an instrumentation of HTTP clients or of model libraries.
    """
    changed = context.get_current()
    for key in SUPPRESSING_KEYS:
        changed = context.set_value(key, True, changed)
    token = context.attach(changed)
    try:
        yield
    finally:
        context.detach(token)


def trace_headers() -> dict[str, str]:
    """Returns the headers of W3C Trace Context for a call of a judge's gateway.

    A gateway that records spans continues this trace, and copies the mark in `tracestate` to its spans. Without a traced
    session the trace is marked as not sampled.
    """
    traced = CURRENT_SPAN.get()
    trace_id, span_id = traced or (token_hex(16), token_hex(8))
    return {"traceparent": f"00-{trace_id}-{span_id}-{'01' if traced else '00'}", "tracestate": JUDGE_MARK}
