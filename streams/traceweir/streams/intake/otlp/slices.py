"""Splits an OTLP request into its spans or log records, by ids alone.

A slice is a TracesData or LogsData message in protobuf with one resource, one scope and one span or log record, in
whatever encoding its request was. Other OTLP readers can read it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.intake.otlp.json_requests import BOM, Signal, request_from_json
from traceweir.streams.intake.otlp.json_spans import sound_request_from_json
from traceweir.streams.intake.otlp.views import LogView, RequestView, SpanView

TRACE_ID_BYTES = 16
SPAN_ID_BYTES = 8
_NO_TRACE_ID = bytes(TRACE_ID_BYTES)
_NO_SPAN_ID = bytes(SPAN_ID_BYTES)
MAX_SPAN_BYTES = 900_000
"""The largest span or log record with its resource, in bytes: it must fit a row, a forwarded record and a dead letter of
the stage collect, so that the endpoint accepts no larger one."""
_NAMES = {
    "spans": ("spans", "resourceSpans", "a request of log records"),
    "logs": ("log records", "resourceLogs", "a request of spans"),
}


class SpanSlice(NamedTuple):
    """One span of a request, not yet decoded."""

    trace_id: str
    """32 lower-case hexadecimal digits, not all 0."""
    span_id: str
    """16 lower-case hexadecimal digits, not all 0."""
    parent_id: str
    """Id of the parent span; empty for a root span."""
    data: bytes
    """A TracesData message with this span alone; `decoding.decode_span` decodes it."""


class LogSlice(NamedTuple):
    """One log record of a request, not yet decoded."""

    trace_id: str
    """32 lower-case hexadecimal digits, not all 0."""
    span_id: str
    """16 lower-case hexadecimal digits; empty if the log record names only the trace."""
    data: bytes
    """A LogsData message with this log record alone; `decoding.decode_log` decodes it."""


class SpanSlices(NamedTuple):
    """The spans of a request."""

    slices: list[SpanSlice]
    """The usable spans, in the order of the request."""
    problems: list[str]
    """A message for each span that cannot be used."""


class LogSlices(NamedTuple):
    """The log records of a request."""

    slices: list[LogSlice]
    """The usable log records, in the order of the request."""
    problems: list[str]
    """A message for each log record that cannot be used."""
    without_trace: int
    """Number of log records without a trace id: they belong to no agent's trace."""


def span_slices(request: bytes) -> SpanSlices:
    """Returns the spans of an ExportTraceServiceRequest in protobuf or JSON; the content tells which.

    Only the ids are decoded. A damaged attribute of a protobuf request shows up in `decoding.decode_span`.

    Raises:
        OtlpError: the request cannot be decoded, or is a request of log records.
    """
    view, problems = _request_view(request, "spans")
    slices = []
    for place, data, raw in _items(view, "spans"):
        try:
            slices.append(SpanSlice(*span_ids(SpanView.FromString(raw)), data))
        except (DecodeError, OtlpError) as error:
            problems.append(f"{place}: {_reason(error)}")
    if problems and not slices and _looks_like(view, "logs"):
        raise _wrong_signal("spans")
    return SpanSlices(slices, problems)


def log_slices(request: bytes) -> LogSlices:
    """Returns the log records of an ExportLogsServiceRequest in protobuf or JSON; the content tells which.

    Raises:
        OtlpError: the request cannot be decoded, or is a request of spans.
    """
    view, problems = _request_view(request, "logs")
    slices = []
    without_trace = 0
    for place, data, raw in _items(view, "logs"):
        try:
            ids = LogView.FromString(raw)
            if not ids.trace_id.strip(b"\0"):
                without_trace += 1
                continue
            span_id = ids.span_id
            slices.append(
                LogSlice(
                    _id(ids.trace_id, _NO_TRACE_ID, "trace id"),
                    _id(span_id, _NO_SPAN_ID, "span id") if span_id.strip(b"\0") else "",
                    data,
                )
            )
        except (DecodeError, OtlpError) as error:
            problems.append(f"{place}: {_reason(error)}")
    if not slices and (problems or without_trace) and _looks_like(view, "spans"):
        raise _wrong_signal("logs")
    return LogSlices(slices, problems, without_trace)


def _request_view(request: bytes, signal: Signal) -> tuple[Any, list[str]]:
    """Returns the frame of the request, and the problems of the parts that could not be converted from JSON."""
    if not request:
        raise OtlpError("the request is empty; an OTLP request has at least one resource")
    # A protobuf request starts with 0x0a, which is also a line feed, and its length can be the code of `{`.
    is_maybe_protobuf = request[:1] == b"\n"
    if not is_maybe_protobuf and is_json(request):
        return _json_view(request, signal)
    try:
        view = RequestView.FromString(request)
    except DecodeError:
        if is_json(request):
            return _json_view(request, signal)
        raise OtlpError(
            f"the request of {len(request)} bytes is not OTLP: it is neither JSON nor a complete protobuf message; "
            "perhaps it was cut, or is compressed"
        ) from None
    if not view.resources:
        raise OtlpError(f"the request of {len(request)} bytes is not OTLP: it holds no {_NAMES[signal][1]}")
    return view, []


def _json_view(request: bytes, signal: Signal) -> tuple[Any, list[str]]:
    sound = sound_request_from_json(request) if signal == "spans" else None
    return (sound, []) if sound is not None else request_from_json(request, signal)


def is_json(request: bytes) -> bool:
    """Returns whether the first character after white space opens a JSON object or list."""
    return request.removeprefix(BOM)[:64].lstrip()[:1] in {b"{", b"["}


def _items(view: Any, signal: Signal) -> Iterator[tuple[str, bytes, bytes]]:
    """Yields the place, the slice and the bytes of each span or log record."""
    resources, scopes, items = (
        ("resourceSpans", "scopeSpans", "spans") if signal == "spans" else ("resourceLogs", "scopeLogs", "logRecords")
    )
    for r, resource in enumerate(view.resources):
        slice_view = RequestView()
        slice_resource = slice_view.resources.add(resource=resource.resource)
        slice_scope = slice_resource.scopes.add()
        for s, scope in enumerate(resource.scopes):
            slice_scope.scope[:] = scope.scope
            for i, raw in enumerate(scope.items):
                slice_scope.items[:] = (raw,)
                yield f"{resources}[{r}].{scopes}[{s}].{items}[{i}]", slice_view.SerializeToString(), raw


def span_ids(span: Any) -> tuple[str, str, str]:
    """Returns the ids of a trace, a span and its parent, from OTLP's message Span or a `views.SpanView`.

    Raises:
        OtlpError: an id does not have its length, or consists of zeros. A parent's id of zeros is none.
    """
    parent = span.parent_span_id
    return (
        _id(span.trace_id, _NO_TRACE_ID, "trace id"),
        _id(span.span_id, _NO_SPAN_ID, "span id"),
        _id(parent, _NO_SPAN_ID, "parent span id") if parent and parent.strip(b"\0") else "",
    )


def _id(value: bytes, zeros: bytes, name: str) -> str:
    """Returns an id as text; `zeros` has its length."""
    if len(value) != len(zeros):
        raise OtlpError(f"the {name} has {len(value)} bytes; it must have {len(zeros)}")
    if value == zeros:
        raise OtlpError(f"the {name} consists of zeros, which OpenTelemetry defines as invalid")
    return value.hex()


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, OtlpError) else "is not a complete protobuf message"


def _looks_like(view: Any, signal: Signal) -> bool:
    """Returns whether the items have what only the other signal has: spans begin with an id, log records with a time."""
    for _, _, raw in _items(view, signal):
        try:
            if signal == "spans":
                return len(SpanView.FromString(raw).trace_id) == TRACE_ID_BYTES
            log = LogView.FromString(raw)
            return bool(log.time_unix_nano or log.observed_time_unix_nano)
        except DecodeError:
            return False
    return False


def _wrong_signal(expected: Signal) -> OtlpError:
    wanted, _, found = _NAMES[expected]
    return OtlpError(f"the request is {found}, but {wanted} are expected here; send each to a topic of its own")
