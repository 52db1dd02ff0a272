"""Assemble: duplicates, checkpoints and stored rows of sessions that are reopened."""

from __future__ import annotations

import pytest
from tests.support.flow import TOPICS, advance_to, assemble_only, published_events, send_event

from traceweir.streams.pipeline.assemble.stage import AssembleStage
from traceweir.streams.testing import START_S, event


async def test_a_duplicate_of_any_revision_reopens_no_session() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await advance_to(flow, 301)
    await send_event(flow, "b", 1)
    await advance_to(flow, 310)
    flow.crash()
    for name in "aba":
        await send_event(flow, name, 320)
        await advance_to(flow, 330)
    await flow.finish()

    assert published_events(flow) == [(0, 0, "a"), (0, 1, "ab")]
    assert flow.counters("assemble")["duplicate"] == 3


async def test_duplicates_of_the_previous_segment_are_detected_in_all_revisions_of_the_next() -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await advance_to(flow, 901)
    for number, name in enumerate("bcd"):
        await send_event(flow, name, 901 + 310 * number)
        await advance_to(flow, 1_205 + 310 * number)
        flow.crash()
    guard = flow.rows(b"assemble/g")[b"assemble/gs"]
    assert len(guard) == 22 + 16 * 4  # Four identities, each stored once.
    for name in "abcd":
        await send_event(flow, name, 1_830)
    await flow.finish()

    assert published_events(flow) == [(0, 0, "a"), (1, 0, "b"), (1, 1, "bc"), (1, 2, "bcd")]
    assert flow.counters("assemble")["duplicate"] == 4


@pytest.mark.parametrize("former", [False, True])
async def test_a_session_that_is_reopened_before_its_close_was_committed_is_published_once(former: bool) -> None:
    flow = assemble_only()
    if former:  # An earlier segment, whose event the guard knows.
        flow.send(TOPICS.invocations, event(event_id="z", at=-2_000), at=-2_000)
    for name, at in (("a", 0), ("b", 400), ("c", 800)):
        flow.send(TOPICS.invocations, event(event_id=name, at=at), at=at)
    flow.now = START_S + 1_000
    flow.crash()
    await flow.take(TOPICS.invocations)  # All records are in one batch and one checkpoint.
    flow.checkpoint()
    flow.crash()
    for name in "zabc"[not former :]:
        flow.send(TOPICS.invocations, event(event_id=name), at=900)
    await flow.finish()

    before = [(0, 0, "z")] * former
    assert published_events(flow) == [*before, (int(former), 0, "abc")]
    counters = flow.counters("assemble")
    assert (counters["opened"], counters["closed"], counters["duplicate"]) == (1 + former, 1 + former, 3 + former)
    assert "reopened" not in counters


@pytest.mark.parametrize("count", [1, 20])
async def test_a_session_that_expires_and_restarts_within_one_checkpoint_keeps_its_new_records(
    count: int,
) -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0, ballast="x" * 900)
    await advance_to(flow, 301)
    flow.now = START_S + 4_100
    flow.crash()
    flow.send(TOPICS.invocations, event(event_id="other", session_id="other"), at=4_090)
    await flow.take(TOPICS.invocations)
    flow.pass_time(61)  # The grace and the guard of the first segment are over.
    for number in range(count):
        late = event(event_id=f"{number:02}", ballast="x" * 900, at=4_100 + number)
        flow.send(TOPICS.invocations, late, at=4_150)
    await flow.take(TOPICS.invocations)
    flow.checkpoint()
    flow.crash()
    await flow.finish()

    assert published_events(flow)[-1] == (0, 0, "".join(f"{number:02}" for number in range(count)))


async def test_a_record_between_the_cut_and_the_commit_of_a_close_reopens_the_session() -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(event_id="a"), at=0)
    await flow.settle()
    flow.pass_time(301)
    closing = flow.cut()
    for name in "ab":
        flow.send(TOPICS.invocations, event(event_id=name), at=1)
    await flow.take(TOPICS.invocations)
    flow.commit(closing)
    await flow.finish()

    assert published_events(flow) == [(0, 0, "a"), (0, 1, "ab")]
    assert flow.counters("assemble")["duplicate"] == 1


@pytest.mark.parametrize("committed", [False, True])
async def test_a_session_that_opens_and_closes_within_one_checkpoint_is_reopened(committed: bool) -> None:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event(event_id="a"), at=0)
    await flow.take(TOPICS.invocations)
    flow.pass_time(301)
    cut = flow.cut()
    if committed:
        flow.commit(cut)
        flow.checkpoint()
    flow.send(TOPICS.invocations, event(event_id="b", at=1), at=1)
    await flow.take(TOPICS.invocations)
    if not committed:
        flow.commit(cut)
    await flow.finish()

    assert published_events(flow) == [(0, 0, "a"), (0, 1, "ab")]


async def test_closed_sessions_leave_memory_at_the_checkpoint_after_their_close() -> None:
    flow = assemble_only()
    for number in range(50):
        flow.send(TOPICS.invocations, event(session_id=str(number), event_id="x" * 900))
    await flow.finish()
    await send_event(flow, "another", 0)
    await flow.finish()

    assemble = flow.lanes[0].stages["assemble"]
    assert isinstance(assemble, AssembleStage)
    assert assemble.held_bytes < 2_000  # At most the bytes of the other session.


@pytest.mark.parametrize("kind", ["c", "g"])
@pytest.mark.parametrize("version", [2, 9])
async def test_rows_of_an_earlier_or_later_format_are_refused(kind: str, version: int) -> None:
    flow = assemble_only()
    await send_event(flow, "a", 0)
    await advance_to(flow, 901)
    await send_event(flow, "b", 901)
    ((key, row),) = flow.rows(b"assemble/" + kind.encode()).items()
    flow.table.write(0, [(key, bytes([version]) + row[1:])])

    with pytest.raises(ValueError, match=f"of format {version}; this version reads"):
        flow.crash()
