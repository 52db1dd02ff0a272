"""Assemble: a late record reopens its session within the grace, and the whole session is published again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.flow import TOPICS, advance_to, assemble_only, published_events, send_event

from traceweir.streams.pipeline.assemble.session_rows import CHUNK
from traceweir.streams.pipeline.assemble.stage import AssembleStage
from traceweir.streams.testing import START_S, event


@pytest.mark.parametrize("crash", [False, True])
async def test_a_late_event_reopens_its_session_and_the_whole_session_is_published_again(crash: bool) -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await send_event(flow, "c", 2)
    await advance_to(flow, 303)
    if crash:
        flow.crash()
    await send_event(flow, "b", 1)
    if crash:
        flow.crash()
    await advance_to(flow, 340)  # After a restart late records set the clock back for some seconds.

    assert published_events(flow) == [(0, 0, "ac"), (0, 1, "abc")]
    first, second = flow.sessions()
    assert (first["first_record_at"], first["last_record_at"]) == (second["first_record_at"], second["last_record_at"])
    assert flow.counters("assemble") == {"consumed": 3, "joined": 3, "opened": 1, "closed": 2, "reopened": 1}


async def test_a_late_record_that_is_older_does_not_move_the_begin_of_the_segment() -> None:
    flow = assemble_only()
    await send_event(flow, "b", 5)
    await advance_to(flow, 306)
    await send_event(flow, "a", 1)
    await advance_to(flow, 345)

    first, second = flow.sessions()
    assert len(second["events"]) == 2
    assert first["first_record_at"] == second["first_record_at"] == first["last_record_at"]


async def test_late_events_that_come_together_are_one_revision() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await advance_to(flow, 301)
    for number, name in enumerate("bcd"):
        await send_event(flow, name, number)
        flow.pass_time(0.5)
        await flow.settle()
    await advance_to(flow, 310)

    assert published_events(flow) == [(0, 0, "a"), (0, 1, "abcd")]


async def test_a_reopened_session_waits_for_the_idle_gap_and_keeps_its_segment() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await advance_to(flow, 500)
    await send_event(flow, "b", 500)
    await advance_to(flow, 799)
    assert len(published_events(flow)) == 1
    await send_event(flow, "c", 799)
    await advance_to(flow, 1_098)
    assert len(published_events(flow)) == 1
    await advance_to(flow, 1_100)

    assert published_events(flow) == [(0, 0, "a"), (0, 1, "abc")]


async def test_an_ended_session_that_is_reopened_waits_for_the_linger() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event("session.ended", event_id="e", at=5), at=5)
    await flow.settle()
    await advance_to(flow, 8)
    await send_event(flow, "t", 8)
    await advance_to(flow, 10)
    assert published_events(flow) == [(0, 0, "e")]
    await advance_to(flow, 10.1)

    assert published_events(flow) == [(0, 0, "e"), (0, 1, "et")]
    assert [s["closed_because"] for s in flow.sessions()] == ["session.ended"] * 2


@pytest.mark.parametrize(("at", "expected"), [(899.9, (0, 1, "ab")), (900.1, (1, 0, "b"))])
async def test_the_grace_starts_when_the_session_was_due_to_close(at: float, expected: Any) -> None:
    live, backlog = assemble_only(), assemble_only()
    for flow in (live, backlog):
        flow.send(TOPICS.invocations, event(event_id="a", at=0), at=0)
        if flow is live:
            await flow.settle()
            await advance_to(flow, at)
        else:
            flow.now = START_S + at
            flow.crash()
        flow.send(TOPICS.invocations, event(event_id="b", at=at), at=at)
        await flow.finish()
        await advance_to(flow, 2_000)

        (segment, _, events) = published_events(flow)[-1]
        assert (segment, events) == (expected[0], expected[2])
        if flow is live:
            assert published_events(flow) == [(0, 0, "a"), expected]


async def test_an_event_after_the_grace_starts_the_next_segment_and_after_the_guard_is_a_dead_letter() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await advance_to(flow, 901)
    await send_event(flow, "b", 1)
    await advance_to(flow, 904)
    await advance_to(flow, 905 + 3_600)
    await send_event(flow, "c", 2)
    await flow.finish()

    assert published_events(flow) == [(0, 0, "a"), (1, 0, "b")]
    (letter,) = flow.dead_letters()
    assert letter.reason == "late"


async def test_a_session_that_was_closed_for_its_size_is_not_reopened() -> None:
    flow = assemble_only(segment_max_events=2)
    for number, name in enumerate("abc"):
        await send_event(flow, name, number)
    await flow.finish()
    assert len(flow.rows(b"assemble/c")) == 1  # Only the last segment has rows of content.
    await send_event(flow, "d", 4)
    await send_event(flow, "e", 5)
    await flow.finish()

    assert published_events(flow) == [(0, 0, "ab"), (1, 0, "c"), (1, 1, "cd"), (2, 0, "e")]


async def test_a_late_event_that_does_not_fit_its_session_starts_the_next_segment() -> None:
    flow = assemble_only(segment_max_events=2)
    for number, name in enumerate("ab"):
        await send_event(flow, name, number)
    await flow.finish()
    await send_event(flow, "c", 1)
    await flow.finish()

    assert published_events(flow) == [(0, 0, "ab"), (1, 0, "c")]
    assert len(flow.rows(b"assemble/c")) == 1


async def test_single_late_events_after_the_grace_are_one_segment() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await advance_to(flow, 1_500)
    for number, name in enumerate("bcdef"):
        await send_event(flow, name, number)
        flow.pass_time(0.3)
        await flow.settle()
    await flow.finish()

    assert published_events(flow) == [(0, 0, "a"), (1, 0, "bcdef")]


async def test_a_long_session_is_reopened_from_its_sealed_chunks() -> None:
    flow = assemble_only()
    for number in range(60):
        flow.send(TOPICS.invocations, event(event_id=f"{number:02}", ballast="x" * 300, at=number), at=0)
        if number % 7 == 0:
            await flow.settle()
    await flow.finish()
    flow.crash()
    assemble = flow.lanes[0].stages["assemble"]
    assert isinstance(assemble, AssembleStage)
    assert assemble.held_bytes == 0
    await send_event(flow, "late", 30.5)
    assert 0 < assemble.held_bytes < CHUNK
    await flow.finish()

    _, (_, revision, events) = published_events(flow)
    assert revision == 1
    assert events == "".join(f"{number:02}" for number in range(31)) + "late" + "".join(map(str, range(31, 60)))
