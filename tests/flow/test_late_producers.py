"""Assemble: a producer that was away for longer than the guard is scored, and no record is joined twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.flow import TOPICS, advance_to, assemble_only, published_events, send_event

from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.pipeline.assemble import session_rows
from traceweir.streams.testing import START_S, Flow, event, trace

HOUR_S = 3_600


async def keep_busy(flow: Flow, name: str, seconds: int) -> None:
    """Lets another producer send a session each minute, so that the partition goes on and forgets sessions."""
    for minute in range(seconds // 60):
        await send_event(flow, f"{name} {minute}", flow.now - START_S, session_id=f"{name} {minute}")
        flow.pass_time(60)
        await flow.settle()


def send_backlog(flow: Flow) -> None:
    """Sends 100 sessions of three events in the order of their timestamps, which are close to the start of the flow."""
    sent = [
        (number + at, event(kind, f"s{number}", number + at, event_id=f"{number}.{at}"))
        for number in range(100)
        for at, kind in enumerate(("model.called", "tool.called", "session.ended"))
    ]
    for at, document in sorted(sent, key=lambda item: item[0]):
        flow.send(TOPICS.invocations, document, at=at)


def contents(flow: Flow) -> dict[str, Any]:
    """Returns the backlog's sessions by id, without the reason of closing."""
    return {session["session_id"]: session for session in flow.sessions() if session["session_id"].startswith("s")}


@pytest.mark.slow
async def test_a_producer_that_was_away_for_two_hours_is_scored_as_if_it_had_been_there_before_the_worker() -> None:
    there_before, away = Flow(), Flow()
    send_backlog(there_before)
    await keep_busy(away, "other", 2 * HOUR_S)
    send_backlog(away)
    for flow in (there_before, away):
        await flow.settle()
        await flow.finish()

    assert away.dead_letters() == []
    assert contents(away) == contents(there_before)
    assert len(contents(away)) == 100
    assert away.counters("score")["scored"] == 100 + 2 * 60


async def test_records_of_a_session_that_was_forgotten_stay_dead_letters_also_after_a_restart() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await keep_busy(flow, "other", 2 * HOUR_S)
    assert b"assemble/gs" not in flow.rows(b"assemble/g")
    published = len(flow.sessions())
    for event_id in ("a", "b"):  # a copy, and a record that came for the first time
        await send_event(flow, event_id, 0)
    flow.crash()
    await send_event(flow, "a", 0)
    await send_event(flow, "c", 0, session_id="never seen")
    await flow.finish()

    assert [letter.reason for letter in flow.dead_letters()] == ["late"] * 3
    assert "its session can have been closed with this record and forgotten" in flow.dead_letters()[0].detail
    assert (0, 0, "c") in published_events(flow)[published:]


async def test_a_copy_of_a_late_record_is_a_duplicate_and_a_further_record_begins_the_next_segment() -> None:
    flow = assemble_only()
    await keep_busy(flow, "other", 2 * HOUR_S)
    await send_event(flow, "a", 0)
    await send_event(flow, "a", 0)
    flow.pass_time(400)
    await flow.settle()
    await send_event(flow, "a", 0)
    await send_event(flow, "b", 0)
    await flow.finish()

    published = [found for found in published_events(flow) if "other" not in found[2]]
    assert published == [(0, 0, "a"), (1, 0, "b")]
    assert flow.counters("assemble")["duplicate"] == 2
    assert flow.dead_letters() == []


async def test_what_another_topic_and_another_partition_bring_later_joins_a_late_session_that_has_ended() -> None:
    flow = assemble_only(partitions=2)
    home = partition_of(b"s", 2)
    flow.pass_time(2 * HOUR_S)
    await flow.settle()
    flow.send(TOPICS.invocations, event("session.ended", event_id="end"), b"s", partition=home, at=1)
    await flow.settle()
    flow.crash()
    flow.pass_time(200)
    await flow.settle()
    flow.send(TOPICS.traces, trace(1, "s"), b"other", partition=1 - home, at=0.5)
    await flow.settle()
    flow.pass_time(200)
    await flow.settle()
    assert flow.sessions() == []
    flow.pass_time(101)
    await flow.settle()

    (session,) = flow.sessions()
    assert (len(session["events"]), len(session["traces"])) == (1, 1)
    assert session["closed_because"] == "session.ended"


async def test_a_late_session_that_has_all_expected_records_closes_at_once() -> None:
    flow = assemble_only()
    flow.pass_time(2 * HOUR_S)
    await flow.settle()
    await send_event(flow, "a", 0)
    await send_event(flow, "b", 1, type="session.ended", expects={"events": 2, "traces": 0})

    assert published_events(flow) == [(0, 0, "ab")]


async def test_a_late_record_joins_the_open_session_of_its_id() -> None:
    flow = assemble_only()
    flow.pass_time(2 * HOUR_S)
    await flow.settle()
    await send_event(flow, "b", 2 * HOUR_S)
    await send_event(flow, "a", 0)
    await flow.finish()

    assert published_events(flow) == [(0, 0, "ab")]


async def test_late_records_are_dead_letters_if_the_guard_has_left_out_identities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_rows, "GUARDED", 3)
    flow = assemble_only(grace_s=0)
    for number in range(14):  # a new segment every ten minutes, so that the session is never forgotten
        await send_event(flow, f"{number:02}", flow.now - START_S)
        flow.pass_time(600)
        await flow.settle()
    await send_event(flow, "00", 0)
    await flow.finish()

    assert [letter.reason for letter in flow.dead_letters()] == ["late"]
    assert [events for *_, events in published_events(flow)] == [f"{number:02}" for number in range(14)]


async def test_a_copy_is_not_scored_again_after_a_restart_of_a_partition_that_was_idle() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await advance_to(flow, 302)
    await advance_to(flow, 2 * HOUR_S)
    flow.crash()
    await send_event(flow, "a", 0)
    await flow.finish()

    assert published_events(flow) == [(0, 0, "a")]
    assert [letter.reason for letter in flow.dead_letters()] == ["late"]


async def test_a_partition_without_records_has_nothing_to_commit() -> None:
    flow = assemble_only()
    await flow.settle()
    flow.pass_time(10)

    cut = flow.lanes[0].stages["assemble"].cut()
    assert (cut.rows, cut.outputs, cut.offsets) == ([], [], {})


async def test_what_an_earlier_version_has_forgotten_is_unknown() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await advance_to(flow, 2 * HOUR_S)
    flow.table.write(0, [(key, None) for key in flow.rows(b"assemble/f")])
    flow.crash()
    await advance_to(flow, 2 * HOUR_S + 61)  # after a restart the watermark waits for other partitions
    await send_event(flow, "b", 60, session_id="never seen")
    flow.crash()
    await advance_to(flow, 4 * HOUR_S)
    await send_event(flow, "c", 2 * HOUR_S + 301, session_id="new")
    await flow.finish()

    assert [letter.reason for letter in flow.dead_letters()] == ["late"]
    assert published_events(flow) == [(0, 0, "a"), (0, 0, "c")]


async def test_what_an_earlier_version_has_forgotten_between_two_workers_is_unknown() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    before = dict(flow.rows(b"assemble/f"))
    await advance_to(flow, 2 * HOUR_S)
    # An earlier version does not know these rows, and writes the row of the watermark without a version.
    forgotten = [(key, before.get(key)) for key in flow.rows(b"assemble/f")]
    ((key, marks),) = flow.rows(b"assemble/w").items()
    without = {name: value for name, value in orjson.loads(marks).items() if name != "version"}
    flow.table.write(0, [*forgotten, (key, orjson.dumps(without))])
    flow.crash()
    await advance_to(flow, 2 * HOUR_S + 61)
    await send_event(flow, "a", 0)
    await flow.finish()

    assert [letter.reason for letter in flow.dead_letters()] == ["late"]
    assert published_events(flow) == [(0, 0, "a")]


async def test_beyond_the_remembered_sessions_only_records_after_the_last_dropped_close_are_joined() -> None:
    flow = assemble_only(partition_max_closed_sessions=100, idle_gap_s=30)
    for number in range(300):
        flow.send(TOPICS.invocations, event(session_id=f"s{number}", event_id=f"{number}"), at=number)
        flow.pass_time(1)
        await flow.settle()
    await advance_to(flow, 2 * HOUR_S)
    assert len(flow.rows(b"assemble/f")) == 2
    for at in (1, 299):
        await send_event(flow, f"new {at}", at, session_id=f"new {at}")
    await flow.finish()

    assert [letter.offset for letter in flow.dead_letters()] == [300]
    assert published_events(flow)[-1] == (0, 0, "new 299")


async def test_a_late_session_that_a_fast_clock_began_closes_when_the_clock_is_right() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    flow.now += 2 * HOUR_S
    flow.crash()
    flow.pass_time(61)
    await send_event(flow, "b", 61, session_id="late for the fast clock")
    flow.now -= 2 * HOUR_S
    flow.crash()
    await send_event(flow, "c", 61, session_id="now")
    await advance_to(flow, 400)

    assert sorted(events for *_, events in published_events(flow)) == ["a", "b", "c"]


SHORT = {"idle_gap_s": 5, "close_linger_s": 1, "grace_s": 0, "guard_s": 20}
STEP = st.one_of(
    st.tuples(st.just("send"), st.integers(0, 3), st.integers(0, 120)),
    st.tuples(st.just("copy"), st.integers(0, 30), st.just(0)),
    st.tuples(st.just("wait"), st.integers(1, 40), st.just(0)),
    st.tuples(st.just("crash"), st.just(0), st.just(0)),
)


@pytest.mark.slow
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEP, max_size=40))
def test_each_record_is_in_one_session_or_a_dead_letter_whatever_its_age(steps: list[tuple[str, int, int]]) -> None:
    async def run() -> None:
        flow = assemble_only(**SHORT)
        sent: list[tuple[float, dict[str, Any]]] = []
        copies = 0
        for kind, which, age in steps:
            if kind == "send":
                at = max(flow.now - START_S - age, 0.001)
                sent.append((at, event(session_id=f"s{which}", event_id=f"{len(sent)},")))
                flow.send(TOPICS.invocations, sent[-1][1], at=at)
            elif kind == "copy" and sent:
                at, document = sent[which % len(sent)]
                copies += 1
                flow.send(TOPICS.invocations, document, at=at)
            elif kind == "wait":
                flow.pass_time(which)
            elif kind == "crash":
                flow.crash()
            await flow.settle()
        await flow.finish()

        joined = Counter(found["event_id"] for session in flow.sessions() for found in session["events"])
        assert set(joined.values()) <= {1}
        refused = len(flow.dead_letters())
        assert joined.total() + refused + flow.counters("assemble").get("duplicate", 0) == len(sent) + copies
        assert len(joined) >= len(sent) - refused

    asyncio.run(run())
