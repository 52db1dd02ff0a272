"""Assemble: the open and the closed sessions of a partition are bounded, and every event is in a session."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.flow import TOPICS, assemble_only, published_events, send_event

from traceweir.streams.pipeline.assemble.stage import AssembleStage
from traceweir.streams.testing import START_S, Flow, event


def open_sessions(flow: Flow) -> int:
    stage = flow.lanes[0].stages["assemble"]
    assert isinstance(stage, AssembleStage)
    return stage.open_sessions


def reasons(flow: Flow) -> dict[str, str]:
    """Returns why the last revision of each session was closed."""
    return {session["session_id"]: session["closed_because"] for session in flow.sessions()}


def joined(flow: Flow) -> list[str]:
    last = {(session["session_id"], session["segment"]): session for session in flow.sessions()}
    return sorted(item["event_id"] for session in last.values() for item in session["events"])


async def send_one(flow: Flow, session: str, event_id: str, at: float, **fields: Any) -> None:
    flow.send(TOPICS.invocations, event(session_id=session, event_id=event_id, at=at, **fields), at=at)
    await flow.settle()


@pytest.mark.parametrize("crash", [False, True])
async def test_one_session_more_closes_the_session_without_an_event_for_the_longest_time(crash: bool) -> None:
    flow = assemble_only(partition_max_open_sessions=3)
    for at, session in enumerate(("a", "b", "c", "a", "d", "e")):
        flow.pass_time(START_S + at - flow.now)
        await send_one(flow, session, f"{session}{at}", at)
        if crash:
            flow.crash()
    assert open_sessions(flow) == 3
    assert reasons(flow) == {"b": "session_limit", "c": "session_limit"}
    await flow.finish()

    assert reasons(flow) == {**dict.fromkeys("bc", "session_limit"), **dict.fromkeys("ade", "idle")}
    assert joined(flow) == ["a0", "a3", "b1", "c2", "d4", "e5"]
    counters = flow.counters("assemble")
    assert (counters["session_limit"], counters["opened"], counters["closed"]) == (2, 5, 5)


async def test_an_event_of_a_session_that_was_closed_early_reopens_the_session() -> None:
    flow = assemble_only(partition_max_open_sessions=1)
    await send_one(flow, "a", "1", 0)
    await send_one(flow, "b", "2", 1)
    await send_one(flow, "a", "3", 2)
    await flow.finish()

    found = [(s["session_id"], s["revision"], len(s["events"]), s["closed_because"]) for s in flow.sessions()]
    assert found == [("a", 0, 1, "session_limit"), ("b", 0, 1, "session_limit"), ("a", 1, 2, "idle")]


async def test_a_session_whose_end_has_come_is_closed_before_one_without_an_end() -> None:
    flow = assemble_only(partition_max_open_sessions=2)
    await send_one(flow, "without", "1", 0)
    flow.send(TOPICS.invocations, event("session.ended", "with", event_id="2", at=1), at=1)
    await flow.settle()
    await send_one(flow, "another", "3", 2)

    assert reasons(flow) == {"with": "session_limit"}


async def test_a_backlog_of_more_sessions_than_can_be_open_loses_nothing() -> None:
    flow = assemble_only(partition_max_open_sessions=7)
    for number in range(300):
        flow.send(
            TOPICS.invocations, event(session_id=str(number % 23), event_id=f"{number:03}", at=number), at=number / 100
        )
    assert await flow.take(TOPICS.invocations) == 300
    assert open_sessions(flow) == 7
    await flow.finish()

    assert joined(flow) == [f"{number:03}" for number in range(300)]
    counters = flow.counters("assemble")
    closed_early = sum(session["closed_because"] == "session_limit" for session in flow.sessions())
    assert counters["session_limit"] == closed_early == 16
    assert counters["opened"] == counters["closed"] == 23


async def test_a_lower_limit_takes_effect_after_a_restart() -> None:
    flow = assemble_only()
    for number in range(20):
        flow.send(TOPICS.invocations, event(session_id=str(number), event_id=f"{number:02}"), at=number / 100)
    await flow.settle()
    flow.settings = flow.settings.model_copy(update={"partition_max_open_sessions": 5})
    flow.crash()
    for number in range(20, 40):
        await send_one(flow, str(number), f"{number:02}", 1)
    assert open_sessions(flow) == 5
    await flow.finish()

    assert joined(flow) == [f"{number:02}" for number in range(40)]


async def test_the_closed_sessions_that_a_partition_remembers_are_bounded() -> None:
    flow = assemble_only(partition_max_closed_sessions=4)
    for number in range(10):
        flow.send(TOPICS.invocations, event(session_id=str(number), event_id=str(number)), at=number / 100)
    await flow.finish()
    flow.pass_time(0.1)
    await flow.settle()
    flow.crash()
    await flow.settle()

    assert sorted(flow.rows(b"assemble/g")) == [b"assemble/g%d" % number for number in (6, 7, 8, 9)]
    assert len(flow.rows(b"assemble/c")) == 4  # the contents of the grace go with the guards
    assert flow.counters("assemble")["forgotten_early"] == 6
    await send_event(flow, "0", 305, session_id="0")
    await send_event(flow, "9", 305, session_id="9")
    await flow.finish()
    assert published_events(flow)[10:] == [(0, 0, "0")]  # a forgotten session begins again
    assert flow.counters("assemble")["duplicate"] == 1
