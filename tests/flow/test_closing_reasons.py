"""Assemble: the reason for which a session closes is decided once, and stored with the rows of the session."""

from __future__ import annotations

import pytest
from tests.support.flow import TOPICS, advance_to, assemble_only, send_event

from traceweir.schemas.session import ClosingReason
from traceweir.streams.pipeline.assemble.open_session import OpenSession
from traceweir.streams.pipeline.assemble.session_rows import EVENT, Guard, split
from traceweir.streams.testing import Flow, event
from traceweir.streams.worker.runtime.row_formats import FORMAT


def stored_reason(flow: Flow) -> ClosingReason:
    return Guard.unpack(flow.rows(b"assemble/g")[b"assemble/gs"]).closed_because


@pytest.mark.parametrize("reason", ClosingReason)
@pytest.mark.parametrize("expected", [None, (1, 0), (2**70, 2**70)])
def test_an_open_session_knows_after_a_restart_why_it_will_close(
    reason: ClosingReason, expected: tuple[int, int] | None
) -> None:
    before, after = OpenSession(b"s", 0, 0), OpenSession(b"s", 0, 0)
    before.add(EVENT, b"i" * 16, 0, b"{}", 0)
    before.closes_because = reason
    before.expected = expected
    _, row = before.row()

    after.restore(0, *split(row))

    assert after.closes_because is reason
    assert after.is_complete == before.is_complete == (expected == (1, 0))


REASONS = {4: ["session.ended", "idle", "size_limit", "session_limit"]}
"""By format of the rows, the reasons in the order of their stored numbers. A new format is a new line."""


def test_a_format_of_the_rows_has_the_reasons_that_its_readers_know() -> None:
    assert REASONS.get(FORMAT) == [*ClosingReason], (
        "the reasons changed: raise FORMAT in row_formats.py, because earlier workers would misread the rows, and add "
        "the reasons of the new format to REASONS"
    )


def test_a_later_format_keeps_the_numbers_of_stored_reasons() -> None:
    for reasons in REASONS.values():
        assert [*ClosingReason][: len(reasons)] == reasons, "a new reason is the last one of ClosingReason"


CLOSINGS = {
    ClosingReason.SESSION_ENDED: [event("session.ended")],
    ClosingReason.IDLE: [event()],
    ClosingReason.SIZE_LIMIT: [event(event_id="1"), event(event_id="2")],
    ClosingReason.SESSION_LIMIT: [event(), event(session_id="other")],
}


@pytest.mark.parametrize("crash", [None, "before the close", "before its commit", "after its commit"])
@pytest.mark.parametrize("reason", ClosingReason)
async def test_the_reason_of_the_record_is_stored_and_a_restart_does_not_change_it(
    reason: ClosingReason, crash: str | None
) -> None:
    flow = assemble_only(
        segment_max_events=1 if reason is ClosingReason.SIZE_LIMIT else 10,
        partition_max_open_sessions=1 if reason is ClosingReason.SESSION_LIMIT else 10,
    )
    assert reason in CLOSINGS, f"add the records for this reason to CLOSINGS: {reason.name}"
    *first, last = CLOSINGS[reason]
    for each in first:
        flow.send(TOPICS.invocations, each)
    await flow.settle()
    flow.send(TOPICS.invocations, last)
    if crash == "before the close" and not first:
        await flow.settle()
        flow.crash()
    elif crash in ("before the close", "before its commit"):
        # A close by a further record comes with the record.
        await flow.take(TOPICS.invocations)
        flow.pass_time(301)
        flow.cut()
        flow.crash()
    await flow.finish()
    if crash == "after its commit":
        flow.crash()

    assert flow.sessions()[0]["closed_because"] == reason
    assert stored_reason(flow) == (ClosingReason.IDLE if reason is ClosingReason.SIZE_LIMIT else reason)


async def test_a_session_that_was_closed_early_still_closes_because_of_its_end() -> None:
    flow = assemble_only(partition_max_open_sessions=1)
    await send_event(flow, "end", 0, type="session.ended")
    await send_event(flow, "other", 1, session_id="other")
    flow.crash()
    await send_event(flow, "late", 2)
    await advance_to(flow, 400)

    found = [session["closed_because"] for session in flow.sessions() if session["session_id"] == "s"]
    assert found == ["session_limit", "session.ended"]
