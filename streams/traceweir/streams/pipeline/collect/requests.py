"""Splits the value of a record into the spans or log records that the stage keeps, and joins them again to requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from traceweir.schemas.dead_letter import Headers
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.intake.otlp.decoding import decode_log
from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.intake.otlp.slices import MAX_SPAN_BYTES, log_slices, span_slices
from traceweir.streams.intake.spans.model_logs import is_of_model, may_be_of_model
from traceweir.streams.pipeline.decoding.envelopes import described, opened


class RequestPart(NamedTuple):
    """A span or a log record of a request."""

    trace_id: bytes
    is_root: bool
    """Whether the part is a span without a parent."""
    data: bytes
    """A request with this span or log record alone."""


class Request(NamedTuple):
    """The usable spans or log records of a request."""

    parts: list[RequestPart]
    problems: list[str]
    """A sentence for each span or log record that cannot be used."""
    other_logs: int
    """Number of log records that are no GenAI events, or name no trace."""


def read_request(value: bytes | None, headers: Headers = (), *, logs: bool) -> Request:
    """Returns the spans or log records of a request in protobuf or JSON, or of one in JSON in an envelope.

    Raises:
        RecordRejected: the record has no value, or the value is not such a request.
    """
    if not value:
        raise RecordRejected("empty", "the record has no value" if value is None else "the record's value is empty")
    try:
        return _logs(value) if logs else _spans(value)
    except OtlpError as error:
        return _in_envelope(value, headers, error, logs=logs)


def _in_envelope(value: bytes, headers: Headers, error: OtlpError, *, logs: bool) -> Request:
    found = opened(value, headers)
    if found is None:
        what = described(value)
        raise RecordRejected("invalid", str(error) if what is None else f"{what} ({error})") from None
    try:
        return _logs(found.value) if logs else _spans(found.value)
    except OtlpError as inner:
        raise RecordRejected("invalid", f"{found.around}: {inner}") from None


def joined(parts: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """Yields requests of at most `limit` bytes; requests in protobuf can be joined, because their fields are repeated."""
    batch: list[bytes] = []
    size = 0
    for part in parts:
        if batch and size + len(part) > limit:
            yield b"".join(batch)
            batch = []
            size = 0
        batch.append(part)
        size += len(part)
    if batch:
        yield b"".join(batch)


def _spans(value: bytes) -> Request:
    slices, problems = span_slices(value)
    parts = []
    for trace_id, span_id, parent_id, data in slices:
        if len(data) > MAX_SPAN_BYTES:
            problems.append(f"span {span_id} of trace {trace_id} {_too_large(data)}")
        else:
            parts.append(RequestPart(bytes.fromhex(trace_id), not parent_id, data))
    return Request(parts, problems, 0)


def _logs(value: bytes) -> Request:
    slices, problems, others = log_slices(value)
    parts = []
    for found in slices:
        try:
            # Most log records need no decoding.
            if not (may_be_of_model(found.data) and is_of_model(decode_log(found).event)):
                others += 1
            elif len(found.data) > MAX_SPAN_BYTES:
                problems.append(f"a log record of trace {found.trace_id} {_too_large(found.data)}")
            else:
                parts.append(RequestPart(bytes.fromhex(found.trace_id), False, found.data))
        except OtlpError as error:
            problems.append(str(error))
    return Request(parts, problems, others)


def _too_large(data: bytes) -> str:
    return f"has {len(data)} bytes with its resource; it can have at most {MAX_SPAN_BYTES}"
