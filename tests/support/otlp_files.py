"""Reads the spans of recorded OTLP requests in JSON, for tests alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from traceweir.streams.spans.span import Span, SpanEvent

_STATUS = ("UNSET", "OK", "ERROR")


def value(item: dict[str, Any]) -> Any:
    """Returns an AnyValue."""
    for key, inner in (item or {}).items():
        if key == "intValue":
            return int(inner)
        if key == "arrayValue":
            return [value(each) for each in inner.get("values", [])]
        if key == "kvlistValue":
            return attributes(inner.get("values", []))
        return inner
    return None


def attributes(items: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Returns attributes."""
    return {item["key"]: value(item.get("value", {})) for item in items or ()}


def spans_of(requests: Iterable[dict[str, Any]], logs: Iterable[dict[str, Any]] = ()) -> Iterator[Span]:
    """Yields the spans of export requests, with the log records that name them."""
    records: dict[tuple[str, str], list[SpanEvent]] = {}
    for request in logs:
        for resource in request.get("resourceLogs", []):
            for scope in resource.get("scopeLogs", []):
                for record in scope.get("logRecords", []):
                    time_ns = int(record.get("timeUnixNano", 0) or record.get("observedTimeUnixNano", 0))
                    read = attributes(record.get("attributes", []))
                    event = SpanEvent(record.get("eventName", ""), time_ns, read, value(record.get("body", {})))
                    records.setdefault((record.get("traceId", ""), record.get("spanId", "")), []).append(event)
    for request in requests:
        for resource in request.get("resourceSpans", []):
            about = attributes(resource.get("resource", {}).get("attributes", []))
            for scope in resource.get("scopeSpans", []):
                for span in scope.get("spans", []):
                    yield _span(span, about, scope.get("scope", {}).get("name", ""), records)


def _span(
    span: dict[str, Any], about: dict[str, Any], scope: str, records: dict[tuple[str, str], list[SpanEvent]]
) -> Span:
    events = [
        SpanEvent(each.get("name", ""), int(each.get("timeUnixNano", 0)), attributes(each.get("attributes", [])))
        for each in span.get("events", [])
    ]
    status = span.get("status", {})
    return Span(
        trace_id=span["traceId"],
        span_id=span["spanId"],
        parent_id=span.get("parentSpanId", ""),
        name=span.get("name", ""),
        start_ns=int(span.get("startTimeUnixNano", 0)),
        end_ns=int(span.get("endTimeUnixNano", 0)),
        attributes=attributes(span.get("attributes", [])),
        events=[*events, *records.get((span["traceId"], span["spanId"]), ())],
        status=_STATUS[status.get("code", 0)],  # type: ignore[arg-type]
        status_message=status.get("message", ""),
        resource=about,
        scope=scope,
        flags=span.get("flags", 0),
        trace_state=span.get("traceState", ""),
        dropped_attributes=span.get("droppedAttributesCount", 0),
    )
