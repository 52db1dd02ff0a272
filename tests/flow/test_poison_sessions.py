"""Assemble: the records of a session that cannot be closed become dead letters, and the other sessions are published."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.flow import TOPICS, assemble_only, send_event

from traceweir.schemas.session import ClosingReason
from traceweir.streams.pipeline.assemble.closed_sessions import ClosedSessions
from traceweir.streams.pipeline.assemble.open_session import OpenSession
from traceweir.streams.testing import START_S, Flow, event, trace
from traceweir.streams.worker.runtime.suspects import StageFailed, Suspects


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Lets the close of the session `bad` raise what the list contains, until the list is empty."""
    add, errors = ClosedSessions.add, list[BaseException]([KeyError("nobody expected this")])

    def raising(self: ClosedSessions, session: OpenSession, reason: ClosingReason, watermark: int) -> None:
        if session.id == b"bad" and errors:
            raise errors[0]
        add(self, session, reason, watermark)

    monkeypatch.setattr(ClosedSessions, "add", raising)
    return errors


def send_sessions(flow: Flow, *names: str) -> None:
    for name in names:
        flow.send(TOPICS.traces, trace(name, name), name.encode())
        flow.send(TOPICS.invocations, event("session.ended", name, event_id=name), name.encode())


def published(flow: Flow) -> list[tuple[str, int, int]]:
    return sorted((s["session_id"], len(s["events"]), len(s["traces"])) for s in flow.sessions())


def check_counters(flow: Flow) -> None:
    counters = flow.counters("assemble")
    poison = counters["dead_lettered.poison"]
    assert poison == len(flow.dead_letters())
    assert counters["consumed"] == counters["joined"] + counters.get("duplicate", 0) + poison
    assert counters["opened"] + counters.get("reopened", 0) == counters["closed"] == len(flow.sessions())


@pytest.mark.parametrize("crash", [False, True])
async def test_a_session_whose_close_raises_is_set_aside_and_its_neighbours_are_published(
    broken: list[BaseException], crash: bool
) -> None:
    flow = assemble_only()
    send_sessions(flow, "a", "bad", "c")
    await flow.settle()
    if crash:
        flow.crash()
    await flow.finish()

    assert published(flow) == [("a", 1, 1), ("c", 1, 1)]
    letters = flow.dead_letters()
    assert sorted(letter.topic for letter in letters) == [TOPICS.invocations, TOPICS.traces]
    assert {(letter.reason, letter.stage, letter.key) for letter in letters} == {("poison", "assemble", b"bad")}
    assert letters[0].detail.startswith("the stage assemble raised KeyError: 'nobody expected this'")
    check_counters(flow)
    assert [key for key in flow.rows(b"assemble/c") if b"bad" in key] == []


async def test_a_close_that_raises_once_costs_no_session(broken: list[BaseException]) -> None:
    flow = assemble_only()
    send_sessions(flow, "a", "bad")
    await flow.settle()
    flow.pass_time(3)
    broken.clear()
    await flow.finish()

    assert published(flow) == [("a", 1, 1), ("bad", 1, 1)]
    assert flow.dead_letters() == []


@pytest.mark.parametrize("size", [10, 100_000])
async def test_the_records_of_a_session_that_was_set_aside_can_be_sent_again(
    broken: list[BaseException], size: int
) -> None:
    flow = assemble_only()
    values = [event("model.called", "bad", event_id=str(number), ballast="x" * size) for number in range(3)]
    for value in values:
        flow.send(TOPICS.invocations, value, b"bad")
        await flow.settle()
    await flow.finish()
    letters = flow.dead_letters()
    assert len(letters) == 3
    broken.clear()
    for letter in letters:
        assert letter.size is None  # the whole value, also above 64 kB
        flow.send(letter.topic, letter.value, letter.key)
    await flow.finish()

    (session,) = flow.sessions()
    assert [item["event_id"] for item in session["events"]] == ["0", "1", "2"]
    check_counters(flow)


async def test_a_session_that_raises_in_the_first_tick_of_a_partition_does_not_end_the_worker(
    broken: list[BaseException],
) -> None:
    flow = assemble_only(grace_s=10)
    flow.pass_time(1_000)
    await send_event(flow, "late", 500, session_id="bad")  # due before the watermark of the last checkpoint
    await send_event(flow, "other", 1_000, session_id="other")
    flow.pass_time(1.9)
    await flow.settle()
    flow.crash()
    await flow.finish()

    assert published(flow) == [("other", 1, 0)]
    check_counters(flow)


async def test_a_session_with_a_missing_row_is_set_aside_with_its_other_records() -> None:
    flow = assemble_only()
    for number in range(30):
        for session in ("bad", "good"):
            value = event("model.called", session, event_id=f"{number:02}", ballast="x" * 300)
            flow.send(TOPICS.invocations, value, at=number / 10)
        await flow.settle()
    first = min(key for key in flow.rows(b"assemble/cbad"))
    flow.table.write(0, [(first, None)])
    flow.crash()
    await flow.finish()

    assert published(flow) == [("good", 30, 0)]
    letters = flow.dead_letters()
    assert 20 < len(letters) < 30
    assert "row 0 of session b'bad' is missing" in letters[0].detail


@pytest.mark.parametrize("linger_s", [0, 2])
async def test_a_session_that_begins_and_ends_in_one_batch_is_set_aside(
    broken: list[BaseException], linger_s: float
) -> None:
    flow = assemble_only(close_linger_s=linger_s, segment_max_events=2)
    for number in range(5):  # the third event closes the segment for its size
        flow.send(TOPICS.invocations, event("tool.called", "bad", event_id=str(number)))
        flow.send(TOPICS.invocations, event("tool.called", f"good {number}", event_id=f"good {number}"))
    await flow.finish()

    assert [session for session, _, _ in published(flow)] == [f"good {number}" for number in range(5)]
    assert len(flow.dead_letters()) == 5
    check_counters(flow)


async def test_a_session_of_one_record_that_is_closed_at_once_is_a_dead_letter(broken: list[BaseException]) -> None:
    flow = assemble_only(close_linger_s=0)
    flow.pass_time(1_000)
    send_sessions(flow, "a")
    flow.send(TOPICS.invocations, event(session_id="bad"), at=0)
    await flow.take(TOPICS.invocations)
    flow.pass_time(1)
    await flow.finish()

    assert published(flow) == [("a", 1, 1)]
    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.stage) == ("poison", "assemble")
    check_counters(flow)


@pytest.mark.parametrize("error", [OSError("the disk is gone"), MemoryError("no memory")])
async def test_a_fault_of_the_machine_during_a_close_ends_the_worker(
    broken: list[BaseException], error: BaseException
) -> None:
    broken[:] = [error]
    flow = assemble_only()
    send_sessions(flow, "a", "bad")
    await flow.settle()
    with pytest.raises(type(error)):
        await flow.finish()
    assert flow.dead_letters() == flow.sessions() == []


async def test_a_revision_that_cannot_be_closed_keeps_the_earlier_revision(broken: list[BaseException]) -> None:
    broken.clear()
    flow = assemble_only()
    send_sessions(flow, "bad")
    await flow.finish()
    broken.append(KeyError("nobody expected this"))
    await send_event(flow, "late", flow.now - START_S, session_id="bad")
    await flow.finish()

    assert published(flow) == [("bad", 1, 1)]
    assert len(flow.dead_letters()) == 3
    assert flow.counters("assemble").get("reopened", 0) == 0


def test_the_sessions_of_one_stage_do_not_concern_another() -> None:
    failed: Any = StageFailed("assemble", KeyError("no"), {}, 0, session=b"bad")
    suspects = Suspects().after(failed).after(failed)

    assert suspects.poison_sessions("gate") == {}
    why = suspects.poison_sessions("assemble")[b"bad"]
    assert (why.reason, why.detail) == ("poison", "the stage assemble raised KeyError: 'no'")
    with pytest.raises(StageFailed):
        suspects.after(failed)
    suspects.set_aside()
    assert suspects.poison_sessions("assemble") == {}
