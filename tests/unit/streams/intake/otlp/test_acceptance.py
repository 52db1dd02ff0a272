"""Tests what of a received OTLP request is written to Kafka, and in which records."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData
from tests.support.collect import agent_trace, log_request, request, span, trace_id

from traceweir.streams.intake.otlp.acceptance import accept
from traceweir.streams.intake.otlp.decoding import decode_spans
from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.intake.otlp.slices import MAX_SPAN_BYTES, span_slices
from traceweir.streams.intake.spans.span import Span as ReadSpan
from traceweir.streams.pipeline.collect.requests import read_request

LIMIT = 1_000_000
WITHOUT_ID = Span(name="no ids")
LOG = LogRecord(time_unix_nano=1, trace_id=trace_id(1), body=AnyValue(string_value="said"), event_name="gen_ai.choice")


def as_json(raw: bytes) -> bytes:
    """The request in JSON, with ids in hexadecimal as OTLP defines them."""
    document = MessageToDict(TracesData.FromString(raw))
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for found, message in zip(scope["spans"], _spans(raw), strict=True):
                found["traceId"], found["spanId"] = message.trace_id.hex(), message.span_id.hex()
                found["parentSpanId"] = message.parent_span_id.hex()
    return orjson.dumps(document)


def _spans(raw: bytes) -> list[Span]:
    return [
        found
        for resource in TracesData.FromString(raw).resource_spans
        for scope in resource.scope_spans
        for found in scope.spans
    ]


def ids(records: list[bytes]) -> list[str]:
    return [found.span_id for record in records for found in span_slices(record).slices]


def content(read: ReadSpan) -> tuple[object, ...]:
    return read.trace_id, read.span_id, read.parent_id, read.name, read.start_ns, read.attributes, read.resource


def wide(number: int, size: int) -> Span:
    return span(1, number, more={"big": "x" * size})


def with_broken_text(found: Span) -> bytes:
    """A span whose name is no UTF-8: complete as a message, and refused when it is decoded."""
    found.name = "NAME"
    return bytes(found.SerializeToString()).replace(b"NAME", b"\xff\xfe\xfd\xfc")


def raw_request(*spans: bytes) -> bytes:
    def field(number: int, content: bytes) -> bytes:
        length, size = bytearray(), len(content)
        while size > 127:
            length.append(size & 127 | 128)
            size >>= 7
        return bytes([number << 3 | 2, *length, size]) + content

    return field(1, field(2, b"".join(field(2, each) for each in spans)))


@pytest.mark.parametrize("json", [False, True])
def test_a_request_without_a_problem_stays_as_it_is(json: bool) -> None:
    sent = request(*agent_trace(1))
    sent = as_json(sent) if json else sent
    assert accept(sent, "spans", json=json, max_record_bytes=LIMIT) == ([sent], 3, 0, "")


def test_a_request_of_logs_stays_as_it_is_with_log_records_that_name_no_trace() -> None:
    sent = log_request(LOG, LogRecord(time_unix_nano=2, body=AnyValue(string_value="other")))
    assert accept(sent, "logs", json=False, max_record_bytes=LIMIT) == ([sent], 2, 0, "")


@pytest.mark.parametrize(
    ("body", "json"), [(b"", False), (b"{}", True), (b'{"resourceSpans": []}', True), (request(), False)]
)
def test_an_empty_request_needs_no_record(body: bytes, json: bool) -> None:
    assert accept(body, "spans", json=json, max_record_bytes=LIMIT) == ([], 0, 0, "")


@pytest.mark.parametrize("bad", [WITHOUT_ID, Span(trace_id=bytes(16), span_id=b"12345678"), Span(trace_id=b"short")])
def test_a_span_without_usable_ids_is_rejected_and_the_others_are_kept(bad: Span) -> None:
    good = agent_trace(1)
    found = accept(request(*good[:1], bad, *good[1:]), "spans", json=False, max_record_bytes=LIMIT)
    assert ids(found.records) == [each.span_id.hex() for each in good]
    assert (found.accepted, found.rejected) == (3, 1)
    assert "spans[1]" in found.problem


def test_a_span_that_is_damaged_inside_is_rejected_and_the_others_are_kept() -> None:
    good, bad = span(1, 1), with_broken_text(span(1, 2))
    found = accept(raw_request(good.SerializeToString(), bad), "spans", json=False, max_record_bytes=LIMIT)
    assert ids(found.records) == [good.span_id.hex()]
    assert (found.accepted, found.rejected) == (1, 1)
    assert "cannot be decoded" in found.problem


def test_a_bad_span_in_json_is_rejected_and_the_others_are_kept() -> None:
    document = orjson.loads(as_json(request(*agent_trace(1))))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["startTimeUnixNano"] = "soon"
    found = accept(orjson.dumps(document), "spans", json=True, max_record_bytes=LIMIT)
    assert len(ids(found.records)) == found.accepted == 2
    assert found.rejected == 1
    assert "startTimeUnixNano" in found.problem


@pytest.mark.parametrize(
    ("body", "signal", "json", "said"),
    [
        (b"hello", "spans", False, "not OTLP"),
        (b"hello", "spans", True, "not JSON"),
        (b"{", "spans", True, "not JSON"),
        (b'{"a": 1}', "spans", True, "not OTLP"),
        (b"[]", "spans", True, "not an object"),
        (b"", "spans", True, "empty"),
        (b'{"resourceSpans": []}', "spans", False, "promises protobuf"),
        (request(span(1, 0)), "spans", True, "promises"),
        (request(span(1, 0))[:-3], "spans", False, "cut"),
        (request(WITHOUT_ID), "spans", False, "trace id"),
        (log_request(LOG), "spans", False, "a request of log records"),
        (request(span(1, 0)), "logs", False, "a request of spans"),
        (b'{"resourceLogs": []}', "spans", True, "resourceLogs"),
    ],
)
def test_a_body_with_nothing_usable_is_refused(body: bytes, signal: str, json: bool, said: str) -> None:
    with pytest.raises(OtlpError, match=said):
        accept(body, signal, json=json, max_record_bytes=LIMIT)  # type: ignore[arg-type]  # the values are signals


@pytest.mark.parametrize("json", [False, True])
def test_a_request_that_is_larger_than_a_record_is_split_and_nothing_is_lost(json: bool) -> None:
    sent = request(*(wide(number, 400) for number in range(1, 40)))
    found = accept(as_json(sent) if json else sent, "spans", json=json, max_record_bytes=5_000)
    assert (found.accepted, found.rejected) == (39, 0)
    assert len(found.records) > 1
    assert max(map(len, found.records)) <= 5_000
    read = [each for record in found.records for each in decode_spans(record).spans]
    assert [content(each) for each in read] == [content(each) for each in decode_spans(sent).spans]


def test_spans_of_several_resources_keep_their_resource_when_they_are_split() -> None:
    def named(name: str, *spans: Span) -> ResourceSpans:
        resource = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value=name))])
        return ResourceSpans(resource=resource, scope_spans=[ScopeSpans(spans=[each]) for each in spans])

    sent = TracesData(
        resource_spans=[named("a", wide(1, 900), wide(2, 900)), named("b", wide(3, 900), wide(4, 900))]
    ).SerializeToString()
    found = accept(sent, "spans", json=False, max_record_bytes=2_900)
    read = [each for record in found.records for each in decode_spans(record).spans]
    assert [each.resource for each in read] == [{"service.name": name} for name in "aabb"]
    assert len(found.records) == 2


def test_a_span_that_is_larger_than_a_record_is_rejected_by_its_id_and_the_others_are_kept() -> None:
    large, small = wide(1, 5_000), wide(2, 10)
    found = accept(request(large, small), "spans", json=False, max_record_bytes=2_000)
    assert ids(found.records) == [small.span_id.hex()]
    assert (found.accepted, found.rejected) == (1, 1)
    assert large.span_id.hex() in found.problem


@pytest.mark.slow
def test_a_large_request_of_entries_without_content_is_refused_before_they_are_looked_at() -> None:
    many = 110_000
    spans = b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + b"{}," * many + b"{}]}]}]}"
    resources = b'{"resource_spans":[' + b"{}," * many + b"{}]}"
    in_json = [(body, True) for body in (spans, resources, b"\xef\xbb\xbf" + spans)]
    for body, json in ((raw_request(*[b""] * many), False), (b"\n\0" * many, False), *in_json):
        with pytest.raises(OtlpError, match="more than 100000 resources, scopes and spans"):
            accept(body, "spans", json=json, max_record_bytes=LIMIT)


@pytest.mark.parametrize("json", [False, True])
def test_a_large_request_is_accepted_and_a_large_damaged_one_is_refused_for_its_damage(json: bool) -> None:
    sent = request(*(wide(number, 5_000) for number in range(1, 50)))
    sent = as_json(sent) if json else sent
    assert accept(sent, "spans", json=json, max_record_bytes=LIMIT) == ([sent], 49, 0, "")
    with pytest.raises(OtlpError, match="JSON" if json else "cut"):
        accept(sent[:-9], "spans", json=json, max_record_bytes=LIMIT)


@pytest.mark.parametrize("json", [False, True])
def test_a_span_that_collect_would_refuse_for_its_size_is_rejected(json: bool) -> None:
    sent = request(span(1, 1), wide(2, MAX_SPAN_BYTES))
    found = accept(as_json(sent) if json else sent, "spans", json=json, max_record_bytes=MAX_SPAN_BYTES + 100_000)
    assert (found.accepted, found.rejected) == (1, 1)
    assert [len(read_request(record, logs=False).problems) for record in found.records] == [0]


EMPTY: dict[str, Callable[[int], tuple[bytes, bytes]]] = {
    "events": lambda count: (b"\x5a\x00" * count, b'"events":[' + _empty(count) + b"]"),
    "links": lambda count: (b"\x6a\x00" * count, b'"links":[' + _empty(count) + b"]"),
    "attributes": lambda count: (b"\x4a\x00" * count, b'"attributes":[' + _empty(count) + b"]"),
    "values of a list": lambda count: (
        _field(9, _field(2, _field(5, b"\x0a\x00" * count))),
        b'"attributes":[{"value":{"arrayValue":{"values":[' + _empty(count) + b"]}}}]",
    ),
    "numbers of a list that nobody reads": lambda count: (
        b"\xf8\x01\x00" * 4 * count,
        b'"x":[' + b"1," * 4 * count + b"1]",
    ),
}


def _empty(count: int) -> bytes:
    return b",".join([b"{}"] * count)


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


@pytest.mark.slow
@pytest.mark.parametrize("what", EMPTY)
@pytest.mark.parametrize("json", [False, True])
def test_a_request_of_many_empty_parts_is_refused_before_it_is_decoded(what: str, json: bool) -> None:
    ids = b"\x0a\x10" + b"\x01" * 16 + b"\x12\x08" + b"\x01" * 8
    raw, text = EMPTY[what](510_000)
    body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{' + text + b"}]}]}]}" if json else raw_request(ids + raw)

    with pytest.raises(OtlpError, match=r"more than \d+ events"):
        accept(body, "spans", json=json, max_record_bytes=LIMIT)


@pytest.mark.slow
@pytest.mark.parametrize("json", [False, True])
def test_braces_in_texts_and_many_attributes_are_no_reason_to_refuse(json: bool) -> None:
    talk = '{[,\\"' * 300_000
    spans = [span(1, number, more={f"key {each}": "some value" for each in range(30)}) for number in range(1, 200)]
    sent = request(*spans, *(span(1, 200 + number, more={"talk": talk[:600_000]}) for number in range(5)))
    found = accept(as_json(sent) if json else sent, "spans", json=json, max_record_bytes=LIMIT)
    assert (found.accepted, found.rejected) == (204, 0)


def test_what_follows_the_begin_of_a_text_that_never_ends_belongs_to_it() -> None:
    """Otherwise each of its quotes would begin a search to the end of the request."""
    body = b'{"' + b'\\"' * 5 + b"{" * 510_000 + b" " * 500_000
    for cut in (body, body + b"\\", body + b"\\\n"):
        with pytest.raises(OtlpError, match="not JSON"):
            accept(cut, "spans", json=True, max_record_bytes=LIMIT)


@pytest.mark.slow
def test_the_largest_batch_that_collectors_send_by_default_may_have_60_attributes_a_span() -> None:
    sent = span(1, 1, more={f"attribute {each}": "yes" for each in range(60)}).SerializeToString()
    body = raw_request(*[sent] * 8_192)
    assert accept(body, "spans", json=False, max_record_bytes=LIMIT).accepted == 8_192
