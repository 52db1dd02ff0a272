"""A session is told of its records that became dead letters, exactly once, and does not take them for silence."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.flow import TOPICS

from traceweir.schemas.dead_letter import REPLAY_OF
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.pipeline.assemble.refusals import KEPT, Notice, StoredRefusal, WaitingRefusals
from traceweir.streams.testing import Flow, event, trace

BROKEN: dict[str, Any] = {
    **event("invocation.completed", invocation_id="i1", session_id="s", at=1),
    "final_response": 7,
}


def started(session_id: str = "s", at: int = 0) -> dict[str, Any]:
    return event("invocation.started", invocation_id="i1", session_id=session_id, at=at)


def refused(flow: Flow) -> list[Any]:
    return [session.get("refused", []) for session in flow.sessions()]


def offsets(flow: Flow) -> list[list[int]]:
    return [[each["offset"] for each in found] for found in refused(flow)]


async def test_a_session_names_its_refused_record_by_topic_partition_and_offset() -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, started())
    flow.send(TOPICS.invocations, BROKEN)
    await flow.finish()

    assert refused(flow) == [
        [
            {
                "topic": TOPICS.invocations,
                "partition": 0,
                "offset": 1,
                "reason": "invalid",
                "type": "invocation.completed",
                "invocation_id": "i1",
            }
        ]
    ]
    (letter,) = flow.dead_letters()
    assert (letter.topic, letter.partition, letter.offset) == (TOPICS.invocations, 0, 1)


VALUES: dict[str, tuple[bytes | None, bytes | None, str]] = {
    "cut off": (b'{"type": "invocation.completed", "session_id": "s", "final_response": {"pa', None, "not_json"),
    "broken behind the id": (b'{"session_id": "s", "type": "tool.called", "name": "\x01"}', None, "not_json"),
    "not a number": (b'{"session_id": "s", "x": NaN}', None, "not_json"),
    "broken with a key": (b"{", b"s", "not_json"),
    "a list with a key": (b"[]", b"s", "not_an_object"),
    "an empty value with a key": (b"", b"s", "empty"),
    "a tombstone with a key": (None, b"s", "empty"),
    "too large": (b'{"type": "tool.called", "session_id": "s", "name": "' + b"x" * 900_000 + b'"}', None, "too_large"),
    "too large with the id at the end": (b'{"x": "' + b"x" * 900_000 + b'", "session_id": "s"}', None, "too_large"),
    "in the five bytes of a registry": (b'\0\0\0\0\1{"type": "tool.called", "session_id": "s"}', None, "invalid"),
    "of another key": (b'{"type": "tool.called", "session_id": "s"}', b"other", "invalid"),
}


@pytest.mark.parametrize(("value", "key", "reason"), VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("comes_first", [False, True])
async def test_a_refused_record_is_known_to_its_session_whatever_is_wrong_with_it(
    value: bytes | None, key: bytes | None, reason: str, comes_first: bool
) -> None:
    flow = Flow()
    records: list[tuple[Any, bytes | None]] = [(started(), None), (value, key)]
    for document, its_key in records[:: -1 if comes_first else 1]:
        flow.send(TOPICS.invocations, document, its_key)
    await flow.finish()

    (found,) = refused(flow)
    assert [each["reason"] for each in found] == [reason]
    assert len(flow.dead_letters()) == 1


async def test_a_refused_trace_is_known_to_its_session() -> None:
    flow = Flow()
    flow.send(TOPICS.traces, trace("t1", "s"))
    flow.send(TOPICS.traces, trace("t2", "s", outcome={"confidence": 1.5}))
    await flow.finish()

    (found,) = refused(flow)
    assert [(each["type"], each["trace_id"]) for each in found] == [("trace", trace("t2", "s")["id"])]


async def test_a_record_from_the_future_is_known_to_its_session() -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, started())
    flow.send(TOPICS.invocations, event(session_id="s", event_id="later"), at=10_000_000)
    await flow.finish()

    assert [[each["reason"] for each in found] for found in refused(flow)] == [["future_timestamp"]]


async def test_a_refused_record_alone_opens_no_session_and_leaves_no_row() -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, BROKEN)
    await flow.settle()
    assert any(key.startswith(b"assemble/r") for key in flow.table.rows(0))
    flow.pass_time(5_000)
    await flow.finish()

    assert flow.sessions() == []
    assert not any(key.startswith(b"assemble/r") for key in flow.table.rows(0))
    assert "opened" not in flow.counters("assemble")


async def test_a_session_begins_without_a_refused_record_of_long_ago() -> None:
    flow = Flow(idle_gap_s=300, grace_s=600)
    flow.send(TOPICS.invocations, BROKEN, at=0)
    flow.send(TOPICS.invocations, started(), at=901)
    flow.pass_time(5_000)
    await flow.finish()

    assert refused(flow) == [[]]


async def test_a_refused_record_within_the_grace_revises_its_session() -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, started())
    await flow.finish()
    flow.send(TOPICS.invocations, BROKEN)
    await flow.finish()

    assert [(session["segment"], session["revision"]) for session in flow.sessions()] == [(0, 0), (0, 1)]
    assert offsets(flow) == [[], [1]]


async def test_refused_records_beyond_the_maximum_are_counted() -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, started())
    for _ in range(KEPT + 5):
        flow.send(TOPICS.invocations, BROKEN)
    await flow.finish()

    (session,) = flow.sessions()
    assert len(session["refused"]) == KEPT
    assert session["refused_more"] == 5


async def test_the_largest_refusals_fit_the_record_of_a_session() -> None:
    flow = Flow()
    session_id = "\u0001" * 1_024
    flow.send(TOPICS.invocations, {**started(session_id)})
    for number in range(KEPT):
        wrong = event(
            "tool.called", name=7, session_id=session_id, invocation_id="ü" * 170, event_id=f"{number:02}" + "ü" * 170
        )
        flow.send(TOPICS.invocations, wrong)
    await flow.finish()

    (session,) = flow.sessions()
    assert len(session["refused"]) == KEPT


@pytest.mark.parametrize("at", range(6))
async def test_a_crash_at_any_step_changes_nothing(at: int) -> None:
    """The records come one by one; the flow crashes before or after the commit of one of them."""

    async def story(crash_at: int | None) -> Flow:
        flow = Flow()
        records = [BROKEN, started(), {**BROKEN, "session_id": "other"}]
        step = 0
        for record in records:
            flow.send(TOPICS.invocations, record)
            await flow.take(TOPICS.invocations)
            for commits in (False, True):
                if step == crash_at:
                    if commits:
                        await flow.settle()
                    flow.crash()
                step += 1
            await flow.settle()
        await flow.finish()
        return flow

    expected, found = await story(None), await story(at)

    assert found.sessions() == expected.sessions()
    assert found.table.rows(0) == expected.table.rows(0)
    assert [(each.topic, each.offset) for each in found.dead_letters()] == [
        (each.topic, each.offset) for each in expected.dead_letters()
    ]


async def test_a_record_on_a_wrong_partition_is_known_to_its_session_at_home() -> None:
    flow = Flow(partitions=4)
    home = partition_of(b"s", 4)
    elsewhere = (home + 1) % 4
    flow.send(TOPICS.invocations, started(), partition=home)
    flow.send(TOPICS.invocations, BROKEN, partition=elsewhere)
    await flow.finish()

    (found,) = refused(flow)
    assert [(each["topic"], each["partition"], each["offset"]) for each in found] == [
        (TOPICS.invocations, elsewhere, 0)
    ]
    counters = flow.counters("assemble")
    assert (counters["refusals.sent"], counters["refusals.received"]) == (1, 1)
    assert counters["consumed"] == counters["joined"] + counters["dead_lettered.invalid"] + 1
    assert len(flow.dead_letters()) == 1


async def test_a_header_of_a_producer_is_no_notice() -> None:
    flow = Flow(partitions=4)
    elsewhere = (partition_of(b"s", 4) + 1) % 4
    notice = Notice(StoredRefusal("forged", 1, 2, "invalid")).pack()
    flow.send(TOPICS.invocations, started(), partition=elsewhere, headers=[("traceweir.refused", b"")])
    flow.send(TOPICS.invocations, notice, b"s", partition=elsewhere, headers=[("traceweir.refused", b"")])
    await flow.finish()

    (session,) = flow.sessions()
    assert len(session["events"]) == 1
    assert [each["topic"] for each in session["refused"]] == [TOPICS.invocations]


async def test_a_damaged_notice_is_a_dead_letter() -> None:
    flow = Flow()
    flow.send(TOPICS.strays, b"{}", b"s", headers=[("traceweir.refused", b"")])
    await flow.finish()

    (letter,) = flow.dead_letters()
    assert (letter.reason, "notice of a refused record" in letter.detail) == ("invalid", True)


@pytest.mark.parametrize("closes_first", [False, True])
async def test_a_replayed_record_takes_its_refusal_back(closes_first: bool) -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, started())
    flow.send(TOPICS.invocations, BROKEN)
    await (flow.finish() if closes_first else flow.settle())
    mended = {**BROKEN, "final_response": None}
    flow.send(TOPICS.invocations, mended, headers=[(REPLAY_OF, f"{TOPICS.invocations}/0/1".encode())])
    await flow.finish()

    assert len(flow.sessions()[-1]["events"]) == 2
    assert refused(flow)[-1] == []


async def test_a_replayed_record_that_is_refused_again_is_one_refusal() -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, started())
    flow.send(TOPICS.invocations, BROKEN)
    flow.send(TOPICS.invocations, BROKEN, headers=[(REPLAY_OF, f"{TOPICS.invocations}/0/1".encode())])
    await flow.finish()

    assert offsets(flow) == [[2]]


def test_waiting_refusals_are_bounded_and_those_that_wait_longest_go_first() -> None:
    waiting = WaitingRefusals(most=2)
    forgotten = [waiting.add(b"%d" % n, Notice(StoredRefusal("t", 0, n, "invalid")), 100 + n) for n in range(3)]

    assert forgotten == [0, 0, 1]
    assert [bool(waiting.take(b"%d" % n, 0)) for n in range(3)] == [False, True, True]


def test_waiting_refusals_are_the_same_after_a_restart() -> None:
    waiting = WaitingRefusals(most=2)
    for number, until in ((0, 100), (1, 101), (0, 200)):
        waiting.add(b"%d" % number, Notice(StoredRefusal("t", 0, until, "invalid")), until)
    restarted = WaitingRefusals(most=2)
    restarted.load({key: row for key, row in waiting.rows() if row is not None})
    for each in (waiting, restarted):
        each.add(b"2", Notice(StoredRefusal("t", 0, 9, "invalid")), 300)

    assert waiting.rows() == restarted.rows()
