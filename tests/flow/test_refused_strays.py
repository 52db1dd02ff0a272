"""A session knows of its records that another partition than its home has refused: their dead letters go to the home."""

from __future__ import annotations

import orjson
import pytest
from tests.support.flow import TOPICS
from tests.support.refused_records import VALUES, broken, came_back, completed, refused, started

from traceweir.schemas.dead_letter import KEPT_BYTES
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.pipeline.assemble.refusals import REFUSED_SESSION
from traceweir.streams.testing import Flow, event

HOME, ELSEWHERE = partition_of(b"s", 3), (partition_of(b"s", 3) + 1) % 3


@pytest.mark.parametrize(("value", "key", "reason"), VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("crashes", [False, True])
async def test_a_session_knows_of_a_record_that_another_partition_has_refused(
    value: bytes | None, key: bytes | None, reason: str, crashes: bool
) -> None:
    flow = Flow(partitions=3)
    flow.send(TOPICS.invocations, started(), b"s", partition=HOME)
    sent = flow.send(TOPICS.invocations, value, key, partition=ELSEWHERE)
    await flow.take(TOPICS.invocations, 1, ELSEWHERE)
    flow.checkpoint(ELSEWHERE)
    if crashes:
        flow.crash(HOME)
        flow.crash(ELSEWHERE)
    await flow.finish()

    (letter,) = flow.dead_letters()
    assert (letter.topic, letter.partition, letter.offset) == (TOPICS.invocations, ELSEWHERE, sent.offset)
    assert (letter.reason, letter.key, letter.value) == (reason, key, value and value[:KEPT_BYTES])
    assert letter.timestamp == sent.timestamp
    assert refused(flow) == [[f"the dead letter of {letter.refused_at}"]]
    (message,) = flow.read(TOPICS.dead_letters)
    assert (message.partition, dict(message.headers).keys() & {REFUSED_SESSION}) == (HOME, set())
    counts = flow.counters("assemble")
    assert (counts["consumed"], counts["joined"], counts["forwarded"]) == (3, 1, 1)
    assert counts[f"dead_lettered.{reason}"] == 1


ENVELOPE = {
    "specversion": "1.0",
    "id": "1",
    "source": "a",
    "type": "b",
    "data": {**completed(), "app_name": 7, "text": "x" * 70_000},
}
LARGE: dict[str, tuple[bytes, bytes | None, list[tuple[str, bytes]], str | None]] = {
    "an envelope that the letter cuts off": (orjson.dumps(ENVELOPE), None, [], "invocation.completed"),
    "a key that the letter leaves out": (b"{", b"s", [("h", b"x" * 70_000)], None),
}


@pytest.mark.parametrize(("value", "key", "headers", "kind"), LARGE.values(), ids=LARGE)
async def test_a_session_knows_what_was_read_of_a_record_of_which_the_dead_letter_has_less(
    value: bytes, key: bytes | None, headers: list[tuple[str, bytes]], kind: str | None
) -> None:
    flow = Flow(partitions=3)
    flow.send(TOPICS.invocations, started(), b"s", partition=HOME)
    flow.send(TOPICS.invocations, value, key, partition=ELSEWHERE, headers=headers)
    await flow.finish()

    (letter,) = flow.dead_letters()
    (found,) = flow.sessions()[0]["refused"]
    assert (found["place"], found.get("type")) == (f"the dead letter of {letter.refused_at}", kind)


async def test_a_replay_on_a_wrong_partition_takes_the_refusal_back() -> None:
    flow = Flow(partitions=3)
    flow.send(TOPICS.invocations, started(), b"s", partition=HOME)
    flow.send(TOPICS.invocations, broken("tool.called"), b"s", partition=ELSEWHERE)
    await flow.finish()
    headers = came_back(flow.dead_letters()[0].refused_at)
    flow.send(TOPICS.invocations, broken("tool.called"), b"s", partition=ELSEWHERE, headers=headers)
    await flow.settle()
    mended = event("tool.called", "s", invocation_id="i1", at=1, name="find")
    flow.send(TOPICS.invocations, mended, b"s", partition=ELSEWHERE, headers=headers)
    await flow.finish()

    assert [len(each) for each in refused(flow)] == [1, 0]
    assert [letter.replay_of for letter in flow.dead_letters()] == [None, "0:1"]


async def test_a_record_that_names_no_session_is_refused_where_it_is() -> None:
    flow = Flow(partitions=3)
    for partition in range(3):
        flow.send(TOPICS.invocations, b"{", partition=partition)
        flow.send(TOPICS.traces, b"{", b"s", partition=partition)
    await flow.finish()

    assert flow.read(TOPICS.strays) == []
    assert sorted((letter.topic, letter.partition) for letter in flow.dead_letters()) == sorted(
        (topic, partition) for topic in (TOPICS.invocations, TOPICS.traces) for partition in range(3)
    )


async def test_a_record_from_the_future_on_a_wrong_partition_sets_no_clock() -> None:
    flow = Flow(partitions=3)
    flow.send(TOPICS.invocations, started(), b"s", partition=HOME)
    flow.send(TOPICS.invocations, completed(), b"s", partition=ELSEWHERE, at=10_000_000)
    await flow.finish()

    assert [letter.reason for letter in flow.dead_letters()] == ["future_timestamp"]
    assert [each["type"] for each in flow.sessions()[0]["refused"]] == ["invocation.completed"]
    (stray,) = flow.read(TOPICS.strays)
    assert stray.timestamp <= flow.now * 1000


def letter_headers(*, note: bytes = b'{"session_id": "s"}', **more: object) -> list[tuple[str, bytes]]:
    """Returns the headers of a dead letter of another partition on its way to the home of its session."""
    failure = {"reason": "not_json", "detail": "d", "stage": "assemble"}
    place = {"topic": TOPICS.invocations, "partition": ELSEWHERE, "offset": 3, "timestamp": 1}
    about = {**failure, **place, **more}
    return [*((f"traceweir.{name}", str(text).encode()) for name, text in about.items()), (REFUSED_SESSION, note)]


AWAY = next(name for name in map(str, range(100)) if partition_of(name.encode(), 3) == ELSEWHERE)
NOTE = b'{"session_id": "s"}'
FOREIGN: dict[str, list[tuple[str, bytes]]] = {
    "the header alone": [(REFUSED_SESSION, NOTE)],
    "a number that is none": [
        *((f"traceweir.{name}", b"x") for name in ("reason", "detail", "stage", "topic", "partition", "offset")),
        (REFUSED_SESSION, NOTE),
    ],
    "a note that is no JSON": letter_headers(note=b"s"),
    "a note that is a list": letter_headers(note=b"[]"),
    "a note of no session": letter_headers(note=b'{"session_id": 7}'),
    "a note of a session with another home": letter_headers(note=orjson.dumps({"session_id": AWAY})),
    "a note that is too long": letter_headers(note=NOTE + b" " * 10_000),
    "a reason that is none": letter_headers(reason="x\n\x1b[31m"),
    "a reason for which no letter is sent": letter_headers(reason="late"),
    "another stage": letter_headers(stage="score"),
    "a detail with a control character": letter_headers(detail="\x1b[31m"),
    "a topic that is no input": letter_headers(topic=TOPICS.results),
    "a topic with endless letters": letter_headers(topic="x" * 60_000),
    "a partition below 0": letter_headers(partition=-1),
    "a partition above the last": letter_headers(partition=2**31),
    "an offset below 0": letter_headers(offset=-1),
    "an offset above the last": letter_headers(offset=2**63),
    "a time before the first": letter_headers(timestamp=-2),
    "a time after the last": letter_headers(timestamp=10**30),
    "a first place that is none": letter_headers(first_place="<b>"),
    "a consumer group": letter_headers(group="export"),
}


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("topic", [TOPICS.invocations, TOPICS.strays])
async def test_a_record_that_only_looks_like_a_dead_letter_is_read_as_a_record(
    headers: list[tuple[str, bytes]], topic: str
) -> None:
    flow = Flow(partitions=3)
    flow.send(topic, started(), b"s", partition=HOME if topic == TOPICS.strays else ELSEWHERE, headers=headers)
    await flow.finish()

    assert (flow.counters("assemble")["joined"], flow.dead_letters()) == (1, [])


async def test_a_value_above_that_of_a_dead_letter_is_read_as_a_record() -> None:
    flow = Flow(partitions=3)
    event_above = {**started(), "ballast": "x" * KEPT_BYTES}
    flow.send(TOPICS.strays, event_above, b"s", partition=HOME, headers=letter_headers())
    await flow.finish()

    assert (flow.counters("assemble")["joined"], flow.dead_letters()) == (1, [])


@pytest.mark.parametrize("timestamp", [-1, 0, 2**63 - 1])
async def test_a_dead_letter_comes_home_whatever_time_its_record_has(timestamp: int) -> None:
    flow = Flow(partitions=3)
    flow.send(TOPICS.strays, b"{", b"s", partition=HOME, headers=letter_headers(timestamp=timestamp))
    await flow.finish()

    (letter,) = flow.dead_letters()
    assert (letter.topic, letter.partition, letter.timestamp) == (TOPICS.invocations, ELSEWHERE, timestamp)


async def test_a_note_with_a_time_of_the_future_waits_from_now_on() -> None:
    flow = Flow(partitions=3)
    flow.send(TOPICS.strays, b"{", b"s", partition=HOME, headers=letter_headers(timestamp=2**63 - 1))
    await flow.settle()
    flow.crash(HOME)
    flow.send(TOPICS.invocations, started(), b"s", partition=HOME)
    await flow.finish()

    assert refused(flow) == [[f"the dead letter of {TOPICS.invocations}-{ELSEWHERE}@3"]]
    assert [letter.reason for letter in flow.dead_letters()] == ["not_json"]
