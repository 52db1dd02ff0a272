"""Assemble: a session whose producer says how many records it has closes as soon as exactly these have come."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from tests.support.flow import TOPICS, assemble_only

from traceweir.streams.testing import Flow, event, trace

LINGER_S = 2


def end(events: int, traces: int) -> dict[str, Any]:
    return event("session.ended", event_id="end", expects={"events": events, "traces": traces})


def closed(flow: Flow) -> list[tuple[int, str, int, int]]:
    return [(s["revision"], s["closed_because"], len(s["events"]), len(s["traces"])) for s in flow.sessions()]


RECORDS = [
    (TOPICS.invocations, event(event_id="1")),
    (TOPICS.invocations, event(event_id="2")),
    (TOPICS.invocations, end(3, 1)),
    (TOPICS.traces, trace()),
]


@pytest.mark.parametrize("order", [*itertools.permutations(range(4))])
async def test_a_session_closes_with_its_last_expected_record_in_any_order(order: tuple[int, ...]) -> None:
    flow = assemble_only()
    for number in order:
        assert closed(flow) == []
        flow.send(*RECORDS[number])
        await flow.settle()
    assert closed(flow) == [(0, "session.ended", 3, 1)]


async def test_a_repeated_record_counts_once() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, end(2, 0))
    flow.send(TOPICS.invocations, end(2, 0))
    await flow.settle()
    assert closed(flow) == []
    flow.send(TOPICS.invocations, event(event_id="1"))
    await flow.settle()
    assert closed(flow) == [(0, "session.ended", 2, 0)]


@pytest.mark.parametrize(("events", "traces"), [(9, 0), (1, 0), (2, 1)])
async def test_with_other_numbers_the_linger_remains(events: int, traces: int) -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(event_id="1"))
    flow.send(TOPICS.invocations, end(events, traces))
    await flow.settle()
    flow.pass_time(LINGER_S)
    await flow.settle()
    assert closed(flow) == []
    flow.pass_time(0.1)
    await flow.settle()
    assert closed(flow) == [(0, "session.ended", 2, 0)]


@pytest.mark.parametrize("last", range(len(RECORDS)))
async def test_a_restart_remembers_what_a_session_expects(last: int) -> None:
    flow = assemble_only()
    for number, record in enumerate(RECORDS):
        if number != last:
            flow.send(*record)
    await flow.settle()
    flow.crash()
    flow.send(*RECORDS[last])
    await flow.settle()
    assert closed(flow) == [(0, "session.ended", 3, 1)]


async def test_a_restart_remembers_what_a_session_in_sealed_chunks_expects() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, end(3, 1))
    for number in range(2):
        flow.send(TOPICS.invocations, event(event_id=str(number), ballast="x" * 5_000))
        await flow.settle()
    flow.crash()
    flow.send(TOPICS.traces, trace())
    await flow.settle()
    assert closed(flow) == [(0, "session.ended", 3, 1)]


async def test_a_late_record_waits_for_more_late_records_as_in_every_session() -> None:
    flow = assemble_only()
    for record in RECORDS:
        flow.send(*record)
    await flow.settle()
    flow.send(TOPICS.invocations, event(event_id="late"))
    await flow.settle()
    assert closed(flow) == [(0, "session.ended", 3, 1)]
    flow.pass_time(LINGER_S + 0.1)
    await flow.settle()
    assert closed(flow) == [(0, "session.ended", 3, 1), (1, "session.ended", 4, 1)]


@pytest.mark.parametrize("restart", [False, True])
async def test_the_late_record_that_completes_a_session_closes_it_again_at_once(restart: bool) -> None:
    flow = assemble_only()
    for record in RECORDS[:3]:
        flow.send(*record)
    await flow.settle()
    flow.pass_time(LINGER_S + 0.1)
    await flow.settle()
    if restart:
        flow.crash()
    flow.send(*RECORDS[3])
    await flow.settle()
    assert closed(flow) == [(0, "session.ended", 3, 0), (1, "session.ended", 3, 1)]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("first", [None, {"events": 9, "traces": 0}])
async def test_the_first_end_counts_also_after_a_restart(first: dict[str, int] | None, restart: bool) -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event("session.ended", event_id="first", expects=first))
    flow.send(TOPICS.invocations, end(3, 0))
    await flow.settle()
    if restart:
        flow.crash()
    flow.send(TOPICS.invocations, event(event_id="1"))
    await flow.settle()
    assert closed(flow) == []


async def test_a_later_segment_is_not_closed_by_its_numbers() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(event_id="before"))
    await flow.finish()
    flow.pass_time(601)
    await flow.settle()
    for record in RECORDS:
        flow.send(*record)
    await flow.settle()
    assert [s["segment"] for s in flow.sessions()] == [0]


@pytest.mark.parametrize("expects", [{"events": 0, "traces": 0}, {"events": 1}, {"events": 1, "traces": -1}, 7, [3, 1]])
async def test_an_expectation_of_another_form_is_a_dead_letter_that_names_it(expects: object) -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event("session.ended", expects=expects))
    await flow.settle()
    (letter,) = flow.dead_letters()
    assert letter.reason == "invalid"
    assert "session.ended.expects" in letter.detail
