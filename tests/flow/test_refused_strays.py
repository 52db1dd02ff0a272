"""A session knows of its records that another partition than its home has refused: their dead letters go to the home."""

from __future__ import annotations

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


FOREIGN: dict[str, list[tuple[str, bytes]]] = {
    "the header alone": [(REFUSED_SESSION, b"s")],
    "a number that is none": [
        *((f"traceweir.{name}", b"x") for name in ("reason", "detail", "stage", "topic", "partition", "offset")),
        (REFUSED_SESSION, b"s"),
    ],
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
