"""Decodes spans and log records of OTLP: whole requests, and the slices of `slices`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.intake.otlp.slices import LogSlice, SpanSlice, log_slices, span_ids, span_slices
from traceweir.streams.intake.otlp.soundness import STATUSES, log_problem, span_problem
from traceweir.streams.intake.otlp.views import RequestView
from traceweir.streams.intake.spans.span import Attributes, Span, SpanEvent, Value

_LEVELS = 100


class LogEvent(NamedTuple):
    """A log record of a trace."""

    trace_id: str
    """Id of the trace, 32 lower-case hexadecimal digits."""
    span_id: str
    """Id of the span, 16 lower-case hexadecimal digits; empty if the log record names only the trace."""
    event: SpanEvent
    """The content of the log record."""


class DecodedSpans(NamedTuple):
    """The spans of a request."""

    spans: list[Span]
    """The usable spans, in the order of the request."""
    problems: list[str]
    """A message for each span that cannot be used."""


class DecodedLogs(NamedTuple):
    """The log records of a request."""

    logs: list[LogEvent]
    """The usable log records, in the order of the request."""
    problems: list[str]
    """A message for each log record that cannot be used."""
    without_trace: int
    """Number of log records without a trace id."""


def decode_spans(request: bytes) -> DecodedSpans:
    """Returns all spans of an ExportTraceServiceRequest in protobuf or JSON.

    Raises:
        OtlpError: the request cannot be decoded, or is a request of log records.
    """
    if (sound := decode_sound_spans(request)) is not None:
        return DecodedSpans(sound, [])
    slices, problems = span_slices(request)
    spans = []
    for each in slices:
        try:
            spans.append(decode_span(each))
        except OtlpError as error:
            problems.append(str(error))
    return DecodedSpans(spans, problems)


def decode_sound_spans(request: bytes) -> list[Span] | None:
    """Returns the spans of a request in protobuf of which no span is doubtful; None if its slices have to be decoded.

    The request is parsed as a whole, which takes a fraction of the time that its slices take one by one.
    """
    request_message = TracesData()
    try:
        request_message.ParseFromString(request)
        return list(_sound_spans(request_message)) or None
    except (DecodeError, OtlpError):
        return None


def _sound_spans(request: Any) -> Iterator[Span]:
    for resource in request.resource_spans:
        attributes = _resource(resource.resource.SerializeToString())
        for scope in resource.scope_spans:
            scope_name = scope.scope.name
            for span in scope.spans:
                yield _span(span, span_ids(span), attributes, scope_name)


def decode_logs(request: bytes) -> DecodedLogs:
    """Returns all log records of an ExportLogsServiceRequest in protobuf or JSON that name a trace.

    Raises:
        OtlpError: the request cannot be decoded, or is a request of spans.
    """
    slices, problems, without_trace = log_slices(request)
    logs = []
    for each in slices:
        try:
            logs.append(decode_log(each))
        except OtlpError as error:
            problems.append(str(error))
    return DecodedLogs(logs, problems, without_trace)


def add_logs(spans: Iterable[Span], logs: Iterable[LogEvent]) -> list[LogEvent]:
    """Adds log records to the events of their spans: to every version of a span, because any of them can be used.

    Each log record is added once, in an order that depends on the log records only, however often and in whatever order
    they came.

    Returns:
        The log records whose span is not among the spans.
    """
    different = {(log.event.time_ns, repr(log._replace(event=_sorted(log.event)))): log for log in logs}
    # As of most traces.
    if not different:
        return []
    by_id: dict[tuple[str, str], list[Span]] = {}
    for span in spans:
        by_id.setdefault((span.trace_id, span.span_id), []).append(span)
    without_span = []
    for _, log in sorted(different.items(), key=lambda each: each[0]):
        versions = by_id.get((log.trace_id, log.span_id), ())
        for span in versions:
            span.events.append(log.event)
        if not versions:
            without_span.append(log)
    return without_span


def _sorted(event: SpanEvent) -> SpanEvent:
    return event._replace(attributes=dict(sorted(event.attributes.items())))


def decode_span(found: SpanSlice) -> Span:
    """Returns the span of a slice.

    Of attributes with the same key the last one counts. A number that is not finite becomes the text `NaN`,
    `Infinity` or `-Infinity`. The end can be before the start if a clock was set.

    Raises:
        OtlpError: the span is damaged, too deep, or has a time after the year 2262.
    """
    *ids, data = found
    name = f"span {found.span_id} of trace {found.trace_id}"
    resource, scope, raw = _parts(data, name)
    message = SpanMessage()
    _parse(message, raw, name)
    return _span(message, ids, _resource(resource), _scope_name(scope))


def _span(message: Any, ids: Iterable[str], resource: Attributes, scope: str) -> Span:
    trace_id, span_id, parent_id = ids
    if (problem := span_problem(message)) is not None:
        raise OtlpError(f"span {span_id} of trace {trace_id}: {problem}")
    status = message.status
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        name=message.name,
        start_ns=message.start_time_unix_nano,
        end_ns=message.end_time_unix_nano,
        attributes=_attributes(message.attributes),
        events=[SpanEvent(each.name, each.time_unix_nano, _attributes(each.attributes)) for each in message.events],
        status=STATUSES[status.code],
        status_message=status.message,
        resource=resource,
        scope=scope,
        flags=message.flags,
        trace_state=message.trace_state,
        dropped_attributes=message.dropped_attributes_count,
    )


def decode_log(found: LogSlice) -> LogEvent:
    """Returns the log record of a slice.

    Its name is `event_name`, or the attribute `event.name` that older SDKs write. Its time is the time of the event,
    or the time at which the Collector observed the event.

    Raises:
        OtlpError: the log record is damaged, too deep, or has a time after the year 2262.
    """
    name = f"log record of trace {found.trace_id}"
    _, _, raw = _parts(found.data, name)
    message = LogRecord()
    _parse(message, raw, name)
    if (problem := log_problem(message)) is not None:
        raise OtlpError(f"{name}: {problem}")
    attributes = _attributes(message.attributes)
    older_name = attributes.get("event.name")
    event = SpanEvent(
        message.event_name or (older_name if isinstance(older_name, str) else ""),
        message.time_unix_nano or message.observed_time_unix_nano,
        attributes,
        _value(message.body),
    )
    return LogEvent(found.trace_id, found.span_id, event)


def _parts(data: bytes, name: str) -> tuple[bytes, bytes, bytes]:
    view = RequestView()
    _parse(view, data, name)
    try:
        (resource,) = view.resources
        (scope,) = resource.scopes
        (item,) = scope.items
    except ValueError:
        raise OtlpError(f"{name}: a slice must hold exactly one resource, one scope and one record") from None
    return b"".join(resource.resource), b"".join(scope.scope), item


def _parse(message: Any, raw: bytes, name: str) -> None:
    try:
        message.ParseFromString(raw)
    except DecodeError:
        raise OtlpError(
            f"{name}: cannot be decoded; it was cut, has text that is not UTF-8, "
            f"or attributes deeper than {_LEVELS} messages"
        ) from None


@lru_cache(maxsize=256)
def _resource(raw: bytes) -> Attributes:
    message = Resource()
    _parse(message, raw, "the resource of the span")
    return _attributes(message.attributes)


@lru_cache(maxsize=256)
def _scope_name(raw: bytes) -> str:
    message = InstrumentationScope()
    _parse(message, raw, "the scope of the span")
    return str(message.name)


def _attributes(pairs: Iterable[Any]) -> dict[str, Value]:
    # Most values are texts, and OTLP's value is a oneof: if its text is not empty, it is the value. Keys repeat in all
    # spans; as the same object they are hashed once.
    return {intern(each.key): (value := each.value).string_value or _value(value) for each in pairs}


def _value(found: Any) -> Value:
    kind = found.WhichOneof("value")
    if kind is None:
        return None
    if kind == "string_value":
        return found.string_value  # type: ignore[no-any-return]
    if kind == "array_value":
        return [_value(each) for each in found.array_value.values]
    if kind == "kvlist_value":
        return _attributes(found.kvlist_value.values)
    value = getattr(found, kind)
    if kind == "double_value" and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value  # type: ignore[no-any-return]
