"""Decodes OTLP requests in protobuf."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from traceweir.schemas.text import printable
from traceweir.streams.otlp.decoded import (
    MAX_DEPTH,
    STATUSES,
    Decoded,
    NotOtlpError,
    SpanLog,
    Unusable,
    optional_id,
    required_id,
    time_of,
)
from traceweir.streams.spans.span import Span, SpanEvent, Value


def decode_protobuf(request: bytes) -> Decoded:
    """Returns the spans or the log records of a request.

    The messages of both kinds of requests have the same outer shape. A request without a usable span holds log records if
    all of them have a time or a body.

    Raises:
        NotOtlpError: The bytes are no request, or are cut.
    """
    try:
        found = _spans_of(TracesData.FromString(request))
    except DecodeError as error:
        found, why = None, error
    if found is None or not found.spans:
        with suppress(DecodeError):
            if (logs := _logs_of(LogsData.FromString(request))) is not None:
                return logs
    if found is None:
        raise NotOtlpError(f"the bytes are no OTLP request in protobuf, or are cut ({printable(str(why), 200)})")
    if not (found.spans or found.problems):
        raise NotOtlpError("the request in protobuf has neither a span nor a log record")
    return found


def _spans_of(data: Any) -> Decoded:
    found = Decoded()
    number = 0
    for resource_spans in data.resource_spans:
        resource = _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = scope_spans.scope.name
            for each in scope_spans.spans:
                number += 1
                try:
                    found.spans.append(_span(each, resource, scope))
                except Unusable as why:
                    found.problems.append(f"span {number} ({printable(each.name, 100)}): {why}")
    return found


def _span(span: Any, resource: dict[str, Value], scope: str) -> Span:
    return Span(
        required_id("the trace id", span.trace_id.hex(), 32),
        required_id("the span id", span.span_id.hex(), 16),
        optional_id("the parent's span id", span.parent_span_id.hex(), 16),
        span.name,
        time_of("the start", span.start_time_unix_nano),
        time_of("the end", span.end_time_unix_nano),
        _attributes(span.attributes),
        [
            SpanEvent(event.name, time_of("the time of an event", event.time_unix_nano), _attributes(event.attributes))
            for event in span.events
        ],
        STATUSES[span.status.code] if 0 <= span.status.code < len(STATUSES) else "UNSET",
        span.status.message,
        resource,
        scope,
        span.flags & 0xFF,
        span.trace_state,
        span.dropped_attributes_count,
    )


def _logs_of(data: Any) -> Decoded | None:
    """Returns the log records; None if the request holds no log record."""
    found = Decoded()
    number = 0
    for resource_logs in data.resource_logs:
        for scope_logs in resource_logs.scope_logs:
            for record in scope_logs.log_records:
                number += 1
                if not (record.time_unix_nano or record.observed_time_unix_nano or record.HasField("body")):
                    return None
                if not (record.trace_id and record.span_id):
                    found.unrelated_logs += 1
                    continue
                try:
                    found.logs.append(_log(record))
                except Unusable as why:
                    found.problems.append(f"log record {number}: {why}")
    return found if number else None


def _log(record: Any) -> SpanLog:
    attributes = _attributes(record.attributes)
    return SpanLog(
        required_id("the trace id", record.trace_id.hex(), 32),
        required_id("the span id", record.span_id.hex(), 16),
        SpanEvent(
            record.event_name or str(attributes.get("event.name") or ""),
            time_of("the time", record.time_unix_nano or record.observed_time_unix_nano),
            attributes,
            _value(record.body, 0),
        ),
    )


def _attributes(pairs: Iterable[Any]) -> dict[str, Value]:
    return {pair.key: _value(pair.value, 0) for pair in pairs}


def _value(value: Any, depth: int) -> Value:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    content = getattr(value, kind)
    if kind not in ("array_value", "kvlist_value"):
        found: Value = content
        return found
    if depth >= MAX_DEPTH:
        raise Unusable(f"an attribute has more than {MAX_DEPTH} levels of lists and maps")
    if kind == "array_value":
        return [_value(each, depth + 1) for each in content.values]
    return {pair.key: _value(pair.value, depth + 1) for pair in content.values}
