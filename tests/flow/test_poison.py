"""A record on which a stage raises becomes a dead letter, and the records around it are processed."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

import orjson
import pytest
from tests.support.flow import TOPICS

from traceweir.streams.base.stages.base import Cut, Record, Stage, StageSpec
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.pipeline.gate.novelty_scopes import NoveltyScope
from traceweir.streams.testing import Flow, event, trace

BAD = "kp:trace:bad"


def send_sessions(flow: Flow, *names: str) -> None:
    """Sends one trace per session, and the ends of the sessions."""
    for name in names:
        flow.send(TOPICS.traces, trace(name, name), name.encode())
        flow.send(TOPICS.invocations, event("session.ended", name), name.encode())


class Raising:
    """A stage that raises in one of its methods because of the records that contain a word, of all topics or of some."""

    def __init__(self, stage: Stage, where: str, bad: bytes, topics: Set[str] | None) -> None:
        self._stage, self._where, self._bad, self._topics = stage, where, bad, topics
        self._seen = False
        self.counters = getattr(stage, "counters", {})
        self.load, self.reject, self.full, self.drop = stage.load, stage.reject, stage.full, stage.drop

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        for number, record in enumerate(records):
            if self._bad in (record.value or b"") and (self._topics is None or topic in self._topics):
                self._stage.apply(topic, records[: number + 1])  # the work on the record is half done
                self._seen = True
                if self._where == "apply":
                    raise KeyError("nobody expected this")
                return
        self._stage.apply(topic, records)

    def tick(self, now: float, behind: Any) -> None:
        self._stage.tick(now, behind)
        if self._seen and self._where == "tick":
            raise KeyError("nobody expected this")

    def cut(self) -> Cut:
        if self._seen and self._where == "cut":
            raise KeyError("nobody expected this")
        return self._stage.cut()


class RaisingFlow(Flow):
    """A flow of which one stage raises."""

    def __init__(
        self, stage: str, where: str, bad: str = BAD, *, topics: Set[str] | None = None, **options: Any
    ) -> None:
        self._raising = stage, where, bad.encode(), topics
        super().__init__(**options)

    def wrap(self, spec: StageSpec) -> StageSpec:
        name, where, bad, topics = self._raising
        if spec.name != name:
            return spec

        def new(partition: int, read: Any, changed: Callable[[], None]) -> Stage:
            return Raising(spec.new(partition, read, changed), where, bad, topics)

        return StageSpec(spec.name, spec.inputs, spec.outputs, new)


@pytest.mark.parametrize("where", ["apply", "cut"])
@pytest.mark.parametrize(
    ("stage", "topic"), [("assemble", TOPICS.traces), ("score", TOPICS.sessions), ("gate", TOPICS.candidates)]
)
async def test_the_record_on_which_a_stage_raises_is_poison_and_its_neighbours_are_scored(
    stage: str, topic: str, where: str
) -> None:
    flow = RaisingFlow(stage, where)
    send_sessions(flow, "a", "b", "bad", "c", "d")
    await flow.finish()

    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.stage, letter.topic) == ("poison", stage, topic)
    assert letter.detail.startswith(f"the stage {stage} raised KeyError: 'nobody expected this'")
    assert BAD.encode() in (letter.value or b"")
    gated = [score["trace_id"] for score in flow.results("gate")]
    assert sorted(gated) == [f"kp:trace:{name}" for name in "abcd"]
    assert sorted(message.key or b"" for message in flow.read(TOPICS.network)) == [
        f"kp:trace:{name}".encode() for name in "abcd"
    ]


async def test_a_stage_that_raises_in_a_tick_ends_the_worker() -> None:
    flow = RaisingFlow("assemble", "tick")
    send_sessions(flow, "a", "bad")
    with pytest.raises(KeyError, match="nobody expected this"):
        await flow.settle()

    assert flow.lanes[0].dead


async def test_a_record_that_cannot_even_be_rejected_ends_the_worker() -> None:
    class NoWayOut(RaisingFlow):
        def wrap(self, spec: StageSpec) -> StageSpec:
            wrapped = super().wrap(spec)

            def new(partition: int, read: Any, changed: Callable[[], None]) -> Stage:
                stage: Any = wrapped.new(partition, read, changed)
                if spec.name == "gate":

                    def reject(topic: str, record: Record, why: RecordRejected) -> None:
                        raise ValueError(f"{topic} takes no rejection")

                    stage.reject = reject
                return stage  # type: ignore[no-any-return]

            return StageSpec(spec.name, spec.inputs, spec.outputs, new)

    flow = NoWayOut("gate", "apply")
    send_sessions(flow, "a", "bad")
    with pytest.raises(ValueError, match="takes no rejection"):
        await flow.finish()


async def test_an_exception_while_a_scope_is_measured_costs_one_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = NoveltyScope.supersedes

    def supersedes(self: NoveltyScope, trace_id: str, version: Any) -> bool:
        if trace_id == BAD:
            raise OverflowError("int too large to convert")
        return measure(self, trace_id, version)

    monkeypatch.setattr(NoveltyScope, "supersedes", supersedes)
    flow = Flow()
    send_sessions(flow, "a", "bad", "c")
    await flow.finish()

    assert [(letter.reason, letter.stage) for letter in flow.dead_letters()] == [("poison", "gate")]
    assert sorted(score["trace_id"] for score in flow.results("gate")) == ["kp:trace:a", "kp:trace:c"]
    counters = flow.counters("gate")
    assert (counters["consumed"], counters["dead_lettered.poison"]) == (3, 1)


async def test_an_exception_after_a_session_is_scored_costs_that_session(monkeypatch: pytest.MonkeyPatch) -> None:
    from traceweir.streams.pipeline.score.candidate_changes import CandidateChanges

    changed = CandidateChanges.changed

    def raising(self: CandidateChanges, session: bytes, *rest: Any) -> Any:
        if session == b"bad":
            raise OverflowError("int too large to convert")
        return changed(self, session, *rest)

    monkeypatch.setattr(CandidateChanges, "changed", raising)
    flow = Flow()
    send_sessions(flow, "a", "bad", "c")
    await flow.finish()

    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.stage, letter.key) == ("poison", "score", b"bad")
    assert sorted(score["trace_id"] for score in flow.results("gate")) == ["kp:trace:a", "kp:trace:c"]
    counters = flow.counters("score")
    assert (counters["consumed"], counters["scored"]) == (3, 2)


def forged(document: bytes, **changes: Any) -> bytes:
    return (
        orjson.dumps(orjson.loads(document))
        .replace(b'"segment":0', b'"segment":%d' % changes.pop("segment", 0))
        .replace(b'"revision":0', b'"revision":%d' % changes.pop("revision", 0))
    )


@pytest.mark.parametrize("field", ["segment", "revision"])
@pytest.mark.parametrize("number", [2**32, 2**63, 2**64, 10**400])
async def test_a_forged_number_on_an_internal_topic_is_a_dead_letter(field: str, number: int) -> None:
    flow = Flow()
    send_sessions(flow, "a", "b")
    await flow.finish()
    session, candidate = flow.read(TOPICS.sessions)[0], flow.read(TOPICS.candidates)[0]
    flow.send(TOPICS.sessions, forged(session.value or b"", **{field: number}), b"x")
    flow.send(TOPICS.candidates, forged(candidate.value or b"", **{field: number}), candidate.key)
    send_sessions(flow, "c")
    await flow.finish()

    reasons = sorted(letter.reason for letter in flow.dead_letters())
    assert reasons == ["unreadable_candidate", "unreadable_session"]
    assert flow.read(TOPICS.network)[-1].key == b"kp:trace:c"


@pytest.mark.parametrize("name", ["id", "domain"])
async def test_a_forged_name_of_400_kilobytes_on_an_internal_topic_is_a_dead_letter(name: str) -> None:
    flow = Flow()
    send_sessions(flow, "a", "b")
    await flow.finish()
    old = b'"kp:trace:a"' if name == "id" else b'"task_domain":' + orjson.dumps(trace()["metadata"]["task_domain"])
    new = old[:-1] + b"x" * 400_000 + b'"'
    for topic in (TOPICS.sessions, TOPICS.candidates):
        first = flow.read(topic)[0]
        assert old in (first.value or b"")
        flow.send(topic, (first.value or b"").replace(old, new), first.key)
    send_sessions(flow, "c")
    await flow.finish()

    reasons = sorted(letter.reason for letter in flow.dead_letters())
    assert reasons == ["unreadable_candidate", "unreadable_session"]
    assert flow.read(TOPICS.network)[-1].key == b"kp:trace:c"


@pytest.mark.parametrize("size", [5_000, 60_000, 900_000])
async def test_a_forged_session_key_that_is_no_identifier_is_a_dead_letter(size: int) -> None:
    flow = Flow()
    send_sessions(flow, "a")
    await flow.finish()
    flow.send(TOPICS.sessions, flow.read(TOPICS.sessions)[0].value, b"k" * size)
    send_sessions(flow, "c")
    await flow.finish()

    assert [(letter.reason, letter.stage) for letter in flow.dead_letters()] == [("too_large", "score")]
    assert flow.read(TOPICS.network)[-1].key == b"kp:trace:c"


@pytest.mark.parametrize("key", [b"s", None])
async def test_a_poison_record_is_known_to_the_open_session_of_its_key(key: bytes | None) -> None:
    flow = RaisingFlow("assemble", "apply", "bad")
    flow.send(TOPICS.invocations, event(session_id="s", event_id="good"))
    flow.send(TOPICS.invocations, event(session_id="s", event_id="bad"), key)
    await flow.finish()

    (session,) = flow.sessions()
    assert [each["reason"] for each in session.get("refused", ())] == ["poison"] * (key is not None)


@pytest.mark.parametrize("topics", [{TOPICS.invocations}, {TOPICS.invocations, TOPICS.strays}], ids=["once", "again"])
async def test_a_poison_record_on_another_partition_is_known_to_the_session_of_its_key(topics: set[str]) -> None:
    home = partition_of(b"s", 3)
    elsewhere = (home + 1) % 3
    flow = RaisingFlow("assemble", "apply", "bad", topics=topics, partitions=3)
    flow.send(TOPICS.invocations, event(session_id="s", event_id="good"), b"s", partition=home)
    flow.send(TOPICS.invocations, event(session_id="s", event_id="bad"), b"s", partition=elsewhere)
    await flow.finish()

    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.topic, letter.partition) == ("poison", TOPICS.invocations, elsewhere)
    (message,) = flow.read(TOPICS.dead_letters)
    assert message.partition == home
    (session,) = flow.sessions()
    assert [(each["place"], each["reason"]) for each in session.get("refused", ())] == [
        (f"the dead letter of {letter.refused_at}", "poison")
    ]
    counts = flow.counters("assemble")
    assert (counts["consumed"], counts["joined"], counts["forwarded"], counts["dead_lettered.poison"]) == (3, 1, 1, 1)
