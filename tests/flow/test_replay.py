"""Replayed dead letters: a record that is readable now is scored once, and the counters add up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.flow import TOPICS

from traceweir.schemas.session import Session
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.scoring.sessions.session_scoring import Measure
from traceweir.streams.testing import Flow, event, trace
from traceweir.streams.tools.dead_letters.reader import FoundDeadLetter, LetterId
from traceweir.streams.tools.dead_letters.replay import resend


def send_again(flow: Flow) -> None:
    """Sends each dead letter's record to its original topic, as a replay does."""
    for message in flow.read(TOPICS.dead_letters):
        found = FoundDeadLetter(
            LetterId(message.partition, message.offset), message.timestamp, message.dead_letter, replayed=False
        )
        topic, partition, key, value, headers, _ = resend(found, TOPICS, flow.partitions)
        flow.send(topic, value, key, partition=partition, headers=headers)


def dead(counters: dict[str, int]) -> int:
    return sum(count for name, count in counters.items() if name.startswith("dead_lettered."))


class Broken:
    """A scoring that fails until `repaired` is set to True."""

    def __init__(self, inner: Measure) -> None:
        self._inner, self.repaired = inner, False

    async def __call__(self, session: Session, known: Sequence[JudgeVerdict] = (), attempt: int = 0) -> ScoringResult:
        if not self.repaired:
            raise OSError("the model is not there")
        return await self._inner(session, known, attempt)


@pytest.mark.parametrize("repaired", [True, False])
async def test_a_replayed_session_is_scored_after_the_scoring_was_repaired(repaired: bool) -> None:
    flow = Flow(hold=Broken)
    flow.send(TOPICS.traces, trace(1, "s"))
    await flow.finish()
    assert [letter.reason for letter in flow.dead_letters()] == ["scoring_failed"]

    assert isinstance(flow.scoring, Broken)
    flow.scoring.repaired = repaired
    send_again(flow)
    await flow.settle()

    assemble, score, gate = (flow.counters(stage) for stage in ("assemble", "score", "gate"))
    assert [decision["trace_id"] for decision in flow.results("gate")] == ["kp:trace:1"] * repaired
    assert (score["replayed"], score["consumed"], dead(score)) == (1, 2, 1 if repaired else 2)
    assert assemble["closed"] + score["replayed"] == score.get("scored", 0) + dead(score)
    assert gate.get("consumed", 0) == repaired
    assert [letter.replay_of for letter in flow.dead_letters()] == [None] + ["0:0"] * (not repaired)


async def test_a_candidate_that_is_sent_again_is_counted_as_replayed() -> None:
    flow = Flow()
    flow.send(TOPICS.candidates, b"{", b"scope")
    await flow.settle()
    send_again(flow)
    await flow.settle()

    gate = flow.counters("gate")
    assert (gate["consumed"], gate["replayed"], dead(gate)) == (2, 1, 2)


async def test_a_replayed_late_record_joins_the_next_segment_of_its_session() -> None:
    flow = Flow()
    flow.send(TOPICS.invocations, event(session_id="s", at=1))
    await flow.finish()
    flow.pass_time(4_000)
    flow.send(TOPICS.invocations, event(session_id="s", at=2), at=0)
    flow.send(TOPICS.traces, trace(1, "s"), at=0)
    await flow.finish()
    assert [letter.reason for letter in flow.dead_letters()] == ["late", "late"]

    send_again(flow)
    await flow.finish()

    assert len(flow.dead_letters()) == 2
    assert [len(session["events"]) + len(session["traces"]) for session in flow.sessions()] == [1, 2]
    assert [decision["trace_id"] for decision in flow.results("gate")] == ["kp:trace:1"]
    assemble = flow.counters("assemble")
    assert assemble["consumed"] == assemble["joined"] + dead(assemble) == 5


@pytest.mark.parametrize("topic", [TOPICS.traces, TOPICS.invocations])
async def test_a_replayed_late_stray_keeps_its_kind_and_joins_on_its_home_partition(topic: str) -> None:
    flow = Flow(partitions=3)
    home = partition_of(b"s", 3)
    document = trace(1, "s") if topic == TOPICS.traces else event(session_id="s", at=1)
    flow.send(TOPICS.invocations, event(session_id="s", at=2), b"s", partition=home, at=0)
    await flow.finish()
    flow.pass_time(8_000)
    await flow.settle()
    flow.send(topic, document, b"other", partition=(home + 1) % 3, at=0)
    await flow.settle()
    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.topic, letter.origin) == ("late", TOPICS.strays, topic)

    send_again(flow)
    await flow.finish()

    (_, session) = flow.sessions()
    assert (len(session["traces"]), len(session["events"])) == ((1, 0) if topic == TOPICS.traces else (0, 1))
    assert len(flow.read(TOPICS.strays)) == flow.counters("assemble")["forwarded"] == 1
