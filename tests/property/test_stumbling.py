"""Tests that a run commits the same if a stage raises in the middle of batches, and loses one record if this record is the cause."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.test_replay import ONE, PLAN, Sent, check_at_rest, drain, last_contents, logs, make, undisturbed
from tests.support.examples import examples
from tests.support.flow import TOPICS

from traceweir.schemas.session import ClosingReason
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.base.stages.base import Record, Stage, StageSpec
from traceweir.streams.pipeline.assemble.closed_sessions import ClosedSessions
from traceweir.streams.pipeline.assemble.open_session import OpenSession
from traceweir.streams.testing import START_S, Flow, HeldScoring

pytestmark = [
    pytest.mark.filterwarnings("ignore:Generating overly large repr"),
    pytest.mark.timeout(600),  # a failure is shrunk for minutes
]


class Stumbling(Flow):
    """A flow whose stages raise in the middle of their next batch when the test asks for it, or always on a chosen record."""

    def __init__(self, bad: bytes | None = None) -> None:
        self.stumbles = Counter[str]()
        self.stumbled_alone: set[tuple[str, int]] = set()
        self.bad = bad
        closing: dict[str, Any] = {**ONE}
        super().__init__(PLAN, embedder=HashingEmbedder(), hold=HeldScoring, **closing)
        self.now = START_S + 3_500  # all of the log is a backlog
        self.crash()

    def wrap(self, spec: StageSpec) -> StageSpec:
        def new(partition: int, read: Any, changed: Callable[[], None]) -> Stage:
            stage: Any = spec.new(partition, read, changed)
            apply = stage.apply

            def raising(topic: str, records: Sequence[Record]) -> None:
                for number, record in enumerate(records):
                    if self.bad is not None and spec.name == "assemble" and self.bad == record.value:
                        apply(topic, records[: number + 1])
                        raise KeyError("this record is too much")
                alone = (topic, records[0].offset) if len(records) == 1 else None
                # A record on which a stage raises twice alone is poison by the rule, so an innocent record stumbles once.
                if self.stumbles[spec.name] and alone not in self.stumbled_alone:
                    self.stumbles[spec.name] -= 1
                    if alone is not None:
                        self.stumbled_alone.add(alone)
                    apply(topic, records[: 1 + len(records) // 2])
                    raise RuntimeError("the stage stumbles")
                apply(topic, records)

            stage.apply = raising
            return stage  # type: ignore[no-any-return]

        return StageSpec(spec.name, spec.inputs, spec.outputs, new)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("take", "take", "stumble", "score", "checkpoint", "crash", "time")),
        st.sampled_from((TOPICS.traces, TOPICS.invocations, TOPICS.sessions, TOPICS.candidates)),
        st.integers(0, 7),
    ),
    max_size=40,
)
SETTINGS = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])


async def disturbed(flow: Stumbling, log: Sequence[Sent], steps: Sequence[tuple[str, str, int]]) -> None:
    scoring = flow.scoring
    assert isinstance(scoring, HeldScoring)
    for sent in log:
        flow.send(sent.topic, sent.value, sent.key, at=sent.at)
    for step, topic, number in steps:
        if step == "take":
            await flow.take(topic, 1 + number)
        elif step == "stumble":
            flow.stumbles[("assemble", "score", "gate")[number % 3]] = 1
        elif step == "score" and scoring.waiting:
            scoring.release(scoring.waiting[number % len(scoring.waiting)])
        elif step == "checkpoint":
            flow.checkpoint()
        elif step == "crash":
            flow.crash()
        elif step == "time":
            flow.pass_time(number / 10)
        await flow.run_scoring()
    await drain(flow)
    for _ in range(2):
        flow.pass_time(400)
        await drain(flow)


@SETTINGS
@given(log=logs(1), steps=STEPS)
def test_a_stage_that_raises_in_a_batch_loses_and_doubles_nothing(
    log: list[Sent], steps: list[tuple[str, str, int]]
) -> None:
    async def run() -> None:
        calm, rough = make(1, ONE, hold=False), Stumbling()
        await undisturbed(calm, log)
        await disturbed(rough, log, steps)
        check_at_rest(rough)
        assert last_contents(rough) == last_contents(calm)
        assert [letter.reason for letter in rough.dead_letters() if letter.reason == "poison"] == []

    asyncio.run(run())


@SETTINGS
@given(log=logs(1), steps=STEPS, number=st.integers(0, 29))
def test_a_record_on_which_a_stage_raises_costs_this_record_only(
    log: list[Sent], steps: list[tuple[str, str, int]], number: int
) -> None:
    marked = orjson.dumps({"marked": True})
    place = number % (len(log) + 1)
    with_bad = [*log[:place], Sent(log[max(0, place - 1)].at, TOPICS.invocations, 0, marked, None), *log[place:]]

    async def run() -> None:
        calm, rough = make(1, ONE, hold=False), Stumbling(marked)
        await undisturbed(calm, with_bad)
        await disturbed(rough, with_bad, steps)
        check_at_rest(rough)
        assert last_contents(rough) == last_contents(calm)  # without the stumble the record is a dead letter `invalid`
        (letter,) = [letter for letter in rough.dead_letters() if letter.value == marked]
        assert (letter.reason, letter.stage) == ("poison", "assemble")

    asyncio.run(run())


@SETTINGS
@given(log=logs(1), steps=STEPS)
def test_a_session_that_cannot_be_closed_costs_the_records_of_this_session_only(
    log: list[Sent], steps: list[tuple[str, str, int]]
) -> None:
    add = ClosedSessions.add

    def raising(self: ClosedSessions, session: OpenSession, reason: ClosingReason, watermark: int) -> None:
        if session.id == b"a":
            raise KeyError("this session cannot be closed")
        add(self, session, reason, watermark)

    async def run() -> None:
        calm, rough = make(1, ONE, hold=False), Stumbling()
        await undisturbed(calm, log)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ClosedSessions, "add", raising)
            await disturbed(rough, log, steps)
            for _ in range(3):  # each failure starts the partition again, which holds the clock back for a while
                rough.pass_time(400)
                await drain(rough)
        check_at_rest(rough)
        assert without_session_a(last_contents(rough)) == without_session_a(last_contents(calm))
        assert [s for s in rough.sessions() if s["session_id"] == "a"] == []

    asyncio.run(run())


def without_session_a(contents: dict[str, dict[object, Any]]) -> dict[str, dict[object, Any]]:
    return {
        topic: {name: content for name, content in found.items() if content["session_id"] != "a"}
        for topic, found in contents.items()
        if any(content["session_id"] != "a" for content in found.values())
    }
