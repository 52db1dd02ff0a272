"""Assemble: records with old timestamps on one input do not keep the records of another input waiting."""

from __future__ import annotations

import pytest
from tests.support.flow import TOPICS, assemble_only

from traceweir.streams.testing import START_S, Flow, event, trace


async def flood(flow: Flow, seconds: int, at: float, *, sent: int = 40, taken: int = 20) -> None:
    """Sends more events with old timestamps per second than the worker takes, and one trace per second."""
    for _ in range(seconds):
        now = round(flow.now - START_S)
        flow.send(TOPICS.traces, trace(now, f"session {now}"))
        for number in range(sent):
            old = event(session_id="old", event_id=f"{now}.{number}")
            flow.send(TOPICS.invocations, old, at=at)
        await flow.take(TOPICS.traces)
        await flow.take(TOPICS.invocations, taken)
        flow.checkpoint()
        flow.pass_time(1)


def closed_sessions(flow: Flow) -> list[str]:
    return [session["session_id"] for session in flow.sessions() if session["session_id"] != "old"]


@pytest.mark.slow
@pytest.mark.parametrize("hours_old", [0.5, 3, 490_000])
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_flood_of_old_timestamps_does_not_stop_the_other_input(hours_old: float, restarted: bool) -> None:
    flow = assemble_only(idle_gap_s=30)
    await flow.settle()
    if restarted:
        await flood(flow, 10, at=-hours_old * 3600)
        flow.crash()
    await flood(flow, 200, at=-hours_old * 3600)

    # At 200 s the worker has read what was there at 100 s, so it publishes the sessions that were idle since 70 s.
    assert closed_sessions(flow)[:60] == [f"session {number}" for number in range(60)]
    assert len(flow.read(TOPICS.invocations)) - flow.lanes[0].position[TOPICS.invocations] > 3_900


async def test_an_input_that_is_behind_with_true_timestamps_still_holds_the_other_input_back() -> None:
    flow = assemble_only(idle_gap_s=30)
    await flow.settle()
    for second in range(120):
        flow.send(TOPICS.traces, trace(second, f"s{second}"))
        for number in range(4):
            flow.send(TOPICS.invocations, event(session_id=f"s{second}", event_id=f"{second}.{number}", at=second))
        await flow.take(TOPICS.traces)
        await flow.take(TOPICS.invocations, 2)
        flow.checkpoint()
        flow.pass_time(1)
    await flow.finish()

    found = {(s["session_id"], s["revision"], len(s["events"]), len(s["traces"])) for s in flow.sessions()}
    assert found == {(f"s{second}", 0, 4, 1) for second in range(120)}


async def test_old_timestamps_of_a_backlog_do_not_let_the_other_input_run_ahead() -> None:
    flow = assemble_only(idle_gap_s=30)
    for number in range(1_000):
        flow.send(TOPICS.invocations, event(session_id="old", event_id=f"old {number}"), at=-50_000)
    for second in range(100):
        flow.send(TOPICS.traces, trace(second, f"s{second}"), at=second)
        flow.send(TOPICS.invocations, event(session_id=f"s{second}", event_id=f"{second}", at=second), at=second)
    flow.now = START_S + 200
    flow.crash()
    while await flow.take(TOPICS.traces, 50) + await flow.take(TOPICS.invocations, 20):
        flow.checkpoint()
        flow.pass_time(0.1)
    await flow.finish()

    sessions = [s for s in flow.sessions() if s["session_id"] != "old"]
    assert sorted((s["session_id"], s["revision"], len(s["events"]), len(s["traces"])) for s in sessions) == sorted(
        (f"s{second}", 0, 1, 1) for second in range(100)
    )
