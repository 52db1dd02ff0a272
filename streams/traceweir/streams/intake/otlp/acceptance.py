"""Checks an OTLP request that was received, leaves out what cannot be used, and splits it into records of a limited size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import orjson
from google.protobuf.message import DecodeError
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from traceweir.schemas.text import listed
from traceweir.streams.intake.otlp.decoding import decode_log, decode_span
from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.intake.otlp.json_requests import BOM, FIELDS, Signal, get_field
from traceweir.streams.intake.otlp.message_counts import has_too_many_messages, max_fields, max_messages
from traceweir.streams.intake.otlp.slices import (
    MAX_SPAN_BYTES,
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    LogSlice,
    SpanSlice,
    is_json,
    log_slices,
    span_slices,
)
from traceweir.streams.intake.otlp.soundness import log_problem, span_problem
from traceweir.streams.intake.otlp.views import LogView, RequestView, SpanView

MAX_ENTRIES = 100_000
"""Resources, scopes and spans of a request together. OpenTelemetry's SDKs send 512 spans, its Collector 8,192.

Ten million empty spans fit into 20 MB, and would take minutes and gigabytes to refuse one by one.
"""
_COUNTED_FROM_BYTES = 200_000
"""A smaller request cannot have so many entries: each has at least two bytes."""
_FRAME_BYTES = 16
"""More than the tag and the length of a field take, with what they add to the lengths around them."""
_NO_TRACE = bytes(TRACE_ID_BYTES)
_NO_SPAN = bytes(SPAN_ID_BYTES)
_FIRST_TAG = b"\n"
"""The first byte of every request in protobuf; in JSON it is white space."""


class AcceptedRequest(NamedTuple):
    """The usable part of a request."""

    records: list[bytes]
    """Requests of at most the allowed size, which together hold all accepted spans or log records."""
    accepted: int
    """Number of spans or log records in the records."""
    rejected: int
    """Number of spans or log records that cannot be used, or that alone are larger than a record can be."""
    problem: str
    """Why spans or log records were rejected; empty if none was."""


def accept(request: bytes, signal: Signal, *, json: bool, max_record_bytes: int) -> AcceptedRequest:
    """Checks a request completely, and returns the records that hold its usable spans or log records.

    A request without a problem stays as it is, byte for byte. If it is too large for a record, or if spans are left out,
    its records are in protobuf; what JSON held besides the fields that Traceweir reads is then lost.

    Args:
        request: The body, without compression. An empty body is an empty request.
        signal: What the request holds.
        json: Whether the sender says that the request is JSON; otherwise it is protobuf.
        max_record_bytes: The largest record, in bytes; no record is larger than `MAX_SPAN_BYTES` either.

    Raises:
        OtlpError: the request is not OTLP in this encoding, is a request of the other signal, or holds nothing usable.
    """
    if not request:
        if json:
            raise OtlpError("the body is empty; an empty request in JSON is {}")
        return AcceptedRequest([], 0, 0, "")
    if json != is_json(request) and (json or not request.startswith(_FIRST_TAG)):
        raise OtlpError(
            "the body is not JSON, which its content type promises"
            if json
            else "the body is JSON, and its content type promises protobuf"
        )
    max_record_bytes = min(max_record_bytes, MAX_SPAN_BYTES)
    if has_too_many_messages(request, signal, json=json):
        raise OtlpError(
            f"the request has more than {max_messages(len(request))} events, links, attributes and values, or "
            f"{max_fields(len(request))} fields; send smaller batches"
        )
    if len(request) >= _COUNTED_FROM_BYTES:
        _check_entries(request, signal, json=json)
    count = None if json else _count_if_valid(request, signal)
    if count == 0:
        return AcceptedRequest([], 0, 0, "")
    if count is not None and len(request) <= max_record_bytes:
        return AcceptedRequest([request], count, 0, "")
    problems: list[str] = []
    if count is None:
        usable, problems = _usable(request, signal, decode=not json)
        if not usable and not problems:
            return AcceptedRequest([], 0, 0, "")
        if json and not problems and len(request) <= max_record_bytes:
            return AcceptedRequest([request], len(usable), 0, "")
        request = b"".join(usable)
    records = []
    accepted = 0
    for record, items in _split(RequestView.FromString(request), max_record_bytes):
        if len(record) > max_record_bytes:
            problems.append(
                f"{_name(record, signal)} has {len(record)} bytes with its resource; a record can have "
                f"{max_record_bytes}"
            )
        else:
            records.append(record)
            accepted += items
    if not accepted and problems:
        raise OtlpError(listed(problems))
    return AcceptedRequest(records, accepted, len(problems), listed(problems))


def _check_entries(request: bytes, signal: Signal, *, json: bool) -> None:
    """Checks the number of entries, decoding as little as possible. What cannot be decoded is left to the other checks.

    Raises:
        OtlpError: the request has more than `MAX_ENTRIES`.
    """
    entries = 0
    try:
        for count in _json_entries(request, signal) if json else _protobuf_entries(request):
            entries += count
            if entries > MAX_ENTRIES:
                break
    except (DecodeError, orjson.JSONDecodeError):
        return
    if entries > MAX_ENTRIES:
        raise OtlpError(f"the request has more than {MAX_ENTRIES} resources, scopes and {signal}; send smaller batches")


def _protobuf_entries(request: bytes) -> Iterator[int]:
    """Yields how many resources the request has, how many scopes each resource has, and how many items each scope."""
    view = RequestView.FromString(request)
    yield len(view.resources)
    for resource in view.resources:
        yield len(resource.scopes)
        for scope in resource.scopes:
            yield len(scope.items)


def _json_entries(request: bytes, signal: Signal) -> Iterator[int]:
    """Yields the same of a request in JSON."""
    names = FIELDS[signal]

    def entries(found: Any, level: int) -> Iterator[int]:
        inner = get_field(found, names[level]) if isinstance(found, dict) else None
        if isinstance(inner, list):
            yield len(inner)
            if level + 1 < len(names):
                for each in inner:
                    yield from entries(each, level + 1)

    return entries(orjson.loads(request.removeprefix(BOM)), 0)


def _count_if_valid(request: bytes, signal: Signal) -> int | None:
    """Returns the number of items of a request in protobuf, None if the request needs a closer look."""
    message: Any = TracesData() if signal == "spans" else LogsData()
    try:
        message.ParseFromString(request)
    except DecodeError:
        return None
    if signal == "spans":
        spans = [span for each in message.resource_spans for scope in each.scope_spans for span in scope.spans]
        return len(spans) if message.resource_spans and all(map(_is_usable_span, spans)) else None
    logs = [log for each in message.resource_logs for scope in each.scope_logs for log in scope.log_records]
    # Spans sent as log records can parse; then none of them has what log records have.
    is_of_logs = bool(message.resource_logs) and (not logs or any(map(_has_content, logs)))
    return len(logs) if is_of_logs and all(map(_is_usable_log, logs)) else None


def _is_usable_span(span: Any) -> bool:
    # Not by `_is_id`: calls are most of the time of this function, which is most of the time of a check.
    trace_id = span.trace_id
    span_id = span.span_id
    if len(trace_id) != TRACE_ID_BYTES or len(span_id) != SPAN_ID_BYTES or trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return False
    return len(span.parent_span_id) in (0, SPAN_ID_BYTES) and span_problem(span) is None


def _is_usable_log(log: Any) -> bool:
    has_ids = (not log.trace_id or _is_id(log.trace_id, TRACE_ID_BYTES)) and len(log.span_id) in (0, SPAN_ID_BYTES)
    return has_ids and log_problem(log) is None


def _has_content(log: Any) -> bool:
    return bool(log.time_unix_nano or log.observed_time_unix_nano or log.trace_id or log.HasField("body"))


def _is_id(value: bytes, size: int) -> bool:
    return len(value) == size and value != bytes(size)


def _usable(request: bytes, signal: Signal, *, decode: bool) -> tuple[list[bytes], list[str]]:
    """Returns a request for each usable item, and a sentence for each other item.

    What was converted from JSON was checked meanwhile, so that it needs no decoding.
    """
    slices: Sequence[SpanSlice | LogSlice]
    if signal == "spans":
        slices, problems = span_slices(request)
    else:
        slices, problems, _ = log_slices(request)
    usable: list[bytes] = []
    for each in slices:
        try:
            if decode:
                _ = decode_span(each) if isinstance(each, SpanSlice) else decode_log(each)
        except OtlpError as error:
            problems.append(str(error))
        else:
            usable.append(each.data)
    return usable, problems


def _split(view: Any, limit: int) -> Iterator[tuple[bytes, int]]:
    """Yields requests of at most `limit` bytes with their number of items; an item that is larger stands alone."""
    batch = RequestView()
    size = 0
    items = 0
    resource_of: bytes | None = None
    scope_of: bytes | None = None
    resource_entry: Any = None
    scope_entry: Any = None
    for resource in view.resources:
        resource_bytes = b"".join(resource.resource)
        for scope in resource.scopes:
            scope_bytes = b"".join(scope.scope)
            for item in scope.items:
                frame = len(resource_bytes) + len(scope_bytes) + 4 * _FRAME_BYTES
                if items and size + len(item) + frame > limit:
                    yield batch.SerializeToString(), items
                    batch = RequestView()
                    size = 0
                    items = 0
                    resource_of = scope_of = None
                if resource_bytes != resource_of:
                    resource_entry = batch.resources.add(resource=[resource_bytes])
                    resource_of = resource_bytes
                    scope_of = None
                    size += len(resource_bytes) + 2 * _FRAME_BYTES
                if scope_bytes != scope_of:
                    scope_entry = resource_entry.scopes.add(scope=[scope_bytes])
                    scope_of = scope_bytes
                    size += len(scope_bytes) + 2 * _FRAME_BYTES
                scope_entry.items.append(item)
                size += len(item) + _FRAME_BYTES
                items += 1
    if items:
        yield batch.SerializeToString(), items


def _name(record: bytes, signal: Signal) -> str:
    """Returns the name of the only item of a record, for a message."""
    item = RequestView.FromString(record).resources[0].scopes[0].items[0]
    ids = (SpanView if signal == "spans" else LogView).FromString(item)
    return (
        f"{'span' if signal == 'spans' else 'a log record of span'} {ids.span_id.hex()} of trace {ids.trace_id.hex()}"
    )
