"""OTLP requests in protobuf and JSON are decoded to the same spans, and one unusable span costs only that span."""

from __future__ import annotations

import io
import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status, TracesData

from traceweir.streams.otlp.decoded import MAX_DEPTH, Decoded, NotOtlpError
from traceweir.streams.otlp.requests import decode, requests_of
from traceweir.streams.spans.span import Span as Decodable
from traceweir.streams.spans.span import SpanEvent

TRACE, SPAN = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"
START_NS, END_NS = 1_767_225_600_000_000_000, 1_767_225_601_000_000_001


def json_request(*spans: dict[str, Any]) -> bytes:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    scoped = [{"scope": {"name": "lib"}, "spans": list(spans)}]
    return orjson.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scoped}]})


def json_span(**changes: Any) -> dict[str, Any]:
    return {"traceId": TRACE, "spanId": SPAN, "name": "chat"} | changes


def decoded_attribute(value: Any) -> Any:
    (span,) = decode(json_request(json_span(attributes=[{"key": "a", "value": value}]))).spans
    return span.attributes["a"]


def protobuf_request(*spans: Span) -> bytes:
    resource = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value="shop"))])
    scoped = ScopeSpans(spans=spans)
    scoped.scope.name = "lib"
    return TracesData(resource_spans=[ResourceSpans(resource=resource, scope_spans=[scoped])]).SerializeToString()


def protobuf_span(**changes: Any) -> Span:
    return Span(**{"trace_id": bytes.fromhex(TRACE), "span_id": bytes.fromhex(SPAN), "name": "chat"} | changes)


def same(found: Decoded, expected: Decodable) -> bool:
    (span,) = found.spans
    return all(getattr(span, name) == getattr(expected, name) for name in Decodable.__slots__)


EXPECTED = Decodable(
    TRACE,
    SPAN,
    "00f067aa0ba902b7",
    "chat gpt",
    START_NS,
    END_NS,
    {"text": "á", "count": 2**62, "share": 0.5, "on": True, "none": None, "list": [1, "b"], "map": {"k": b"\x00\xff"}},
    [SpanEvent("exception", START_NS, {"exception.message": "no"})],
    "ERROR",
    "it failed",
    {"service.name": "shop"},
    "lib",
    1,
    "ot=th:8",
    3,
)


def test_a_request_in_protobuf_is_decoded_whole() -> None:
    pairs = {
        "text": AnyValue(string_value="á"),
        "count": AnyValue(int_value=2**62),
        "share": AnyValue(double_value=0.5),
        "on": AnyValue(bool_value=True),
        "none": AnyValue(),
        "list": AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1), AnyValue(string_value="b")])),
        "map": AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="k", value=AnyValue(bytes_value=b"\x00\xff"))])),
    }
    span = protobuf_span(
        parent_span_id=bytes.fromhex("00f067aa0ba902b7"),
        name="chat gpt",
        start_time_unix_nano=START_NS,
        end_time_unix_nano=END_NS,
        attributes=[KeyValue(key=key, value=value) for key, value in pairs.items()],
        events=[
            Span.Event(
                name="exception",
                time_unix_nano=START_NS,
                attributes=[KeyValue(key="exception.message", value=AnyValue(string_value="no"))],
            )
        ],
        status=Status(code=Status.STATUS_CODE_ERROR, message="it failed"),
        flags=0x101,
        trace_state="ot=th:8",
        dropped_attributes_count=3,
    )
    assert same(decode(protobuf_request(span)), EXPECTED)


@pytest.mark.parametrize("snake_case", [False, True])
def test_a_request_in_json_is_decoded_to_the_same(snake_case: bool) -> None:
    attributes = [
        {"key": "text", "value": {"stringValue": "á"}},
        {"key": "count", "value": {"intValue": str(2**62)}},
        {"key": "share", "value": {"doubleValue": 0.5}},
        {"key": "on", "value": {"boolValue": True}},
        {"key": "none", "value": {}},
        {"key": "list", "value": {"arrayValue": {"values": [{"intValue": 1}, {"stringValue": "b"}]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"bytesValue": "AP8="}}]}}},
    ]
    failure = {"key": "exception.message", "value": {"stringValue": "no"}}
    span = json_span(
        traceId=TRACE.upper(),
        parentSpanId="00f067aa0ba902b7",
        name="chat gpt",
        startTimeUnixNano=str(START_NS),
        endTimeUnixNano=END_NS,
        attributes=attributes,
        events=[{"name": "exception", "timeUnixNano": str(START_NS), "attributes": [failure]}],
        status={"code": "STATUS_CODE_ERROR" if snake_case else 2, "message": "it failed"},
        flags=257,
        traceState="ot=th:8",
        droppedAttributesCount=3,
    )
    request = json_request(span)
    if snake_case:
        for name in (
            "traceId",
            "spanId",
            "parentSpanId",
            "startTimeUnixNano",
            "stringValue",
            "resourceSpans",
            "scopeSpans",
        ):
            snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
            request = request.replace(f'"{name}"'.encode(), f'"{snake}"'.encode())
    assert same(decode(request), EXPECTED)
    assert same(decode(b"\n " + request), EXPECTED)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"traceId": ""}, "the trace id is missing"),
        ({"traceId": "0" * 32}, "the trace id consists of zeros"),
        ({"traceId": TRACE[:30]}, "the trace id must have 32 hexadecimal digits"),
        ({"spanId": None}, "the span id is missing"),
        ({"spanId": "zz" + SPAN[2:]}, "the span id must have 16 hexadecimal digits"),
        ({"spanId": 7}, "spanId is not a text"),
        ({"parentSpanId": "12"}, "the parent's span id must have 16 hexadecimal digits"),
        ({"startTimeUnixNano": -1}, "the start is -1 ns after 1970"),
        ({"endTimeUnixNano": str(2**64 - 1)}, "which is not within the years 1970 to 2262"),
        ({"endTimeUnixNano": "9" * 5_000}, "endTimeUnixNano is not an integer of 64 bits"),
        ({"attributes": [{"key": "a", "value": {"intValue": "x"}}]}, "intValue is not an integer of 64 bits"),
        ({"attributes": [{"key": "a", "value": {"doubleValue": []}}]}, "doubleValue is not a number"),
        ({"attributes": [{"key": "a", "value": {"bytesValue": "*"}}]}, "bytesValue is not base64"),
    ],
)
def test_an_unusable_span_is_named_and_its_neighbours_are_decoded(changes: dict[str, Any], why: str) -> None:
    found = decode(json_request(json_span(name="first"), json_span(**changes), json_span(name="third")))
    assert [span.name for span in found.spans] == ["first", "third"]
    (problem,) = found.problems
    assert problem.startswith("span 2 (chat): ")
    assert why in problem
    assert len(problem) < 200


def test_an_unusable_span_in_protobuf_is_named_and_its_neighbours_are_decoded() -> None:
    found = decode(
        protobuf_request(protobuf_span(), protobuf_span(span_id=b"\x00" * 8, name="a\x1b[31m"), protobuf_span())
    )
    assert len(found.spans) == 2
    assert found.problems == ["span 2 (a\\x1b[31m): the span id consists of zeros, which means that there is none"]


def nested(levels: int) -> tuple[AnyValue, dict[str, Any]]:
    in_protobuf = AnyValue(string_value="x")
    in_json: dict[str, Any] = {"stringValue": "x"}
    for _ in range(levels):
        in_protobuf = AnyValue(array_value=ArrayValue(values=[in_protobuf]))
        in_json = {"arrayValue": {"values": [in_json]}}
    return in_protobuf, in_json


@pytest.mark.parametrize(("levels", "usable"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_values_have_a_limited_depth(levels: int, usable: bool) -> None:
    in_protobuf, in_json = nested(levels)
    for request in (
        protobuf_request(protobuf_span(attributes=[KeyValue(key="a", value=in_protobuf)])),
        json_request(json_span(attributes=[{"key": "a", "value": in_json}])),
    ):
        found = decode(request)
        assert (bool(found.spans), bool(found.problems)) == (usable, not usable)


def test_numbers_that_json_cannot_hold_are_read_from_texts() -> None:
    assert decoded_attribute({"doubleValue": "Infinity"}) == math.inf
    assert math.isnan(decoded_attribute({"doubleValue": "NaN"}))
    assert decoded_attribute({"intValue": "-9223372036854775808"}) == -(2**63)
    assert decoded_attribute({"stringValue": ""}) == ""
    assert decoded_attribute({"unknownValue": 1}) is None
    assert decoded_attribute("text") is None


def test_log_records_of_spans_are_told_apart_from_spans() -> None:
    body = AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="content", value=AnyValue(string_value="Hi"))]))
    records = [
        LogRecord(
            trace_id=bytes.fromhex(TRACE),
            span_id=bytes.fromhex(SPAN),
            event_name="gen_ai.user.message",
            time_unix_nano=START_NS,
            body=body,
        ),
        LogRecord(time_unix_nano=START_NS, body=AnyValue(string_value="started")),
    ]
    request = LogsData(resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=records)])]).SerializeToString()
    found = decode(request)
    assert (found.spans, found.problems, found.unrelated_logs) == ([], [], 1)
    event = SpanEvent("gen_ai.user.message", START_NS, {}, {"content": "Hi"})
    assert found.logs == [(TRACE, SPAN, event)]

    in_json = {
        "traceId": TRACE,
        "spanId": SPAN,
        "observedTimeUnixNano": str(START_NS),
        "attributes": [{"key": "event.name", "value": {"stringValue": "gen_ai.user.message"}}],
        "body": {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "Hi"}}]}},
    }
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [in_json, {"body": {"stringValue": "started"}}]}]}]}
    found = decode(orjson.dumps(logs))
    assert found.logs == [(TRACE, SPAN, event._replace(attributes={"event.name": "gen_ai.user.message"}))]
    assert found.unrelated_logs == 1


@pytest.mark.parametrize(
    ("request_bytes", "why"),
    [
        (b"", "the request is empty"),
        (b"hello", "neither a JSON object nor a request in protobuf"),
        (b"{", "the value is not JSON"),
        (b"[" * 10_000, "neither a JSON object nor a request in protobuf"),
        (b'{"a": ' * 10_000, "the value is not JSON"),
        (b'{"messages": []}', "neither resourceSpans nor resourceLogs"),
        (protobuf_request(protobuf_span())[:-3], "no OTLP request in protobuf, or are cut"),
        (b"\n\x00", "neither a span nor a log record"),
    ],
)
def test_bytes_that_are_no_request_are_refused_with_the_reason(request_bytes: bytes, why: str) -> None:
    with pytest.raises(NotOtlpError, match=why):
        decode(request_bytes)


@given(st.binary(max_size=200), st.integers(0, 400), st.binary(max_size=8))
def test_no_bytes_raise_anything_else(noise: bytes, place: int, changed: bytes) -> None:
    whole = protobuf_request(protobuf_span(), protobuf_span())
    for request in (noise, b"\n" + noise, whole[:place] + changed + whole[place + len(changed) :]):
        try:
            said = decode(request).problems
        except NotOtlpError as error:
            said = [str(error)]
        assert all(sentence.isprintable() for sentence in said)


def test_a_file_holds_lines_framed_requests_or_one_request() -> None:
    first, second = protobuf_request(protobuf_span()), protobuf_request(protobuf_span(name="x" * 300))
    framed = b"".join(len(each).to_bytes(4, "big") + each for each in (first, second))
    assert list(requests_of(io.BytesIO(framed))) == [first, second]
    assert list(requests_of(io.BytesIO(first))) == [first]
    line = json_request(json_span())
    assert [each.strip() for each in requests_of(io.BytesIO(line + b"\n\n" + line))] == [line, line]
    pretty = orjson.dumps(orjson.loads(line), option=orjson.OPT_INDENT_2)
    assert [orjson.loads(each) for each in requests_of(io.BytesIO(pretty))] == [orjson.loads(line)]
    assert list(requests_of(io.BytesIO(b""))) == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"hello", "begins with neither a JSON object"),
        ((1_000).to_bytes(4, "big") + b"\nabc", "request 1: has 4 of 1000 bytes; the file is cut"),
        ((2).to_bytes(4, "big") + b"\n\x00" + b"\x00\x00", "request 2: its length is cut"),
    ],
)
def test_a_damaged_file_is_refused_with_the_number_of_the_request(content: bytes, why: str) -> None:
    with pytest.raises(NotOtlpError, match=why):
        list(requests_of(io.BytesIO(content)))
