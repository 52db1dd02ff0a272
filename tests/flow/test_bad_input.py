"""An unusable record becomes a dead letter with its reason, and the next record is processed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from tests.support.flow import TOPICS

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.streams.testing import START_S, Flow, event, instant, trace

NESTED = b'{"x":' * 1_000 + b"1" + b"}" * 1_000


def text(document: dict[str, Any], old: str = "", new: bytes = b"") -> bytes:
    return json.dumps(document).encode().replace(json.dumps(old).encode() if old else b"\0", new)


UNREADABLE = {
    "not JSON": (b"{", "not_json", "not JSON"),
    "no text": (b"\x00\x01", "not_json", "not JSON"),
    "a list": (b'[{"type": "session.ended"}]', "not_an_object", "not an object"),
    "a string": (b' "session.ended"', "not_an_object", "not an object"),
    "empty": (b"", "empty", "empty"),
    "tombstone": (None, "empty", "no value"),
    "2 MB": (b'{"type": "' + b"x" * 2_000_000 + b'"}', "too_large", "2000012 bytes"),
    "nested 1,000 deep": (NESTED, "not_json", "recursion"),
    "a lone surrogate": (text(event(app_name="@"), "@", b'"\\ud83d"'), "not_json", "not JSON"),
    "invalid UTF-8": (text(event(app_name="@"), "@", b'"\xff"'), "not_json", "not JSON"),
}
NANS = [(TOPICS.invocations, event(extra="@")), (TOPICS.traces, trace(extra="@"))]
WRONG_EVENTS = {
    "no type": ({**event(), "type": None}, "type"),
    "unknown type": (event("invocation.exploded"), "invocation.exploded"),
    "a number for a session": (event(session_id=1), "session_id"),  # type: ignore[arg-type]
    "an empty session id": (event(session_id=""), "session_id"),
    "a session id of 1,025": (event(session_id="x" * 1025), "session_id"),
    "no name": ({**event("tool.called"), "name": None}, "name"),
    "naive": ({**event(), "occurred_at": "2026-01-01T00:00:00"}, "occurred_at"),
    "negative tokens": (event(input_tokens=-1), "input_tokens"),
    "an app of 400,000": (event(app_name="x" * 400_000), "app_name"),
    "9 labels": (event(labels={str(number): "x" for number in range(9)}), "labels"),
    "a label of 10,000": (event(labels={"team": "x" * 10_000}), "labels.team"),
    "a trace id of zeros": (event(trace_context={"trace_id": "0" * 32}), "trace_context.trace_id"),
    "a probability of 2": (event(sampling_probability=2), "sampling_probability"),
}
WRONG_TRACES = {
    "confidence 1.5": (trace(outcome={"confidence": 1.5}), "outcome.confidence"),
    "no steps": (trace(steps=[]), "steps"),
    "naive": (trace(metadata={"created_at": "2026-01-01T00:00:00"}), "metadata.created_at"),
    "unknown step": (trace(steps=[{"step_id": 0, "type": "guess"}]), "steps.0.type"),
    "a session id of 1,025": (trace(session_id="x" * 1025), "metadata.session_id"),
    "a trace id of 70,000": (trace("x" * 70_000), "id"),
    "a domain of 1,025": (trace(domain="x" * 1025), "metadata.task_domain"),
}


def only_letter(flow: Flow) -> DeadLetter:
    (letter,) = flow.dead_letters()
    return letter


async def with_good_neighbours(topic: str, value: bytes | dict[str, Any] | None, key: bytes | None = None) -> Flow:
    """Runs all stages on a record between two valid records, and checks that the valid records are processed."""
    flow = Flow()
    good = [
        trace(number, "good") if topic == TOPICS.traces else event(at=number, session_id="good") for number in (1, 2)
    ]
    flow.send(topic, good[0])
    flow.send(topic, value, key)
    flow.send(topic, good[1])
    await flow.finish()
    (session,) = flow.sessions()
    assert len(session["traces" if topic == TOPICS.traces else "events"]) == 2
    counters = flow.counters("assemble")
    assert (counters["consumed"], counters["joined"]) == (3, 2)
    return flow


@pytest.mark.parametrize("topic", [TOPICS.invocations, TOPICS.traces])
@pytest.mark.parametrize(("value", "reason", "detail"), UNREADABLE.values(), ids=UNREADABLE)
async def test_an_unreadable_value_is_a_dead_letter_with_its_reason(
    value: bytes | None, reason: str, detail: str, topic: str
) -> None:
    flow = await with_good_neighbours(topic, value)

    letter = only_letter(flow)
    assert letter.reason == reason
    assert detail in letter.detail
    assert flow.counters("assemble")[f"dead_lettered.{reason}"] == 1


@pytest.mark.parametrize("word", [b"NaN", b"Infinity", b"-Infinity"])
@pytest.mark.parametrize(("topic", "document"), NANS)
async def test_nan_and_infinity_are_rejected_even_under_an_unknown_key(
    topic: str, document: dict[str, Any], word: bytes
) -> None:
    letter = only_letter(await with_good_neighbours(topic, text(document, "@", word)))

    assert letter.reason == "not_json"


@pytest.mark.parametrize(("document", "field"), WRONG_EVENTS.values(), ids=WRONG_EVENTS)
async def test_an_invalid_event_is_a_dead_letter_that_names_the_field(document: dict[str, Any], field: str) -> None:
    letter = only_letter(await with_good_neighbours(TOPICS.invocations, document))

    assert letter.reason == "invalid"
    assert field in letter.detail


@pytest.mark.parametrize(("document", "field"), WRONG_TRACES.values(), ids=WRONG_TRACES)
async def test_an_invalid_trace_is_a_dead_letter_that_names_the_field(document: dict[str, Any], field: str) -> None:
    letter = only_letter(await with_good_neighbours(TOPICS.traces, document))

    assert letter.reason == "invalid"
    assert letter.detail.startswith(f"{field}: ")


async def test_a_key_over_1024_bytes_is_rejected_only_if_it_has_to_name_the_session() -> None:
    flow = await with_good_neighbours(TOPICS.traces, trace(7, None), b"k" * 1025)
    letter = only_letter(flow)
    assert (letter.reason, letter.detail[:4]) == ("invalid", "key:")

    flow = Flow()
    flow.send(TOPICS.traces, trace(7, "s"), b"k" * 1025)
    await flow.finish()
    assert [session["session_id"] for session in flow.sessions()] == ["s"]


@pytest.mark.parametrize(
    ("topic", "document", "field"),
    [
        (TOPICS.invocations, event(at=365 * 86_400), "occurred_at"),
        (TOPICS.traces, trace(at=365 * 86_400), "metadata.created_at"),
    ],
)
async def test_a_field_with_a_time_a_year_ahead_is_a_dead_letter_that_names_the_field(
    topic: str, document: dict[str, Any], field: str
) -> None:
    letter = only_letter(await with_good_neighbours(topic, document))

    assert (letter.reason, letter.detail.partition(":")[0]) == ("future_timestamp", field)
    assert instant(365 * 86_400)[:10] in letter.detail


async def test_a_record_with_a_timestamp_a_year_ahead_is_a_dead_letter_and_closes_no_session() -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, event(at=0))
    flow.send(TOPICS.invocations, event(at=1), at=300.001)
    flow.send(TOPICS.invocations, event(at=2), at=365 * 86_400)
    flow.send(TOPICS.invocations, event(at=3), at=300)
    await flow.settle()
    flow.pass_time(700)
    await flow.settle()

    assert [letter.reason for letter in flow.dead_letters()] == ["future_timestamp"] * 2
    assert [len(session["events"]) for session in flow.sessions()] == [2]


@pytest.mark.parametrize("depth", [150, 190, 195, 198, 200, 202, 300])
async def test_a_record_nested_too_deep_for_its_session_is_the_only_dead_letter(depth: int) -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, event())
    flow.send(TOPICS.invocations, text(event(event_id="e", args="@"), "@", b"[" * depth + b"]" * depth))
    flow.send(TOPICS.traces, trace())
    steps = text(
        trace(2, steps=[{"step_id": 0, "type": "thought", "input": {"x": "@"}}]), "@", b"[" * depth + b"]" * depth
    )
    flow.send(TOPICS.traces, steps)
    await flow.finish()

    assert {letter.stage for letter in flow.dead_letters()} <= {"assemble"}
    assert flow.counters("score") == {**flow.counters("score"), "scored": 1}
    assert flow.counters("gate")["consumed"] in (1, 2)
    if depth == 150:
        assert flow.dead_letters() == []
    if depth >= 200:
        assert len(flow.dead_letters()) == 2


async def test_a_dead_letter_keeps_key_value_headers_and_place_of_its_record() -> None:
    flow = Flow(partitions=3)
    flow.send(TOPICS.traces, trace())
    value = b"x" * 65_537
    headers = [("traceparent", b"00"), ("traceweir.reason", b"mine"), ("binary", b"\xff\x00")]
    flow.send(TOPICS.traces, trace(), partition=2)
    flow.send(TOPICS.traces, value, b"\xffkey", partition=2, headers=headers, at=-5)
    await flow.finish()

    (message,) = flow.read(TOPICS.dead_letters)
    assert (message.partition, message.key, message.value) == (2, b"\xffkey", value[:65_536])
    letter = message.dead_letter
    assert (message.timestamp, letter.timestamp) == (START_S * 1000, (START_S - 5) * 1000)
    assert (letter.stage, letter.topic, letter.partition, letter.offset) == ("assemble", TOPICS.traces, 2, 1)
    assert (letter.reason, letter.size, letter.sha256) == ("not_json", 65_537, hashlib.sha256(value).hexdigest())
    assert list(letter.headers) == [headers[0], headers[2]]


async def test_unknown_keys_are_accepted_and_do_not_reach_the_network() -> None:
    flow = Flow()
    flow.send(TOPICS.traces, {**trace(metadata={"team": "blue"}), "extra": {"a": 1}})
    flow.send(TOPICS.invocations, event(extra="b"))
    await flow.finish()

    (published,) = flow.read(TOPICS.network)
    assert published.json["metadata"].keys() >= {"task_domain"}
    assert not {"team", "session_id"} & published.json["metadata"].keys()
    assert "extra" not in published.json
    assert flow.dead_letters() == []


NUMBERS = [b"1e999", b"-1e999", b"1" * 30, b"1" * 400, b"1" * 4_300, b"1" * 5_000, b"0." + b"3" * 5_000, b"-0", b"1e22"]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:12].decode())
async def test_a_number_out_of_range_stops_no_stage(number: bytes) -> None:
    flow = Flow()
    document = trace(steps=[*trace()["steps"], {"step_id": 9, "type": "thought", "input": {"n": "@"}}])
    flow.send(TOPICS.traces, text(document, "@", number))
    flow.send(TOPICS.invocations, text(event("tool.called", event_id="1", args={"n": "@"}), "@", number))
    flow.send(TOPICS.invocations, text(event("tool.called", at=2, extra="@"), "@", number))
    flow.send(TOPICS.traces, trace(2))
    await flow.finish()

    assert len(flow.read(TOPICS.sessions)) == 1
    assert {letter.reason for letter in flow.dead_letters()} <= {"not_json"}
    gate = flow.counters("gate")
    assert (
        gate["consumed"] == gate["accepted"] == 2 - sum(letter.topic == TOPICS.traces for letter in flow.dead_letters())
    )


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59-01:00"])
async def test_a_time_at_the_end_of_the_year_9999_is_a_future_timestamp(moment: str) -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, {**event(), "occurred_at": moment})
    flow.send(TOPICS.invocations, event("session.ended", at=1))
    await flow.finish()

    assert [letter.reason for letter in flow.dead_letters()] == ["future_timestamp"]
    assert len(flow.read(TOPICS.sessions)) == 1


async def test_every_stage_reads_the_last_value_of_a_repeated_json_key() -> None:
    flow = Flow(partitions=3)
    raw = text(trace(), "s", b'"other", "session_id": "s"').replace(b'"id": ', b'"id": "kp:trace:0", "id": ')
    flow.send(TOPICS.traces, raw)
    flow.send(TOPICS.invocations, text(event(), "s", b'"other", "session_id": "s"'), partition=1)
    await flow.finish()

    (message,) = flow.read(TOPICS.sessions)
    assert (message.key, len(message.json["events"])) == (b"s", 1)
    assert [published.key for published in flow.read(TOPICS.network)] == [b"kp:trace:1"]


@pytest.mark.slow
async def test_a_trace_of_ten_thousand_steps_is_decided() -> None:
    flow = Flow()
    steps = [
        {"step_id": number, "type": kind, "tool": {"name": f"t{number % 9}"}}
        for number in range(5_000)
        for kind in ("tool_call", "error_recovery")
    ]
    flow.send(TOPICS.traces, trace(steps=steps))
    await flow.finish()

    assert (flow.dead_letters(), len(flow.results("gate"))) == ([], 1)


@pytest.mark.parametrize("partition", [0, 1, 2])
async def test_a_dead_letter_omits_a_key_or_headers_that_are_too_large(partition: int) -> None:
    flow = Flow(partitions=3)
    flow.send(TOPICS.invocations, event(at=1), b"k" * 1_000_000, partition=partition)
    flow.send(TOPICS.invocations, event(at=2), headers=[("h", b"x" * 900_000)], partition=partition)
    flow.send(TOPICS.invocations, event(at=3), headers=[("h", b"x" * 60_000)], partition=partition)
    await flow.finish()

    assert [(letter.reason, letter.key, list(letter.headers)) for letter in flow.dead_letters()] == [
        ("too_large", None, [])
    ] * 2
    assert all("bytes of key and headers" in letter.detail for letter in flow.dead_letters())
    assert flow.counters("assemble")["joined"] == 1


@pytest.mark.slow
async def test_a_record_that_grows_too_large_stops_at_the_stage_that_would_write_it() -> None:
    flow = Flow()
    wide = [*trace()["steps"], {"step_id": 4, "type": "thought", "input": {"x": "@"}}]
    flow.send(TOPICS.traces, text(trace(1, "wide", steps=wide), "@", b"[" + b"1e15," * 150_000 + b"1]"))
    mails = [*trace()["steps"], {"step_id": 4, "type": "thought", "content": "ab@c.de " * 95_000}]
    flow.send(TOPICS.traces, trace(2, "redacted", steps=mails))
    flow.send(TOPICS.traces, trace(3, "good"))
    await flow.finish()

    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.stage, letter.key) == ("too_large", "score", b"wide")
    assert {s["trace_id"]: s["details"]["reasons"] for s in flow.results("gate")} == {
        "kp:trace:2": ["too_large"],
        "kp:trace:3": [],
    }
    assert [message.key for message in flow.read(TOPICS.network)] == [b"kp:trace:3"]
