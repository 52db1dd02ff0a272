"""Tests that the endpoint acknowledges exactly what the stage collect can use, in both encodings."""

from __future__ import annotations

from typing import Any

import orjson
from google.protobuf.json_format import MessageToDict
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status, TracesData
from tests.support.examples import examples

from traceweir.streams.intake.otlp.acceptance import accept
from traceweir.streams.intake.otlp.decoding import decode_logs, decode_spans
from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.pipeline.collect.requests import read_request

TIMES = st.sampled_from([0, 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1])
TRACE_IDS = st.sampled_from([b"\x01" * 16, b"\x01" * 16, b"\x01" * 16, bytes(16), b"\x01" * 15, b""])
SPAN_IDS = st.sampled_from([b"\x02" * 8, b"\x03" * 8, bytes(8), b"\x01" * 7, b""])
PARENT_IDS = st.sampled_from([b"", b"", b"\x04" * 8, bytes(8), bytes(3), b"\x04" * 5])
STATUSES = st.sampled_from([0, 1, 2, 3, -1, 2**31 - 1])
MAX_RECORD_BYTES = st.sampled_from([300, 1_000_000])


def deep(levels: int) -> AnyValue:
    value = AnyValue(string_value="end")
    for _ in range(levels):
        outer = AnyValue()
        outer.array_value.values.append(value)
        value = outer
    return value


def status(code: Any) -> Status:
    return Status(code=code)


ATTRIBUTES = st.lists(
    st.builds(
        KeyValue,
        key=st.sampled_from(["", "a", "gen_ai.system", "event.name"]),
        value=st.one_of(
            st.sampled_from(["gen_ai.choice", "x" * 400]).map(lambda text: AnyValue(string_value=text)),
            st.sampled_from([0.0, float("nan"), float("inf")]).map(lambda number: AnyValue(double_value=number)),
            st.integers(-(2**63), 2**63 - 1).map(lambda number: AnyValue(int_value=number)),
            st.sampled_from([1, 20, 40, 41, 42, 47]).map(deep),
            st.just(AnyValue()),
        ),
    ),
    max_size=2,
)
EVENTS = st.lists(st.builds(Span.Event, name=st.just("e"), time_unix_nano=TIMES, attributes=ATTRIBUTES), max_size=2)
SPANS = st.builds(
    Span,
    trace_id=TRACE_IDS,
    span_id=SPAN_IDS,
    parent_span_id=PARENT_IDS,
    start_time_unix_nano=TIMES,
    end_time_unix_nano=TIMES,
    events=EVENTS,
    attributes=ATTRIBUTES,
    status=STATUSES.map(status),
)
LOGS = st.builds(
    LogRecord,
    trace_id=st.just(b"\x01" * 16) | st.just(b"\x01" * 15),
    span_id=st.sampled_from([b"", b"\x02" * 8, b"\x01" * 7]),
    time_unix_nano=TIMES,
    observed_time_unix_nano=TIMES,
    attributes=ATTRIBUTES,
    event_name=st.sampled_from(["gen_ai.choice", ""]),
    body=st.just(AnyValue(string_value="said")),
)


def with_hex_ids(document: Any, message: Any) -> Any:
    """Returns the JSON of a message as OTLP defines it: ids are hexadecimal, and not base64."""
    if isinstance(document, dict):
        found = {}
        for name, value in document.items():
            field = next(each for each in message.DESCRIPTOR.fields if each.json_name == name)
            inner = getattr(message, field.name)
            found[name] = inner.hex() if field.name.endswith("_id") else with_hex_ids(value, inner)
        return found
    if isinstance(document, list):
        return [with_hex_ids(each, inner) for each, inner in zip(document, message, strict=True)]
    return document


def encoded(message: Any, *, json: bool) -> bytes:
    return orjson.dumps(with_hex_ids(MessageToDict(message), message)) if json else message.SerializeToString()


@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.lists(SPANS, min_size=1, max_size=4), ATTRIBUTES, st.booleans(), MAX_RECORD_BYTES)
def test_accepted_spans_are_those_that_can_be_decoded(
    spans: list[Span], resource: list[KeyValue], json: bool, max_record_bytes: int
) -> None:
    scopes = [ScopeSpans(spans=spans[:2]), ScopeSpans(spans=spans[2:])]
    message = TracesData(resource_spans=[ResourceSpans(resource=Resource(attributes=resource), scope_spans=scopes)])
    try:
        found = accept(encoded(message, json=json), "spans", json=json, max_record_bytes=max_record_bytes)
    except OtlpError:
        # Nothing of the request is acknowledged, which proves nothing.
        assume(False)
    decoded = [decode_spans(record) for record in found.records]
    assert found.accepted == sum(len(each.spans) for each in decoded)
    assert [problem for each in decoded for problem in each.problems] == []
    assert found.accepted == sum(len(read_request(record, logs=False).parts) for record in found.records)
    assert found.accepted + found.rejected == len(spans)


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(LOGS, min_size=1, max_size=4), st.booleans(), MAX_RECORD_BYTES)
def test_accepted_log_records_are_those_that_can_be_decoded(
    logs: list[LogRecord], json: bool, max_record_bytes: int
) -> None:
    message = LogsData(resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=logs)])])
    try:
        found = accept(encoded(message, json=json), "logs", json=json, max_record_bytes=max_record_bytes)
    except OtlpError:
        # Nothing of the request is acknowledged, which proves nothing.
        assume(False)
    decoded = [decode_logs(record) for record in found.records]
    assert found.accepted == sum(len(each.logs) for each in decoded)
    assert [problem for each in decoded for problem in each.problems] == []
    assert found.accepted + found.rejected == len(logs)
