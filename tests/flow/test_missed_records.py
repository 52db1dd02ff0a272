"""Records that Kafka deleted unread: each stage writes one dead letter for the gap, and reads on behind it."""

from __future__ import annotations

import pytest

from traceweir.streams.base.stages.base import MissedRecords
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.base.topics import ALL_STAGES, StageName
from traceweir.streams.pipeline.score.offset_tracker import OffsetTracker
from traceweir.streams.pipeline.topology import topics_of
from traceweir.streams.testing import Flow, trace
from traceweir.streams.tools.dead_letters.reader import FoundDeadLetter, LetterId
from traceweir.streams.tools.dead_letters.replay import NotReplayable, resend


@pytest.mark.parametrize("name", ALL_STAGES)
async def test_a_gap_is_one_dead_letter_and_the_stage_reads_on_behind_it(name: StageName) -> None:
    flow = Flow(stages=ALL_STAGES)
    topic = topics_of(name, flow.topics).inputs[0]
    stage = flow.lanes[0].stages[name]
    stage.reject(topic, MissedRecords(49), RecordRejected("missed", "40 offsets were never read"))
    cut = stage.cut()

    assert cut.offsets == {topic: 50}
    (output,) = cut.outputs
    assert output.topic == flow.topics.dead_letters
    headers = dict(output.headers)
    assert (headers["traceweir.reason"], headers["traceweir.offset"]) == (b"missed", b"49")
    assert (output.key, output.value) == (None, None)


async def test_a_gap_does_not_move_the_watermark_and_cannot_be_replayed() -> None:
    flow = Flow()
    stage = flow.lanes[0].stages["assemble"]
    stage.reject(flow.topics.traces, MissedRecords(0), RecordRejected("missed", "1 offset was never read"))
    flow.send(flow.topics.traces, trace(1), at=-5)
    flow.send(flow.topics.traces, trace(1), at=-5)
    await flow.settle()
    await flow.finish()

    (message,) = flow.read(flow.topics.dead_letters)
    with pytest.raises(
        NotReplayable, match=r"Kafka deleted the records up to traceweir.traces\[0\]@0 before they were"
    ):
        resend(FoundDeadLetter(LetterId(0, 0), message.timestamp, message.dead_letter, replayed=False), flow.topics, 1)
    assert flow.counters("assemble") == {
        "consumed": 3, "joined": 1, "duplicate": 1, "opened": 1, "closed": 1, "dead_lettered.missed": 1
    }  # fmt: skip


async def test_a_gap_that_ends_with_a_scored_session_is_a_dead_letter_too() -> None:
    flow = Flow(stages=ALL_STAGES)
    tracker = OffsetTracker()
    for offset in (100, 101, 102):
        tracker.begin(offset)
    tracker.end(101)
    tracker.end(102)
    stage = flow.lanes[0].stages["score"]
    stage.load({b"d": tracker.row()})

    stage.reject(flow.topics.sessions, MissedRecords(102), RecordRejected("missed", "3 offsets were never read"))

    (output,) = stage.cut().outputs
    assert dict(output.headers)["traceweir.reason"] == b"missed"
