"""Spans and log records in both encodings of OTLP, whole and damaged."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from dataclasses import astuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData
from tests.support.examples import examples

from traceweir.streams.intake.otlp.decoding import (
    LogEvent,
    add_logs,
    decode_logs,
    decode_sound_spans,
    decode_span,
    decode_spans,
)
from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.intake.otlp.slices import SpanSlice, log_slices, span_slices
from traceweir.streams.intake.spans.span import SpanEvent

TRACE = "8e0568473d3019941ee3489f17a58756"
SPAN = "289e90ab8a086000"
PARENT = "0e2868948a1f0651"


def protobuf(*spans: Span, service: str = "shop") -> bytes:
    data = TracesData()
    resource = data.resource_spans.add()
    resource.resource.attributes.append(KeyValue(key="service.name", value=AnyValue(string_value=service)))
    scope = resource.scope_spans.add()
    scope.scope.name = "agent"
    scope.spans.extend(spans)
    return bytes(data.SerializeToString())


def span(**fields: object) -> Span:
    ids = {"trace_id": bytes.fromhex(TRACE), "span_id": bytes.fromhex(SPAN)}
    return Span(**{**ids, **fields})  # type: ignore[arg-type]


def as_json(*spans: object, **more: object) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}], **more}).encode()


def json_span(**fields: object) -> dict[str, object]:
    return {"traceId": TRACE, "spanId": SPAN, **fields}


def value(found: object) -> object:
    decoded = decode_spans(as_json(json_span(attributes=[{"key": "a", "value": found}])))
    assert decoded.problems == []
    return decoded.spans[0].attributes["a"]


def test_a_protobuf_span_keeps_every_field() -> None:
    event = Span.Event(time_unix_nano=3, name="e", attributes=[KeyValue(key="k", value=AnyValue(int_value=-1))])
    sent = span(
        parent_span_id=bytes.fromhex(PARENT), name="chat", start_time_unix_nano=1, end_time_unix_nano=2, flags=257,
        trace_state="a=b", dropped_attributes_count=4, events=[event], status={"code": 2, "message": "boom"},
        attributes=[KeyValue(key="x", value=AnyValue(bool_value=True))],
    )  # fmt: skip
    (found,) = decode_spans(protobuf(sent)).spans
    assert (found.trace_id, found.span_id, found.parent_id, found.name) == (TRACE, SPAN, PARENT, "chat")
    assert (found.start_ns, found.end_ns, found.flags, found.trace_state) == (1, 2, 257, "a=b")
    assert (found.status, found.status_message, found.dropped_attributes) == ("ERROR", "boom", 4)
    assert (found.attributes, found.resource, found.scope) == ({"x": True}, {"service.name": "shop"}, "agent")
    assert [(each.name, each.time_ns, each.attributes) for each in found.events] == [("e", 3, {"k": -1})]


def test_a_whole_request_gives_the_same_spans_as_its_slices() -> None:
    nothing_but_defaults = [
        AnyValue(), AnyValue(string_value=""), AnyValue(bool_value=False), AnyValue(int_value=0),
        AnyValue(double_value=0.0), AnyValue(double_value=float("nan")), AnyValue(bytes_value=b""),
    ]  # fmt: skip
    values = [KeyValue(key=str(place), value=each) for place, each in enumerate(nothing_but_defaults)]
    request = protobuf(span(attributes=values), span(parent_span_id=bytes(8), name="second"))
    found = decode_sound_spans(request)
    assert found is not None
    assert [*map(astuple, found)] == [astuple(decode_span(each)) for each in span_slices(request).slices]


@pytest.mark.parametrize(
    "doubtful",
    [
        span(status={"code": 3}),
        span(start_time_unix_nano=2**63),
        span(events=[Span.Event(time_unix_nano=2**63)]),
        span(span_id=b"short"),
        span(trace_id=bytes(16)),
    ],
)
def test_a_request_with_a_doubtful_span_is_left_to_its_slices(doubtful: Span) -> None:
    assert decode_sound_spans(protobuf(span(), doubtful)) is None
    assert len(decode_spans(protobuf(span(), doubtful)).problems) == 1


def test_the_collectors_json_gives_the_same_span_as_protobuf() -> None:
    found = decode_spans(
        as_json(json_span(parentSpanId="", startTimeUnixNano="18", endTimeUnixNano=19, kind="SPAN_KIND_CLIENT",
                          status={"code": "STATUS_CODE_ERROR", "message": "no"}))
    ).spans[0]  # fmt: skip
    assert (found.parent_id, found.start_ns, found.end_ns, found.status) == ("", 18, 19, "ERROR")


def test_snake_case_names_are_read() -> None:
    request = {"resource_spans": [{"scope_spans": [{"spans": [{"trace_id": TRACE, "span_id": SPAN, "name": "n"}]}]}]}
    assert decode_spans(json.dumps(request).encode()).spans[0].name == "n"


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"stringValue": ""}, ""),
        ({"boolValue": False}, False),
        ({"intValue": str(-(2**63))}, -(2**63)),
        ({"intValue": 7}, 7),
        ({"doubleValue": 0.5}, 0.5),
        ({"doubleValue": "-1.5e3"}, -1500.0),
        ({"doubleValue": "NaN"}, "NaN"),
        ({"doubleValue": "-Infinity"}, "-Infinity"),
        ({"bytesValue": base64.b64encode(b"\0\xff").decode()}, b"\0\xff"),
        ({"arrayValue": {}}, []),
        ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, [1, None]),
        ({"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}}, {"k": "v"}),
        ({}, None),
        (None, None),
    ],
)
def test_every_type_of_value_is_read_from_json(sent: object, expected: object) -> None:
    assert value(sent) == expected


def test_of_attributes_with_the_same_key_the_last_one_counts() -> None:
    pairs = [{"key": "a", "value": {"intValue": each}} for each in (1, 2)]
    assert decode_spans(as_json(json_span(attributes=pairs))).spans[0].attributes == {"a": 2}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"traceId": ""}, "the trace id has 0 bytes"),
        ({"traceId": "0" * 32}, "the trace id consists of zeros"),
        ({"spanId": "ab"}, "the span id has 1 bytes"),
        ({"spanId": "zz"}, "spanId is 'zz'; it must be hexadecimal"),
        ({"parentSpanId": "ab"}, "the parent span id has 1 bytes"),
        ({"startTimeUnixNano": "-1"}, "startTimeUnixNano is '-1'"),
        ({"startTimeUnixNano": str(2**64)}, "startTimeUnixNano is"),
        ({"endTimeUnixNano": str(2**64 - 1)}, "in the year 2262"),
        ({"kind": "NO_KIND"}, "kind is 'NO_KIND'"),
        ({"attributes": "no"}, "attributes is 'no'; it must be a list"),
        ({"attributes": [{"key": "a", "value": {"intValue": "x"}}]}, "intValue is 'x'"),
        ({"attributes": [{"key": "a", "value": {"bytesValue": "%"}}]}, "it must be base64"),
        (
            {"attributes": [{"key": "a", "value": {"doubleValue": "1e999"}}]},
            "doubleValue is '1e999'; it must be a number",
        ),
        ({"attributes": [{"key": "a", "value": {"doubleValue": "inf"}}]}, "doubleValue is 'inf'"),
        ({"attributes": [{"key": "a", "value": {"doubleValue": True}}]}, "doubleValue is True"),
        ({"attributes": [None]}, "an attribute is None; it must be an object"),
        ({"events": [3]}, "an event is 3; it must be an object"),
        ({"status": {"code": 9}}, "the status is 9"),
        ({"name": 5}, "name is 5; it must be a text"),
    ],
)
def test_a_bad_span_costs_only_itself(bad: dict[str, object], reason: str) -> None:
    decoded = decode_spans(as_json(json_span(name="first"), json_span(**bad), json_span(name="last")))
    assert [each.name for each in decoded.spans] == ["first", "last"]
    assert len(decoded.problems) == 1
    assert reason in decoded.problems[0]


def test_text_that_is_not_utf_8_costs_only_its_span() -> None:
    request = protobuf(span(name="good"), span(name="badbad"), span(name="good")).replace(b"badbad", b"bad\xff\xfe\xfd")
    decoded = decode_spans(request)
    assert [each.name for each in decoded.spans] == ["good", "good"]
    assert "not UTF-8" in decoded.problems[0]


def deep(levels: int) -> AnyValue:
    found = AnyValue(string_value="x")
    for _ in range(levels):
        outer = AnyValue()
        outer.array_value.values.append(found)
        found = outer
    return found


def nested_json(levels: int) -> dict[str, object]:
    found: dict[str, object] = {"stringValue": "x"}
    for _ in range(levels):
        found = {"arrayValue": {"values": [found]}}
    return found


def test_lists_40_levels_deep_are_read_in_both_encodings() -> None:
    spans = decode_spans(as_json(json_span(attributes=[{"key": "a", "value": nested_json(40)}]))).spans
    spans += decode_spans(protobuf(span(attributes=[KeyValue(key="a", value=deep(40))]))).spans
    assert json.dumps(spans[0].attributes) == json.dumps(spans[1].attributes)


def test_too_deep_lists_cost_only_their_span() -> None:
    too_deep = json_span(attributes=[{"key": "a", "value": nested_json(200)}])
    decoded = decode_spans(as_json(too_deep, json_span(name="good")))
    assert [each.name for each in decoded.spans] == ["good"]
    assert "levels deep" in decoded.problems[0]


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (b"", "is empty"),
        (b"hello", "is not OTLP"),
        (b"\x1f\x8b\x08\x00\x00\x00", "perhaps it was cut, or is compressed"),
        (protobuf(span(name="x" * 500))[:100], "is not OTLP"),
        (b'{"a": 1}', "without resourceSpans"),
        (b"[]", "not an object"),
        (b'{"resourceSpans": [', "is not JSON"),
        (b'{"resourceSpans": 3}', "resourceSpans is 3; it must be a list"),
        (b'{"resourceLogs": []}', "has resourceLogs, but resourceSpans are expected"),
    ],
)
def test_a_request_that_cannot_be_decoded_raises_one_error_with_the_reason(request_: bytes, reason: str) -> None:
    with pytest.raises(OtlpError) as raised:
        decode_spans(request_)
    assert reason in str(raised.value)


def test_json_that_starts_with_a_line_feed_is_json() -> None:
    assert decode_spans(b"\n" + as_json(json_span(name="n"))).spans[0].name == "n"


def test_a_protobuf_request_whose_length_is_the_code_of_a_brace_is_protobuf() -> None:
    requests = [protobuf(span(name="x" * size)) for size in range(100)]
    (request,) = [each for each in requests if each[:2] == b"\n{"]
    assert len(decode_spans(request).spans) == 1


def logs(*records: LogRecord) -> bytes:
    data = LogsData()
    data.resource_logs.add().scope_logs.add().log_records.extend(records)
    return bytes(data.SerializeToString())


def test_log_records_have_the_ids_the_name_and_the_body() -> None:
    ids = {"trace_id": bytes.fromhex(TRACE), "span_id": bytes.fromhex(SPAN), "body": AnyValue(string_value="b")}
    older = KeyValue(key="event.name", value=AnyValue(string_value="old"))
    decoded = decode_logs(
        logs(
            LogRecord(time_unix_nano=5, event_name="new", attributes=[older], **ids),  # type: ignore[arg-type]
            LogRecord(observed_time_unix_nano=6, attributes=[older], **ids),  # type: ignore[arg-type]
            LogRecord(time_unix_nano=7),
        )
    )
    assert [(each.event.name, each.event.time_ns, each.event.body) for each in decoded.logs] == [
        ("new", 5, "b"),
        ("old", 6, "b"),
    ]
    assert {(each.trace_id, each.span_id) for each in decoded.logs} == {(TRACE, SPAN)}
    assert (decoded.without_trace, decoded.problems) == (1, [])


def test_every_version_of_a_span_gets_its_log_records_and_each_unknown_span_is_told() -> None:
    versions = [decode_spans(protobuf(span(name=name))).spans[0] for name in ("begun", "ended")]
    event = SpanEvent("gen_ai.choice", 5, {}, "b")
    unknown = LogEvent(TRACE, "f" * 16, event)
    assert add_logs(versions, [LogEvent(TRACE, SPAN, event), unknown]) == [unknown]
    assert [each.events[-1] for each in versions] == [event, event]


def test_the_other_signal_is_named() -> None:
    record = LogRecord(trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(SPAN), time_unix_nano=5)
    with pytest.raises(OtlpError, match="is a request of log records"):
        span_slices(logs(record))
    with pytest.raises(OtlpError, match="is a request of spans"):
        log_slices(protobuf(span()))


def test_a_slice_is_a_request_with_one_span_whose_resource_is_its_own() -> None:
    request = protobuf(span(name="a"), span(name="b")) + protobuf(span(name="c"), service="bank")
    again = [TracesData.FromString(each.data) for each in span_slices(request).slices]
    found = [(each.resource_spans[0].scope_spans[0].spans, each.resource_spans[0].resource) for each in again]
    assert [[each.name for each in spans] for spans, _ in found] == [["a"], ["b"], ["c"]]
    assert [resource.attributes[0].value.string_value for _, resource in found] == ["shop", "shop", "bank"]


def test_a_slice_that_is_no_slice_is_an_error() -> None:
    with pytest.raises(OtlpError, match="exactly one"):
        decode_span(SpanSlice(TRACE, SPAN, "", b""))


@settings(max_examples=examples(60), deadline=None)
@given(st.binary(max_size=60), st.integers(0, 400), st.integers(0, 400))
def test_damaged_bytes_raise_nothing_but_an_otlp_error(noise: bytes, start: int, length: int) -> None:
    attribute = KeyValue(key="a", value=deep(3))
    good = protobuf(span(name="a", attributes=[attribute]), span(name="b", events=[Span.Event(name="e")]))
    for request in (noise, good[:start] + noise + good[start + length :]):
        for decode in (decode_spans, decode_logs):
            with suppress(OtlpError):
                decode(request)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["key", "value", "values", "stringValue", "intValue", "kvlistValue", "arrayValue"]), inner, max_size=3
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(["traceId", "attributes", "events", "status", "flags", "startTimeUnixNano"]), JSON_VALUES)
def test_any_json_at_any_place_raises_nothing_and_costs_no_neighbour(name: str, found: object) -> None:
    decoded = decode_spans(as_json(json_span(**{name: found}), json_span(name="good")))
    assert decoded.spans[-1].name == "good"
    assert len(decoded.spans) + len(decoded.problems) == 2
