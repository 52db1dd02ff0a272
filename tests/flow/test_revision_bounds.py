"""Assemble: many late events of one session cause few revisions, and lose nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.flow import TOPICS, advance_to, assemble_only, published_events, send_event

from traceweir.streams.testing import START_S, Flow, event


async def send_late_events(flow: Flow, count: int, *, first: float, apart_s: float, crash_every: int = 0) -> None:
    """Sends events that occurred before the session closed, one at a time."""
    for number in range(count):
        await advance_to(flow, first + number * apart_s)
        await send_event(flow, f"{number:03} ", number / 10)
        if crash_every and number % crash_every == 0:
            flow.crash()


def joined(flow: Flow) -> list[str]:
    """Returns the ids of the events in the last revision of each segment."""
    last = {session["segment"]: session for session in flow.sessions()}
    return sorted(item["event_id"] for session in last.values() for item in session["events"])


@pytest.mark.parametrize("crash_every", [0, 7])
async def test_a_hundred_late_events_are_few_revisions(crash_every: int) -> None:
    flow = assemble_only()
    await send_event(flow, "first", 0)
    await advance_to(flow, 301)
    await send_late_events(flow, 100, first=302, apart_s=5, crash_every=crash_every)
    await advance_to(flow, 2_000)

    assert {session["segment"] for session in flow.sessions()} == {0}
    assert 4 <= flow.sessions()[-1]["revision"] <= 9
    assert joined(flow) == sorted(["first", *(f"{number:03} " for number in range(100))])


async def test_each_reopening_waits_twice_as_long_as_the_one_before() -> None:
    flow = assemble_only()
    await send_event(flow, "0", 0)
    open_for = []
    for revision in range(1, 6):
        await advance_to(flow, 301 + 100 * (revision - 1))
        await send_event(flow, str(revision), 1)
        seconds = 0
        while len(flow.sessions()) == revision:
            seconds += 1
            flow.pass_time(1.001)
            await flow.settle()
        open_for.append(seconds)

    assert open_for == [2, 4, 8, 16, 32]


async def test_a_revision_is_published_at_the_latest_when_the_grace_ends() -> None:
    flow = assemble_only(grace_s=20)
    await send_event(flow, "0", 0)
    for revision, at in enumerate((301, 304, 313), start=1):
        await advance_to(flow, at)
        await send_event(flow, str(revision), 0)
    await advance_to(flow, 319.9)
    assert len(flow.sessions()) == 3
    await advance_to(flow, 320.1)

    assert published_events(flow)[-1] == (0, 3, "0123")


@pytest.mark.slow
@pytest.mark.parametrize("linger_s", [0, 2])
async def test_events_after_the_end_of_their_session_are_few_revisions(linger_s: float) -> None:
    flow = assemble_only(close_linger_s=linger_s)
    flow.send(TOPICS.invocations, event("session.ended", event_id="end", at=0), at=0)
    for number in range(200):
        await advance_to(flow, 3 * (number + 1))
        await send_event(flow, f"{number:03} ", 3 * (number + 1))
    await advance_to(flow, 5_000)

    assert len(flow.sessions()) <= 12
    assert len(joined(flow)) == 201


@pytest.mark.parametrize(("bound", "expected"), [(0, [(0, 0), (1, 0), (2, 0)]), (1, [(0, 0), (0, 1), (1, 0)])])
async def test_a_late_event_after_the_last_revision_of_a_segment_begins_the_next(bound: int, expected: Any) -> None:
    flow = assemble_only(segment_max_revisions=bound)
    for number in range(3):
        await advance_to(flow, 310 * number)
        await send_event(flow, str(number), 310 * number)
        flow.crash()
    await advance_to(flow, 2_000)

    assert [(session["segment"], session["revision"]) for session in flow.sessions()] == expected
    assert joined(flow) == ["0", "1", "2"]
    counters = flow.counters("assemble")
    assert counters["revision_limit"] == 2 - bound
    assert counters["opened"] + counters.get("reopened", 0) == counters["closed"] == 3


async def test_a_backlog_of_late_events_gives_the_session_of_live_reading() -> None:
    live, backlog = assemble_only(), assemble_only()
    await send_event(live, "first", 0)
    await send_late_events(live, 100, first=302, apart_s=5)
    for message in live.read(TOPICS.invocations):
        backlog.send(message.topic, message.value, message.key, at=message.timestamp / 1000 - START_S)
    backlog.now = live.now
    backlog.crash()
    for flow in (live, backlog):
        await flow.settle()
        await advance_to(flow, 2_000)

    assert joined(live) == joined(backlog)
    assert {session["segment"] for session in backlog.sessions()} == {0}
