"""Requests of spans in JSON that are converted at once, and those that are left to the reader of each field."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from traceweir.streams.intake.otlp.json_requests import request_from_json
from traceweir.streams.intake.otlp.json_spans import sound_request_from_json
from traceweir.streams.intake.otlp.slices import span_slices

IDS = {"traceId": "8e0568473d3019941ee3489f17a58756", "spanId": "289e90ab8a086000"}


def request(*spans: object, **more: object) -> bytes:
    resource = {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}}
    scope = {"scope": {"name": "agent", "version": "1"}, "spans": spans}
    return orjson.dumps({"resourceSpans": [{**resource, "scopeSpans": [scope]}], **more})


def attribute(value: Any) -> dict[str, Any]:
    return {**IDS, "attributes": [{"key": "a", "value": value}]}


SOUND = [
    IDS,
    {**IDS, "parentSpanId": "0e2868948a1f0651", "traceState": "a=b", "flags": 257, "name": "chat", "kind": 3},
    {**IDS, "kind": "SPAN_KIND_CLIENT", "startTimeUnixNano": "9223372036854775807", "endTimeUnixNano": 19},
    {**IDS, "droppedAttributesCount": 4, "links": [{"traceId": "00"}], "status": {"code": 2, "message": "boom"}},
    {**IDS, "status": {"code": "STATUS_CODE_OK"}, "name": None, "events": None, "attributes": None},
    {**IDS, "events": [{"timeUnixNano": "3", "name": "e", "attributes": [{"key": "k", "value": {"intValue": "-1"}}]}]},
    *map(attribute, [None, {}, {"stringValue": ""}, {"boolValue": False}, {"intValue": 0}, {"intValue": -5}]),
    *map(attribute, [{"doubleValue": 1}, {"doubleValue": "NaN"}, {"bytesValue": "aGk="}, {"stringValue": None}]),
    *map(attribute, [{"stringValue": "first", "intValue": 3}, {"arrayValue": {}}, {"kvlistValue": {"values": []}}]),
    attribute({"arrayValue": {"values": [{"string_value": "snake"}, {"intValue": "1"}]}}),
]


@pytest.mark.parametrize("span", SOUND)
def test_a_sound_request_becomes_the_same_bytes_as_field_by_field(span: dict[str, Any]) -> None:
    frame, problems = request_from_json(request(span), "spans")
    found = sound_request_from_json(request(span))
    assert found is not None
    assert (found.SerializeToString(), problems) == (frame.SerializeToString(), [])


def test_a_sound_request_is_split_without_the_reader_of_each_field(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the reader of each field was asked")

    monkeypatch.setattr("traceweir.streams.intake.otlp.slices.request_from_json", refuse)
    assert [each.span_id for each in span_slices(request(IDS)).slices] == [IDS["spanId"]]


@pytest.mark.parametrize(
    "span",
    [
        {"trace_id": IDS["traceId"], "spanId": IDS["spanId"]},
        {**IDS, "name": 5},
        {**IDS, "kind": "SPAN_KIND_OF_ITS_OWN"},
        {**IDS, "kind": True},
        {**IDS, "startTimeUnixNano": "1_000"},
        {**IDS, "startTimeUnixNano": 2**63 + 2**62 + 0.5},
        {**IDS, "flags": 2**32},
        {**IDS, "spanId": "no hexadecimal"},
        {**IDS, "fieldOfTheFuture": 1},
        attribute({"bytesValue": "!"}),
        attribute({"string_value": "snake"}),
        attribute({"boolValue": 1}),
        None,
    ],
)
def test_a_doubtful_request_is_left_to_the_reader_of_each_field(span: Any) -> None:
    assert sound_request_from_json(request(span)) is None


@pytest.mark.parametrize("other", [b"", b"{}", b"[]", b"{", request(IDS, resourceLogs=[]), b'{"resourceSpans": null}'])
def test_what_is_no_plain_request_of_spans_is_left_to_the_reader_of_each_field(other: bytes) -> None:
    assert sound_request_from_json(other) is None
