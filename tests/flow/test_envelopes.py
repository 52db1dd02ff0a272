"""Documents behind a Schema Registry's five bytes and in CloudEvents are joined; other envelopes are named."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from tests.support.collect import agent_trace, collect_only, complete, offline, published, request
from tests.support.flow import TOPICS, assemble_only

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.testing import Flow, event, trace

FRAME = b"\0\0\0\0\x07"
AVRO = FRAME + b"\x02\x10session"
CHANGE = {"before": None, "after": event(), "source": {"connector": "postgresql"}, "op": "c"}


def cloud_event(data: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": "e1", "source": "/shop", "type": "com.shop.event", "data": data} | changes


def spans_in_json(*spans: Any) -> dict[str, Any]:
    """Returns a request as the Collector's encoding otlp_json writes it."""

    def attribute(each: Any) -> dict[str, Any]:
        return {"key": each.key, "value": {"stringValue": each.value.string_value}}

    found = [
        {
            "traceId": each.trace_id.hex(),
            "spanId": each.span_id.hex(),
            "parentSpanId": each.parent_span_id.hex(),
            "name": each.name,
            "startTimeUnixNano": str(each.start_time_unix_nano),
            "endTimeUnixNano": str(each.end_time_unix_nano),
            "attributes": [attribute(one) for one in each.attributes],
        }
        for each in spans
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": found}]}]}


async def joined(topic: str, *values: bytes) -> Flow:
    flow = assemble_only()
    for value in values:
        flow.send(topic, value, b"s")
    await flow.finish()
    return flow


@pytest.mark.parametrize(
    ("topic", "kind", "document"), [(TOPICS.invocations, "events", event()), (TOPICS.traces, "traces", trace(1, "s"))]
)
@pytest.mark.parametrize("framed", [False, True], ids=["", "framed"])
@pytest.mark.parametrize("wrapped", [False, True], ids=["", "cloud event"])
async def test_a_document_in_envelopes_joins_its_session_without_them(
    topic: str, kind: str, document: dict[str, Any], framed: bool, wrapped: bool
) -> None:
    value = orjson.dumps(cloud_event(document) if wrapped else document)
    flow = await joined(topic, FRAME + value if framed else value)

    (session,) = flow.sessions()
    assert session[kind] == [document]
    assert flow.counters("assemble") == {"consumed": 1, "joined": 1, "opened": 1, "closed": 1}


async def test_the_same_event_with_and_without_an_envelope_is_a_duplicate() -> None:
    value = orjson.dumps(event(event_id="7"))
    flow = await joined(TOPICS.invocations, value, FRAME + value, orjson.dumps(cloud_event(event(event_id="7"))))

    assert flow.counters("assemble") == {"consumed": 3, "joined": 1, "duplicate": 2, "opened": 1, "closed": 1}


async def test_an_event_without_an_id_has_that_of_its_cloud_event_in_either_mode() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, cloud_event(event(at=1)), b"s")
    flow.send(TOPICS.invocations, cloud_event(event(at=2)), b"s")
    flow.send(TOPICS.invocations, event(at=3), b"s", headers=[("ce_id", b"e1")])
    flow.send(TOPICS.invocations, cloud_event(event(at=1), id="e2"), b"s")
    await flow.finish()

    assert flow.counters("assemble") == {"consumed": 4, "joined": 2, "duplicate": 2, "opened": 1, "closed": 1}


async def test_an_event_in_another_form_in_a_cloud_event_joins_in_the_schemas_form() -> None:
    flow = await joined(TOPICS.invocations, orjson.dumps(cloud_event(event("invocation.started", user_content="Hi"))))

    (session,) = flow.sessions()
    assert session["events"][0]["user_content"] == {"parts": [{"text": "Hi"}], "role": "user"}


async def test_a_stray_in_an_envelope_is_forwarded_unchanged_and_joined_at_home() -> None:
    flow = assemble_only(partitions=4)
    elsewhere = (partition_of(b"s", 4) + 1) % 4
    value = FRAME + orjson.dumps(event())
    flow.send(TOPICS.invocations, value, b"s", partition=elsewhere)
    await flow.finish()

    assert [stray.value for stray in flow.read(TOPICS.strays)] == [value]
    assert [session["events"] for session in flow.sessions()] == [[event()]]


UNREAD: dict[str, tuple[bytes, str, str]] = {
    "Avro": (AVRO, "not_json", "the value begins with the five bytes of a Schema Registry (schema id 7), "),
    "an invalid event behind a frame": (
        FRAME + orjson.dumps(event(session_id="")), "invalid",
        "JSON behind the five bytes of a Schema Registry (schema id 7): model.called.session_id: ",
    ),
    "an invalid event in a CloudEvent": (
        orjson.dumps(cloud_event(event(session_id=""))), "invalid",
        "the `data` of a CloudEvent: model.called.session_id: ",
    ),
    "a CloudEvent in a CloudEvent": (
        orjson.dumps(cloud_event(cloud_event(event()))), "invalid", "the `data` of a CloudEvent: "
    ),
    "Connect": (orjson.dumps({"schema": {}, "payload": event()}), "invalid", "the value is a Connect envelope "),
    "Debezium": (orjson.dumps(CHANGE), "invalid", "the value is a change event of Debezium: "),
    "a batch of CloudEvents": (orjson.dumps([cloud_event(event())]), "not_an_object", "the value is a batch of CloudEv"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "reason", "begin"), UNREAD.values(), ids=UNREAD)
async def test_an_envelope_that_cannot_be_read_is_named_in_the_dead_letter(
    value: bytes, reason: str, begin: str
) -> None:
    flow = await joined(TOPICS.invocations, orjson.dumps(event(at=1)), value, orjson.dumps(event(at=2)))

    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.value, letter.detail[: len(begin)]) == (reason, value, begin)
    assert flow.counters("assemble")["joined"] == 2


@pytest.mark.parametrize("framed", [False, True], ids=["", "framed"])
@pytest.mark.parametrize("wrapped", [False, True], ids=["", "cloud event"])
async def test_spans_in_json_are_read_in_envelopes(framed: bool, wrapped: bool) -> None:
    document = spans_in_json(*agent_trace(1))
    value = orjson.dumps(cloud_event(document) if wrapped else document)
    flow = collect_only()
    flow.send(TOPICS.otlp_spans, FRAME + value if framed else value)
    await complete(flow)

    assert published(flow) == offline([request(*agent_trace(1))]) != []
    assert flow.dead_letters() == []


@pytest.mark.parametrize(
    ("value", "begin"),
    [
        (
            FRAME + b"\0" + request(*agent_trace(1)),
            "the value begins with the five bytes of a Schema Registry (schema id",
        ),
        (
            json.dumps(cloud_event({"a": 1})).encode(),
            "the `data` of a CloudEvent: the request is a JSON object without",
        ),
        (json.dumps({"schema": {}, "payload": {}}).encode(), "the value is a Connect envelope"),
    ],
    ids=["Protobuf", "a CloudEvent of something else", "Connect"],
)
async def test_an_envelope_of_no_spans_is_named_in_the_dead_letter(value: bytes, begin: str) -> None:
    flow = collect_only()
    flow.send(TOPICS.otlp_spans, value)
    await complete(flow)

    (letter,) = [DeadLetter.read(each.key, each.value, each.headers) for each in flow.read(TOPICS.dead_letters)]
    assert (letter.reason, letter.detail[: len(begin)]) == ("invalid", begin)
