"""Dead letters that are sent again: what reads now is scored once, and the counts add up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.flow import TOPICS

from traceweir.schemas.session import Session
from traceweir.streams.dead_letters.reader import Found, LetterId
from traceweir.streams.dead_letters.replay import resend
from traceweir.streams.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.result import ScoringResult
from traceweir.streams.scoring.session_scoring import Measure
from traceweir.streams.stages.partitioner import partition_of
from traceweir.streams.testing import Flow, event, trace


def send_again(flow: Flow) -> None:
    """Put what the dead letters keep where it came from, as a replay does."""
    for message in flow.read(TOPICS.dead_letters):
        found = Found(
            LetterId(message.partition, message.offset), message.timestamp, message.dead_letter, replayed=False
        )
        topic, partition, key, value, headers, _ = resend(found, TOPICS, flow.partitions)
        flow.send(topic, value, key, partition=partition, headers=headers)


def dead(counters: dict[str, int]) -> int:
    return sum(count for name, count in counters.items() if name.startswith("dead_lettered."))


class Broken:
    """A scoring that fails until it is mended."""

    def __init__(self, inner: Measure) -> None:
        self._inner, self.mended = inner, False

    async def __call__(self, session: Session, known: Sequence[JudgeVerdict] = (), attempt: int = 0) -> ScoringResult:
        if not self.mended:
            raise OSError("the model is not there")
        return await self._inner(session, known, attempt)


@pytest.mark.parametrize("mended", [True, False])
async def test_a_session_whose_scoring_failed_is_scored_once_it_is_mended(mended: bool) -> None:
    flow = Flow(hold=Broken)
    flow.send(TOPICS.traces, trace(1, "s"))
    await flow.finish()
    assert [letter.reason for letter in flow.dead_letters()] == ["scoring_failed"]

    assert isinstance(flow.scoring, Broken)
    flow.scoring.mended = mended
    send_again(flow)
    await flow.settle()

    assemble, score, gate = (flow.counters(stage) for stage in ("assemble", "score", "gate"))
    assert [decision["trace_id"] for decision in flow.results("gate")] == ["kp:trace:1"] * mended
    assert (score["replayed"], score["consumed"], dead(score)) == (1, 2, 1 if mended else 2)
    assert assemble["closed"] + score["replayed"] == score.get("scored", 0) + dead(score)
    assert gate.get("consumed", 0) == mended
    assert [letter.replay_of for letter in flow.dead_letters()] == [None] + ["0:0"] * (not mended)


async def test_a_candidate_that_is_decided_again_is_counted_as_replayed() -> None:
    flow = Flow()
    flow.send(TOPICS.candidates, b"{", b"scope")
    await flow.settle()
    send_again(flow)
    await flow.settle()

    gate = flow.counters("gate")
    assert (gate["consumed"], gate["replayed"], dead(gate)) == (2, 1, 2)


async def test_what_was_late_joins_the_next_segment_of_its_session() -> None:
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
async def test_a_late_stray_keeps_what_it_was_and_joins_at_home(topic: str) -> None:
    flow = Flow(partitions=3)
    home = partition_of(b"s", 3)
    document = trace(1, "s") if topic == TOPICS.traces else event(session_id="s", at=1)
    flow.pass_time(8_000)
    flow.send(topic, document, b"other", partition=(home + 1) % 3, at=0)
    await flow.settle()
    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.topic, letter.origin) == ("late", TOPICS.strays, topic)

    send_again(flow)
    await flow.finish()

    (session,) = flow.sessions()
    assert (len(session["traces"]), len(session["events"])) == ((1, 0) if topic == TOPICS.traces else (0, 1))
    assert len(flow.read(TOPICS.strays)) == flow.counters("assemble")["forwarded"] == 1
