"""Tests `traceweir.streams.testing`, with which users test their own stages and scorers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest
from pydantic import ValidationError

from traceweir.scorers import Measurement, Scorer, Subject
from traceweir.streams.base.stages.base import Cut, Output, Record, StageSpec
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.testing import Flow, event, plan_of, trace


class Count:
    """A stage that publishes after each checkpoint how many records it has taken."""

    def __init__(self, topic: str) -> None:
        self.topic, self.count, self.next = topic, 0, dict[str, int]()

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        self.count = int(rows.get(b"count", b"0"))

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        self.count += len(records)
        self.next[topic] = records[-1].offset + 1

    def reject(self, topic: str, record: Record, why: RecordRejected) -> None:
        self.next[topic] = record.offset + 1

    def tick(self, now: float, behind: Collection[str]) -> None: ...

    def full(self) -> bool:
        return False

    def cut(self) -> Cut:
        if not self.next:
            return Cut([], [], {})
        value = b"%d" % self.count
        cut = Cut([(b"count", value)], [Output(self.topic, 0, None, value)], self.next)
        self.next = {}
        return cut

    def drop(self) -> None: ...


def counting(outputs: tuple[str, ...] = ("counts",)) -> StageSpec:
    return StageSpec("count", ("in",), outputs, lambda partition, read, changed: Count("counts"))


async def test_a_custom_stage_keeps_its_state_over_a_crash() -> None:
    flow = Flow(stages=(counting(),))
    flow.send("in", b"a")
    await flow.settle()
    flow.crash()
    flow.send("in", b"b")
    await flow.settle()

    assert [message.value for message in flow.read("counts")] == [b"1", b"2"]
    assert flow.rows(b"count/") == {b"count/count": b"2"}


async def test_an_output_to_an_undeclared_topic_fails() -> None:
    flow = Flow(stages=(counting(outputs=()),))
    flow.send("in", b"a")
    with pytest.raises(AssertionError, match="no running stage declares the topic 'counts' as an output"):
        await flow.settle()


async def test_an_output_larger_than_a_batch_fails() -> None:
    flow = Flow()
    with pytest.raises(
        AssertionError,
        match=r"a record that takes 1000103 bytes of a batch for the topic 'traceweir\.network' does not fit",
    ):
        flow.commit(Cut([], [Output(flow.topics.network, 0, b"key", b"x" * 1_000_000)], {}))


async def test_settings_have_the_documented_defaults_regardless_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACEWEIR_IDLE_GAP_S", "7")
    assert Flow().settings.idle_gap_s == 300
    assert Flow(idle_gap_s=60).settings.idle_gap_s == 60
    with pytest.raises(ValidationError, match="idle_gap"):
        Flow(idle_gap=60)


class Half(Scorer):
    """Returns the value 0.5."""

    def score(self, subject: Subject) -> Measurement:
        return Measurement(value=0.5)


@pytest.mark.parametrize(("threshold", "published"), [(0.4, 1), (0.6, 0)])
async def test_the_gate_can_require_a_scorer_that_is_not_installed(threshold: float, published: int) -> None:
    plan = plan_of("half", Half(), threshold, {"criteria": {"response_match_score": 0.5}}, required=True)
    flow = Flow(plan)
    flow.send(flow.topics.traces, trace(1))
    flow.send(flow.topics.invocations, event("invocation.completed", final_response={"parts": [{"text": "Yes."}]}))
    await flow.finish()

    assert [metric.name for metric in plan.metrics] == ["response_match_score", "half"]
    assert len(flow.read(flow.topics.network)) == published
