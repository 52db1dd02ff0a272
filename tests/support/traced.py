"""Collects the spans that stages write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan

from traceweir.streams.scoring.tracing.session_spans import SessionSpans


class WrittenSpans:
    """Receives spans, and keeps them in order."""

    def __init__(self, share: float = 1.0) -> None:
        self.spans: list[ReadableSpan] = []
        self.writer = SessionSpans(share, self, Resource({}))

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)

    def close(self) -> None:
        pass

    @property
    def parents(self) -> dict[str, str | None]:
        """The name of each span, and of its parent: `elsewhere` if it is not here."""
        names = {ids_of(span)[1]: span.name for span in self.spans}
        return {span.name: names.get(span.parent.span_id, "elsewhere") if span.parent else None for span in self.spans}

    def attributes(self, name: str) -> Mapping[str, Any]:
        """The attributes of the only span with this name."""
        (found,) = [span.attributes for span in self.spans if span.name == name]
        return found or {}


def ids_of(span: ReadableSpan) -> tuple[int, int]:
    """Returns the ids of the trace and of the span."""
    assert span.context is not None
    return span.context.trace_id, span.context.span_id
