"""Recognises what connectors, serializers and event routers put around a document, once the value was not readable as it is.

Two envelopes cannot be mistaken, so the document in them is read: the five bytes of a Schema Registry before JSON, and a
CloudEvent in structured mode. The others get a sentence for the dead letter, which names the converter to use.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from traceweir.schemas.dead_letter import Headers
from traceweir.schemas.other_forms import rewritten_json

_FRAME = struct.Struct(">bI")
_GLUE_BYTES = 18
_GLUE_BEGINS = (b"\x03\x00", b"\x03\x05")
_CLOUD_EVENT = ("specversion", "id", "source", "type")
_CLOUD_EVENT_TYPE = b"application/cloudevents+json"
_DEBEZIUM_OPS = ("c", "u", "d", "r", "t", "m")

_CONNECT = (
    "a Connect envelope with a schema and a payload: set `value.converter.schemas.enable=false` beside "
    "`org.apache.kafka.connect.json.JsonConverter` in the connector"
)
_DEBEZIUM = (
    "a change event of Debezium: add the transform `io.debezium.transforms.ExtractNewRecordState` to the connector, or "
    "`io.debezium.transforms.outbox.EventRouter` for a table of events"
)
_NOT_JSON = (
    "so it is Avro or Protobuf: let the producer write JSON, for example with Confluent's `KafkaJsonSchemaSerializer`, or in a "
    "connector with `org.apache.kafka.connect.json.JsonConverter`"
)


class Opened(NamedTuple):
    """A document that was in envelopes."""

    value: bytes
    around: str
    """What was around the document, for a message."""
    event_id: str | None
    """The id of the CloudEvent."""


def opened(value: bytes, headers: Headers = ()) -> Opened | None:
    """Returns the document in a Schema Registry's five bytes, in a CloudEvent, or in a CloudEvent behind these bytes.

    The result is None if there is no such envelope, or if copying the document out of it would change a number.
    """
    framed = _unframed(value)
    content, around = (value, "") if framed is None else framed
    found = _data(content, headers)
    if found is not None:
        event_id, data = found
        return Opened(data, f"{around}the `data` of a CloudEvent", event_id)
    return None if framed is None else Opened(content, around.removesuffix(", "), None)


def described(value: bytes) -> str | None:
    """Returns what a value is that nothing here reads, and the converter to use; None for an unknown value."""
    if value[:1] == b"\0" and len(value) > _FRAME.size:
        number = _FRAME.unpack_from(value)[1]
        what = f"begins with the five bytes of a Schema Registry (schema id {number}), with no JSON behind them"
        return f"the value {what}, {_NOT_JSON}"
    if value[:2] in _GLUE_BEGINS and len(value) > _GLUE_BYTES:
        return f"the value begins with the 18 bytes of AWS Glue Schema Registry, {_NOT_JSON}, without a Schema Registry"
    document = _json(value)
    if isinstance(document, list) and document and all(_is_cloud_event(each, ()) for each in document):
        return "the value is a batch of CloudEvents: send each as a record of its own"
    if not isinstance(document, dict):
        return None
    if document.keys() == {"schema", "payload"}:
        inner = f"; in it is {_DEBEZIUM}" if _is_change(document["payload"]) else ""
        return f"the value is {_CONNECT}{inner}"
    if _is_change(document):
        return f"the value is {_DEBEZIUM}"
    if _is_cloud_event(document, ()):
        return "the value is a CloudEvent whose `data` is not a JSON object"
    return None


def _unframed(value: bytes) -> tuple[bytes, str] | None:
    if value[:1] != b"\0" or value[_FRAME.size : _FRAME.size + 64].lstrip()[:1] not in {b"{", b"["}:
        return None
    return value[
        _FRAME.size :
    ], f"JSON behind the five bytes of a Schema Registry (schema id {_FRAME.unpack_from(value)[1]}), "


def _data(value: bytes, headers: Headers) -> tuple[str | None, bytes] | None:
    document = _json(value) if b"data" in value else None
    if not isinstance(document, dict) or not _is_cloud_event(document, headers):
        return None
    event_id = document["id"] if isinstance(document.get("id"), str) else None
    encoded = document.get("data_base64")
    if isinstance(encoded, str):
        try:
            return event_id, base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return None
    data = document.get("data")
    # Written again, because only a parser knows where `data` begins; a number that would change is not worth a guess.
    copied = rewritten_json(data, value) if isinstance(data, dict) else None
    return None if copied is None else (event_id, copied)


def _is_cloud_event(document: Any, headers: Headers) -> bool:
    if not isinstance(document, dict) or not ("data" in document or "data_base64" in document):
        return False
    return _says_cloud_event(headers) or all(isinstance(document.get(name), str) for name in _CLOUD_EVENT)


def _says_cloud_event(headers: Sequence[tuple[str, bytes | None]]) -> bool:
    return any(
        name.lower() == "content-type" and (content or b"").lower().startswith(_CLOUD_EVENT_TYPE)
        for name, content in headers
    )


def _is_change(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and document.get("op") in _DEBEZIUM_OPS
        and isinstance(document.get("source"), dict)
        and ("after" in document or "before" in document)
    )


def _json(value: bytes) -> Any:
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
