"""Assemble: when a session closes, which rows it leaves, and what a restart restores."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.support.flow import TOPICS, advance_to, assemble_only

from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.pipeline.assemble.session_rows import CHUNK
from traceweir.streams.pipeline.assemble.stage import AssembleStage
from traceweir.streams.testing import START_S, Flow, event, trace


def closed(flow: Flow) -> list[tuple[str, int, str, int]]:
    return [(s["session_id"], s["segment"], s["closed_because"], len(s["events"])) for s in flow.sessions()]


async def test_a_session_closes_when_its_linger_is_over_and_contains_a_trace_from_the_linger() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event("session.ended"), at=0)
    flow.send(TOPICS.traces, trace(), at=2)
    await flow.settle()

    flow.pass_time(2)
    await flow.settle()
    assert closed(flow) == []
    flow.pass_time(0.1)
    await flow.settle()
    ((_, _, reason, events),) = closed(flow)
    assert (reason, events, len(flow.sessions()[0]["traces"])) == ("session.ended", 1, 1)


async def test_a_session_closes_when_no_record_came_for_the_idle_gap() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(at=0), at=0)
    flow.send(TOPICS.invocations, event(at=1), at=299)
    await flow.settle()

    flow.pass_time(599)
    await flow.settle()
    assert closed(flow) == []
    flow.pass_time(0.1)
    await flow.settle()
    assert closed(flow) == [("s", 0, "idle", 2)]
    assert flow.sessions()[0]["first_record_at"] == "2026-01-01T00:00:00+00:00"
    assert flow.sessions()[0]["last_record_at"] == "2026-01-01T00:04:59+00:00"


async def test_event_number_1001_starts_the_next_segment() -> None:
    flow = assemble_only()
    for number in range(2_001):
        flow.send(TOPICS.invocations, event(event_id=str(number), at=number / 1000))

    await flow.finish()

    assert closed(flow) == [("s", 0, "size_limit", 1000), ("s", 1, "size_limit", 1000), ("s", 2, "idle", 1)]
    assert [e["event_id"] for s in flow.sessions() for e in s["events"]] == [str(number) for number in range(2_001)]


async def test_a_session_never_exceeds_its_size_limit_in_bytes() -> None:
    flow = assemble_only()
    for number in range(9):
        flow.send(TOPICS.invocations, event(event_id=str(number), ballast="x" * 199_000))
    flow.send(TOPICS.invocations, event(event_id="9", ballast="x" * 799_000))

    await flow.finish()

    assert [segment[1:] for segment in closed(flow)] == [
        (0, "size_limit", 4),
        (1, "size_limit", 4),
        (2, "size_limit", 1),
        (3, "idle", 1),
    ]
    assert all(len(message.value or b"") < 801_000 for message in flow.read(TOPICS.sessions))


async def test_a_record_after_the_grace_starts_the_next_segment_also_after_a_restart() -> None:
    flow = assemble_only()
    for number in range(3):
        flow.send(TOPICS.invocations, event(event_id=str(number)))
        await flow.finish()
        flow.crash()
        flow.pass_time(600)

    assert closed(flow) == [("s", 0, "idle", 1), ("s", 1, "idle", 1), ("s", 2, "idle", 1)]


LIVE = [
    # at, topic, session, what
    (0, "invocations", "a", "model.called"),
    (1, "invocations", "b", "model.called"),
    (200, "traces", "a", 1),
    (400, "invocations", "a", "session.ended"),
    (401, "traces", "a", 2),
    (420, "traces", "a", 3),
    (500, "invocations", "c", "model.called"),
    (760, "invocations", "c", "session.ended"),
    (900, "traces", "d", 4),
    (901, "invocations", "c", "tool.called"),
]


async def read_live(flow: Flow) -> None:
    for at, topic, session, what in LIVE:
        flow.pass_time(START_S + at - flow.now)
        send(flow, at, topic, session, what)
        await flow.settle()


def send(flow: Flow, at: float, topic: str, session: str, what: Any) -> None:
    if topic == "traces":
        flow.send(TOPICS.traces, trace(what, session), at=at)
    else:
        flow.send(TOPICS.invocations, event(what, session, at=at), at=at)


@pytest.mark.parametrize("first", ["traces", "invocations"])
@pytest.mark.parametrize("size", [1, 3, 500])
async def test_a_backlog_results_in_the_same_sessions_as_live_records(first: str, size: int) -> None:
    live, late = assemble_only(), assemble_only()
    await read_live(live)
    await live.finish()

    for row in LIVE:
        send(late, *row)
    late.pass_time(1_200)
    order = [TOPICS.traces, TOPICS.invocations] if first == "traces" else [TOPICS.invocations, TOPICS.traces]
    while any([await late.take(topic, size) for topic in order]):
        late.pass_time(0.1)
        late.checkpoint()
    await late.finish()

    def last_revisions(flow: Flow) -> dict[tuple[str, int], Any]:
        # The number of revisions depends on the speed of reading; the last revision contains all records.
        return {(s["session_id"], s["segment"]): {**s, "revision": None} for s in flow.sessions()}

    assert last_revisions(late) == last_revisions(live)


async def test_an_input_closes_no_session_while_another_input_is_behind() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(session_id="s"), at=0)
    flow.send(TOPICS.traces, trace(1, "s"), at=100)
    flow.send(TOPICS.traces, trace(2, "s"), at=310)
    flow.send(TOPICS.invocations, event(session_id="other"), at=10_000)
    flow.send(TOPICS.invocations, event(session_id="another"), at=20_000)
    flow.now = START_S + 20_000
    flow.crash()

    await flow.take(TOPICS.invocations, 2)
    flow.pass_time(1)
    assert closed_count(flow) == 0
    await flow.take(TOPICS.traces, 1)
    flow.pass_time(1)
    assert closed_count(flow) == 0  # The traces are behind: they were read up to 100.
    await flow.take(TOPICS.traces, 1)
    flow.pass_time(1)
    assert closed_count(flow) == 1  # Only the invocations are behind: they were read up to 10,000.
    await flow.take(TOPICS.invocations, 1)
    flow.pass_time(50)
    assert closed_count(flow) == 1  # Strays of other partitions can arrive this late.
    flow.pass_time(12)
    assert closed_count(flow) == 2  # All records are read: the clock is at 20,065.


def closed_count(flow: Flow) -> int:
    flow.checkpoint()
    return len(flow.read(TOPICS.sessions))


async def test_no_session_closes_before_every_input_was_read() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(), at=0)
    flow.send(TOPICS.traces, trace(), at=0)
    await flow.take(TOPICS.invocations)

    flow.pass_time(5_000)
    assert closed_count(flow) == 0


@pytest.mark.parametrize("size", [10, 900, 4_200, 60_000])
async def test_sealed_chunks_leave_memory_and_are_published_byte_for_byte(size: int) -> None:
    flow = assemble_only(segment_max_events=2_000)
    count = min(2_000, 700_000 // (size + 200))
    values = []
    for number in range(count):
        values.append(orjson.dumps(event(event_id=str(number), at=number / 1e3, ballast="é" * (size // 2))))
        flow.send(TOPICS.invocations, values[-1] + b" ")
    grown = []
    while await flow.take(TOPICS.invocations, 7):
        before = len(flow.table.written)
        flow.checkpoint()
        grown.append(sum(len(row or b"") for _, row in flow.table.written[before:]))
        assert stage(flow).held_bytes < CHUNK
    assert max(grown) < CHUNK + 7 * (len(values[0]) + 60) + 500  # The last chunk, the new records, and small rows.
    flow.crash()

    await flow.finish()

    (message,) = flow.read(TOPICS.sessions)
    assert (message.value or b"").count(b'"events":[' + b" ,".join(values) + b" ]") == 1


def stage(flow: Flow, partition: int = 0) -> AssembleStage:
    found = flow.lanes[partition].stages["assemble"]
    assert isinstance(found, AssembleStage)
    return found


async def test_the_rows_of_a_closed_session_are_kept_for_the_grace_and_its_guard_for_longer() -> None:
    flow = assemble_only()
    for number in range(100):
        flow.send(TOPICS.invocations, event(event_id=str(number), ballast="x" * 500))
    while await flow.take(TOPICS.invocations, 9):
        flow.checkpoint()
    assert len(flow.rows(b"assemble/c")) > 10

    await flow.finish()
    closed_at = flow.now
    assert len(flow.rows(b"assemble/c")) > 10
    flow.crash()
    flow.pass_time(closed_at + 596 - flow.now)  # The session was due three seconds before it closed.
    await flow.settle()
    assert len(flow.rows(b"assemble/c")) > 10
    flow.pass_time(2)
    await flow.settle()
    no_forgotten = b"assemble/f\0\0\0\0"
    assert set(flow.rows(b"assemble/")) == {b"assemble/#", b"assemble/w", b"assemble/gs", no_forgotten}
    flow.pass_time(closed_at + 3_600 - flow.now)
    await flow.settle()
    assert len(flow.rows(b"assemble/g")) == 1
    flow.pass_time(0.1)
    await flow.settle()
    assert flow.rows(b"assemble/g") == {}


async def test_a_record_of_a_forgotten_session_is_late_only_if_it_is_older_than_the_guard() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(), at=0)
    await flow.finish()
    await advance_to(flow, 10_000)
    flow.send(TOPICS.invocations, event(), at=6_399.9)
    flow.send(TOPICS.invocations, event(), at=6_400)
    await flow.settle()

    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.offset) == ("late", 1)
    assert flow.counters("assemble")["joined"] == 2


async def test_a_restart_with_open_sessions_loses_nothing() -> None:
    flow = assemble_only(partitions=2)
    names = [f"s{number}" for number in range(40)]
    for round_ in range(6):
        for name in names:
            flow.send(
                TOPICS.invocations,
                event("model.called", name, at=round_, ballast="x" * 1_500),
                partition=partition_of(name.encode(), 2),
            )
        await flow.settle()
        flow.crash(round_ % 2)

    await flow.finish()

    assert sorted(closed(flow)) == sorted((name, 0, "idle", 6) for name in names)
    assert flow.counters("assemble") == {"consumed": 240, "joined": 240, "opened": 40, "closed": 40}


async def test_the_end_of_a_session_survives_a_restart() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event("session.ended"))
    await flow.settle()
    flow.crash()

    flow.pass_time(2.1)
    await flow.settle()

    assert closed(flow) == [("s", 0, "session.ended", 1)]


@pytest.mark.slow
async def test_the_planned_checks_of_a_session_with_many_segments_are_bounded() -> None:
    flow = assemble_only(segment_max_events=1)
    for number in range(300):
        flow.send(TOPICS.invocations, event(event_id=str(number)), at=number)
        flow.pass_time(START_S + number - flow.now + 0.1)
        await flow.settle()
    for number in range(300, 1_000):
        flow.send(TOPICS.invocations, event(event_id=str(number)), at=number)
        flow.pass_time(1)
        await flow.settle()

    assert stage(flow).planned_looks <= 302  # Only the checks of the last idle gap are planned.


async def test_after_a_backlog_a_forwarded_record_still_joins_its_session() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(session_id="s"), at=0)
    flow.send(TOPICS.invocations, event("session.ended", session_id="s"), at=1)
    flow.now = START_S + 60  # The worker starts a minute later; another partition has the trace and forwards it soon.
    flow.crash()
    await flow.take(TOPICS.invocations)
    flow.pass_time(0.5)
    assert closed_count(flow) == 0
    flow.send(TOPICS.strays, trace(1, "s"), b"s", headers=[("traceweir.origin", TOPICS.traces.encode())], at=0.5)
    await flow.take(TOPICS.strays)
    flow.pass_time(6)
    assert closed_count(flow) == 1
    (session,) = flow.read(TOPICS.sessions)
    assert len(session.json["traces"]) == 1


async def test_late_records_keep_no_session_open() -> None:
    flow = assemble_only()
    flow.pass_time(10_000)
    flow.send(TOPICS.invocations, event("session.ended"))
    for _ in range(8):
        flow.send(TOPICS.invocations, event(session_id="of a broken clock"), at=-START_S)
        await flow.settle()
        flow.pass_time(1)
    await flow.settle()

    assert closed(flow) == [("s", 0, "session.ended", 1)]
    assert {letter.reason for letter in flow.dead_letters()} == {"late"}


async def test_a_sender_with_a_slow_clock_keeps_no_other_session_open() -> None:
    flow = assemble_only()
    flow.pass_time(100)
    await flow.settle()
    flow.pass_time(100)
    flow.send(TOPICS.invocations, event("session.ended", "s", at=200), at=200)
    for number in range(8):
        slow = event(session_id="slow", event_id=str(number))
        flow.send(TOPICS.invocations, slow, at=200 + number - 1_800)
        await flow.settle()
        flow.pass_time(1)
    await flow.settle()

    assert ("s", 0, "session.ended", 1) in closed(flow)


async def test_a_record_from_the_near_future_closes_no_fresh_session() -> None:
    flow = Flow(idle_gap_s=60)
    for number in range(50):
        flow.send(TOPICS.invocations, event("tool.called", f"s{number}"), at=0)
    for name in ("ahead", "unread"):  # the second record keeps the input behind
        flow.send(TOPICS.invocations, event("tool.called", name, event_id=name), at=299)
    await flow.take(TOPICS.invocations, 51)
    flow.pass_time(1)
    flow.checkpoint()
    assert flow.sessions() == []

    await flow.settle()
    assert flow.sessions() == []


async def test_sessions_that_are_due_together_are_published_in_several_checkpoints_if_they_are_large() -> None:
    flow = assemble_only()
    for number in range(12):
        flow.send(TOPICS.invocations, event("session.ended", session_id=f"{number}", note="x" * 700_000))
    await flow.settle()
    flow.pass_time(3)
    sizes = []
    for _ in range(3):
        await flow.take(TOPICS.invocations)
        flow.tick()
        sizes.append(sum(len(output.value or b"") for output in flow.cut().outputs) // 700_000)
    assert sizes == [6, 6, 0]
