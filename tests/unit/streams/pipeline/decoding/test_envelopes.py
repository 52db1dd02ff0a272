"""Tests what is read in envelopes, and what dead letters say of the others."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from traceweir.streams.pipeline.decoding.envelopes import Opened, described, opened

FRAME = b"\0\0\0\0\x07"
DOCUMENT = {"type": "model.called", "n": 1}
CLOUD_EVENT = {"specversion": "1.0", "id": "e1", "source": "/shop", "type": "com.shop.event", "data": DOCUMENT}
CHANGE = {"before": None, "after": DOCUMENT, "source": {"connector": "postgresql"}, "op": "c", "ts_ms": 1}
STRUCTURED = [("Content-Type", b"application/cloudevents+json; charset=UTF-8")]


def raw(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def test_json_behind_the_bytes_of_a_schema_registry_is_opened() -> None:
    around = "JSON behind the five bytes of a Schema Registry (schema id 7)"
    assert opened(FRAME + raw(DOCUMENT)) == Opened(raw(DOCUMENT), around, None)
    assert opened(FRAME + b" \n" + raw(DOCUMENT)) == Opened(b" \n" + raw(DOCUMENT), around, None)


@pytest.mark.parametrize(
    "data", [{"data": DOCUMENT}, {"data_base64": base64.b64encode(raw(DOCUMENT)).decode()}], ids=["data", "data_base64"]
)
def test_the_data_of_a_cloud_event_is_opened_with_its_id(data: dict[str, Any]) -> None:
    event = {name: value for name, value in CLOUD_EVENT.items() if name != "data"} | data
    assert opened(raw(event)) == Opened(raw(DOCUMENT), "the `data` of a CloudEvent", "e1")
    assert opened(raw(data)) is None
    assert opened(raw(data), STRUCTURED) == Opened(raw(DOCUMENT), "the `data` of a CloudEvent", None)


def test_a_cloud_event_behind_the_bytes_of_a_schema_registry_is_opened() -> None:
    around = "JSON behind the five bytes of a Schema Registry (schema id 7), the `data` of a CloudEvent"
    assert opened(FRAME + raw(CLOUD_EVENT)) == Opened(raw(DOCUMENT), around, "e1")


@pytest.mark.parametrize(
    "value",
    [
        raw(DOCUMENT),
        raw({**CLOUD_EVENT, "id": 7}),
        raw({**CLOUD_EVENT, "data": "text"}),
        raw({**CLOUD_EVENT, "data": {"n": 2**70}}),
        raw({**CLOUD_EVENT, "data": 0, "data_base64": "*"}),
        raw([CLOUD_EVENT]),
        b'{"data": ',
        b"",
        b"\0",
        FRAME,
        FRAME + b"\x02\x10session",
        FRAME[1:] + raw(DOCUMENT),
    ],
)
def test_what_can_be_something_else_is_not_opened(value: bytes) -> None:
    assert opened(value) is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            FRAME + b"\x02\x10session",
            ["Schema Registry (schema id 7)", "Avro or Protobuf", "KafkaJsonSchemaSerializer"],
        ),
        (b"\x03\x05" + bytes(16) + b"x", ["AWS Glue Schema Registry", "JsonConverter"]),
        (raw({"schema": None, "payload": DOCUMENT}), ["a Connect envelope", "value.converter.schemas.enable=false"]),
        (raw({"schema": {}, "payload": CHANGE}), ["a Connect envelope", "schemas.enable", "ExtractNewRecordState"]),
        (raw(CHANGE), ["a change event of Debezium", "io.debezium.transforms.ExtractNewRecordState", "EventRouter"]),
        (raw([CLOUD_EVENT, CLOUD_EVENT]), ["a batch of CloudEvents", "each as a record"]),
        (raw({**CLOUD_EVENT, "data": "text"}), ["a CloudEvent whose `data` is not a JSON object"]),
    ],
)
def test_an_envelope_that_is_not_opened_is_named_with_the_converter(value: bytes, words: list[str]) -> None:
    assert opened(value) is None
    found = described(value)
    assert found is not None
    assert [word for word in words if word not in found] == []


@pytest.mark.parametrize(
    "value",
    [raw(DOCUMENT), raw([]), raw({"payload": 1}), raw({"op": "c", "after": {}}), b"\0", b"text", b"\x03\x01" * 20],
)
def test_other_values_are_not_named(value: bytes) -> None:
    assert described(value) is None
