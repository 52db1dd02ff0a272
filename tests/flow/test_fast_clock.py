"""A partition whose former owner had a fast clock: the watermark is set back, and no id comes twice."""

from __future__ import annotations

import pytest
from tests.support.flow import TOPICS, advance_to, assemble_only, published_events, send_event

from traceweir.streams.testing import START_S, Flow, event

AHEAD_S = 7_200
SETTLED_S = 61
"""Seconds after a restart from which on the watermark is at the clock."""


async def after_a_fast_clock(flow: Flow) -> None:
    """Lets an owner whose clock is two hours ahead take a record, and the next owner, whose clock is right, go on."""
    flow.now += AHEAD_S
    flow.crash()
    flow.pass_time(SETTLED_S)
    await send_event(flow, "late", flow.now - START_S - AHEAD_S)  # the fast clock has forgotten its session
    flow.now -= AHEAD_S
    flow.crash()


async def test_records_of_now_are_not_late_after_a_fast_clock(caplog: pytest.LogCaptureFixture) -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await advance_to(flow, 303)
    await after_a_fast_clock(flow)
    assert "partition 0: the watermark of the stage assemble was 7200 s ahead of now and is set back" in caplog.text
    for number in range(300):
        flow.send(TOPICS.invocations, event(session_id=f"s{number}", event_id=f"{number}"), at=365 + number / 100)
    await flow.settle()
    await advance_to(flow, 700)

    assert [letter.reason for letter in flow.dead_letters()] == ["late"]  # the record of the fast clock
    assert len(published_events(flow)) == 1 + 300
    assert flow.counters("assemble")["watermark_set_back"] == 1


async def test_a_session_that_a_fast_clock_forgot_does_not_get_its_ids_again() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await advance_to(flow, 303)
    await after_a_fast_clock(flow)
    assert flow.rows(b"assemble/g") == {}  # forgotten
    await send_event(flow, "b", 364)
    await advance_to(flow, 700)
    await send_event(flow, "c", 700, session_id="new")
    flow.crash()
    await advance_to(flow, 364 + 3_661)
    await send_event(flow, "d", 364 + 3_661, session_id="later")
    await flow.finish()

    assert published_events(flow) == [(0, 0, "a"), (1_000_000, 0, "b"), (1_000_000, 0, "c"), (0, 0, "d")]


async def test_so_it_is_if_the_fast_clock_took_no_record() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await advance_to(flow, 303)
    flow.now += AHEAD_S
    flow.crash()
    flow.pass_time(SETTLED_S)
    await flow.settle()
    flow.now -= AHEAD_S
    flow.crash()
    assert flow.rows(b"assemble/g") == {}  # forgotten
    await send_event(flow, "b", 364)
    await flow.finish()

    assert published_events(flow) == [(0, 0, "a"), (1_000_000, 0, "b")]


async def test_a_second_fast_clock_begins_at_further_segments() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    for number in (1, 2):
        await advance_to(flow, 500 * number)
        await after_a_fast_clock(flow)
        await send_event(flow, "b", flow.now - START_S)
    await flow.finish()

    assert [segment for segment, *_ in published_events(flow)] == [0, 1_000_000, 2_000_000]


async def test_clocks_that_are_allowed_to_differ_set_nothing_back() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    flow.now += 110
    flow.crash()
    await send_event(flow, "b", 1)
    flow.now -= 110
    flow.crash()
    await send_event(flow, "c", 2)
    await flow.finish()

    assert published_events(flow) == [(0, 0, "abc")]
    assert "watermark_set_back" not in flow.counters("assemble")
    assert flow.now > START_S


async def test_collect_sets_its_watermark_back_too(caplog: pytest.LogCaptureFixture) -> None:
    flow = Flow(stages=("collect",))
    flow.now += AHEAD_S
    flow.crash()
    flow.send(TOPICS.otlp_spans, b"no request", at=1)
    await flow.settle()
    flow.now -= AHEAD_S
    flow.crash()
    flow.send(TOPICS.otlp_spans, b"no request", at=2)
    await flow.settle()

    assert "the watermark of the stage collect was 7200 s ahead of now" in caplog.text
    assert flow.counters("collect")["watermark_set_back"] == 1
