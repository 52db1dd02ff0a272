"""Tests that a run with crashes, losses and rereads commits the same as an undisturbed run."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.flow import TOPICS

from traceweir.schemas.candidate import Candidate
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.testing import START_S, Flow, HeldScoring, Message, event, trace

PLAN = read_plan(b'{"criteria": {"response_match_score": 0.5}, "gate": {"threshold": 0.8, "cache_size": 3}}')
DOMAINS = ("travel", "finance", "Ｔravel")
GARBAGE = (b"{", b"", None, b"[1]", orjson.dumps({**trace(), "steps": []}), b'{"type": "session.ended"}')


@dataclass(frozen=True)
class Sent:
    """Holds a record of the log: its second, its topic and its value."""

    at: int
    topic: str
    partition: int
    value: bytes | None
    key: bytes | None


@st.composite
def logs(draw: st.DrawFn, partitions: int, *, late: bool = False) -> list[Sent]:
    """Draws records in the order of their timestamps, optionally with late records.

    The order of the events within a session is drawn separately.
    """
    log: list[Sent] = []
    at = 0
    for number in range(draw(st.integers(1, 30))):
        at += draw(st.sampled_from((0, 0, 1, 40, 100)) if partitions == 1 else st.just(0))
        behind = draw(st.sampled_from((0, 0, 50, 300))) if late else 0
        session = draw(st.sampled_from("abcd"))
        kind = draw(st.sampled_from(("event", "event", "trace", "trace", "ended", "again", "garbage")))
        topic, key = TOPICS.invocations, draw(st.sampled_from((None, session.encode(), b"other")))
        value: bytes | None
        if kind == "again" and log:
            before = draw(st.sampled_from(log))
            topic, value, key = before.topic, before.value, before.key
        elif kind == "garbage":
            topic, value = draw(st.sampled_from((TOPICS.traces, TOPICS.invocations))), draw(st.sampled_from(GARBAGE))
        elif kind == "trace":
            # A trace has several contents only where all records are read in the same order.
            name = draw(st.integers(0, 3)) if partitions == 1 else number
            domain, sure = draw(st.sampled_from(DOMAINS)), draw(st.sampled_from((1.0, 0.7)))
            words = draw(st.sampled_from(("red fox", "red dog", "blue cat runs", "green")))
            task, outcome = {"objective": words}, {"confidence": sure}
            topic = TOPICS.traces
            value = orjson.dumps(trace(f"{session}{name}", session, domain=domain, task=task, outcome=outcome))
        else:
            occurred = draw(st.integers(-20, 0)) + number / 100
            type_ = "session.ended" if kind == "ended" else "tool.called"
            value = orjson.dumps(event(type_, session, at=occurred, event_id=str(number), ballast="x" * (number * 97)))
        log.append(Sent(max(0, at - behind), topic, draw(st.integers(0, partitions - 1)), value, key))
    return log


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("take", "take", "score", "checkpoint", "halves", "lost", "crash", "time")), st.integers(0, 7)
    ),
    max_size=40,
)


class Reader:
    """Reads a log in its order, across topics, from the offsets of a lane."""

    def __init__(self, flow: Flow, log: Sequence[Sent]) -> None:
        self.flow = flow
        self.messages = [flow.send(s.topic, s.value, s.key, partition=s.partition, at=s.at) for s in log]

    async def take(self, partition: int, count: int) -> int:
        """Passes the next records to the lane, with consecutive records of a topic as a batch."""
        lane = self.flow.lanes[partition]
        mine = [m for m in self.messages if m.partition == partition and m.offset >= lane.position[m.topic]][:count]
        while mine:
            run = [m for m in mine if m.topic == mine[0].topic]
            run = run[: next((i for i, m in enumerate(mine) if m.topic != mine[0].topic), len(mine))]
            await lane.take(run[0].topic, run)
            mine = mine[len(run) :]
        return len(mine)


async def undisturbed(flow: Flow, log: Sequence[Sent]) -> None:
    Reader(flow, log)
    await flow.finish()
    flow.pass_time(400)
    await flow.settle()


async def disturbed(flow: Flow, log: Sequence[Sent], steps: Sequence[tuple[str, int]]) -> None:
    reader, scoring = Reader(flow, log), flow.scoring
    assert isinstance(scoring, HeldScoring)
    for step, number in steps:
        partition = number % flow.partitions
        if step == "take":
            await reader.take(partition, 1 + number)
            flow.tick(partition)
            for topic in (TOPICS.strays, TOPICS.sessions, TOPICS.candidates):
                await flow.take(topic, 1 + number, partition)
        elif step == "score" and scoring.waiting:
            scoring.release(scoring.waiting[number % len(scoring.waiting)])
        elif step == "checkpoint":
            flow.checkpoint(partition)
        elif step == "halves":
            cut = flow.cut(partition)
            await reader.take(partition, 1 + number)
            await flow.run_scoring()
            flow.commit(cut, partition)
        elif step == "lost":
            flow.cut(partition)
            flow.crash(partition)
        elif step == "crash":
            flow.crash(partition)
        elif step == "time" and flow.partitions == 1:
            flow.pass_time(number / 10)
        await flow.run_scoring()
    await drain(flow)
    flow.pass_time(400)
    await drain(flow)
    flow.pass_time(400)
    await drain(flow)


async def drain(flow: Flow) -> None:
    scoring = flow.scoring
    assert isinstance(scoring, HeldScoring)
    await flow.settle()
    while scoring.waiting:
        scoring.release(scoring.waiting[-1])
        await flow.settle()


ONE = {"idle_gap_s": 60, "grace_s": 300, "segment_max_events": 6}
LONG_GRACE = {"idle_gap_s": 60, "grace_s": 3_600}
"""With a grace that is longer than the backlog (3,500 s).

A record that comes late joins its session then. Otherwise it can begin the next segment (docs/limits.md), and whether
it comes late depends on the crashes: a partition that has read its own records reads the strays of another one, which
is behind, at some time.
"""


def make(partitions: int, closing: Mapping[str, Any], *, hold: bool) -> Flow:
    held = HeldScoring if hold else None
    flow = Flow(PLAN, embedder=HashingEmbedder(), hold=held, partitions=partitions, **closing)
    flow.now = START_S + 3_500  # The whole log is a backlog.
    for partition in range(partitions):
        flow.crash(partition)
    return flow


def last_contents(flow: Flow) -> dict[str, dict[object, Any]]:
    """Returns the last record per segment, score and trace in every topic, of any revision.

    Left out are the parts that can differ: times of evaluation, the time of the record that was read first, offsets on
    candidates, and values that depend on novelty.
    """
    varying = {"revision", "occurred_at", "first_record_at", "segment_opened_at"}
    found: dict[str, dict[object, Any]] = defaultdict(dict)
    last = {(session["session_id"], session["segment"]): session["revision"] for session in flow.sessions()}
    for topic, names in (
        (TOPICS.sessions, ("session_id", "segment")),
        (TOPICS.results, ("result_id",)),
        (TOPICS.candidates, ("candidate_id",)),
    ):
        for message in flow.read(topic):
            content = _content(message)
            # Results of a derived invocation stay when the session gets invocations of its own.
            criterion = content.get("metric") == "response_match_score"
            if criterion and content["revision"] < last[content["session_id"], content["segment"]]:
                continue
            content = {name: part for name, part in content.items() if name not in varying}
            content |= {"partition": message.partition, "key": message.key}
            found[topic][tuple(content[name] for name in names)] = content
    return found


def _content(message: Message) -> Any:
    if message.topic == TOPICS.dead_letters:
        letter = message.dead_letter
        return [letter.reason, letter.topic, letter.partition, letter.offset, letter.detail]
    document = message.json
    document.pop("evaluated_at", None)
    if document.get("metric") == "trace_value":
        details = {name: document["details"][name] for name in ("complexity", "tool_diversity", "outcome_confidence")}
        document |= {"value": None, "status": None, "rationale": None, "details": details}
    elif document.get("metric") == "gate":
        document |= {"value": None, "status": None, "rationale": None, "details": None}
    return document


def dead_letters(flow: Flow) -> Counter[bytes]:
    return Counter(orjson.dumps([message.partition, _content(message)]) for message in flow.read(TOPICS.dead_letters))


def check_at_rest(flow: Flow) -> None:
    """Checks the coverage equations, with nothing open and nothing in flight."""
    assemble, score, gate = (Counter(flow.counters(stage)) for stage in ("assemble", "score", "gate"))
    letters = Counter(letter.stage for letter in flow.dead_letters())
    sent = sum(len(flow.read(topic)) for topic in (TOPICS.traces, TOPICS.invocations, TOPICS.strays))
    assert assemble["consumed"] == sent
    assert sent == assemble["joined"] + assemble["duplicate"] + assemble["forwarded"] + letters["assemble"]
    assert assemble["forwarded"] == len(flow.read(TOPICS.strays))
    assert assemble["opened"] + assemble["reopened"] == assemble["closed"] == len(flow.read(TOPICS.sessions))
    assert assemble["closed"] == score["consumed"] == score["scored"] + score["superseded"] + letters["score"]
    assert score["candidates"] == gate["consumed"] == gate["accepted"] + gate["rejected"] + letters["gate"]
    ids = Counter((r["result_id"], r["revision"]) for r in flow.results() if r["metric"] not in ("gate", "trace_value"))
    assert set(ids.values()) <= {1}
    last = {(s["session_id"], s["segment"]): s for s in flow.sessions()}
    assert sum(s["revision"] for s in last.values()) == assemble["reopened"]
    joined = [item["event_id"] for s in last.values() for item in s["events"]]
    assert len(joined) == len(set(joined))


def check_decisions(flow: Flow) -> None:
    """Checks that every decision follows from the log of candidates by the formulas."""
    weights = {"complexity": 0.25, "novelty": 0.35, "tool_diversity": 0.15, "outcome_confidence": 0.25}
    values = {(r["details"]["partition"], r["details"]["offset"]): r for r in flow.results("gate")}
    measured = iter_by_trace(flow.results("trace_value"))
    refused = {(letter.partition, letter.offset) for letter in flow.dead_letters() if letter.stage == "gate"}
    for partition in range(flow.partitions):
        seen: dict[str, dict[str, Any]] = defaultdict(dict)  # by scope, vectors by trace id, oldest first
        for message in flow.logs[TOPICS.candidates, partition]:
            if (partition, message.offset) in refused:
                continue
            candidate = Candidate.model_validate_json(message.value or b"")
            assert candidate.embedding is not None
            vector = np.asarray(candidate.embedding.vector, np.float64)
            scope, name = seen[candidate.scope], candidate.trace.id
            others = [other for id_, other in scope.items() if id_ != name]
            novelty = 1 - max(float(vector @ other) for other in others) if others else 0.5
            scope[name] = vector
            if len(scope) > 3:
                del scope[next(iter(scope))]
            score, decision = next(measured[name]), values[partition, message.offset]
            assert abs(score["details"]["novelty"] - novelty) < 1e-5
            dimensions = {**score["details"], "novelty": novelty}
            value = min(1.0, sum(weight * dimensions[key] for key, weight in weights.items()))
            assert abs(value - score["value"]) < 1e-5
            assert abs(value - 0.8) < 1e-5 or (decision["value"] == 1.0) == (value >= 0.8)
    published = Counter(message.key for message in flow.read(TOPICS.network) if message.value is not None)
    assert sum(published.values()) == sum(r["value"] == 1.0 for r in values.values())


def iter_by_trace(scores: Sequence[Any]) -> dict[str, Any]:
    """Returns the scores of each trace in their order."""
    found: dict[str, list[Any]] = defaultdict(list)
    for score in scores:
        found[score["trace_id"]].append(score)
    return {name: iter(items) for name, items in found.items()}


async def compare(
    partitions: int,
    log: Sequence[Sent],
    steps: Sequence[tuple[str, int]],
    closing: Mapping[str, int],
) -> None:
    calm, rough = make(partitions, closing, hold=False), make(partitions, closing, hold=True)
    await undisturbed(calm, log)
    await disturbed(rough, log, steps)
    for flow in (calm, rough):
        check_at_rest(flow)
        check_decisions(flow)
    assert last_contents(rough) == last_contents(calm)
    assert dead_letters(rough) == dead_letters(calm)


pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")  # records fill whole chunks

SETTINGS = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(log=logs(1), steps=STEPS)
def test_one_partition_commits_the_same_despite_failures(log: list[Sent], steps: list[tuple[str, int]]) -> None:
    asyncio.run(compare(1, log, steps, ONE))


@SETTINGS
@given(log=logs(1, late=True), steps=STEPS)
# The watermark passes the idle gap of a refused record before a late record begins its session.
@example(
    log=[
        Sent(0, TOPICS.invocations, 0, b"{", b"a"),
        Sent(101, TOPICS.invocations, 0, orjson.dumps(event("tool.called", "b", event_id="1")), None),
        Sent(51, TOPICS.invocations, 0, orjson.dumps(event("tool.called", "a", event_id="2")), None),
    ],
    steps=[("take", 1)],
)
def test_late_records_result_in_the_same_sessions_and_scores_despite_failures(
    log: list[Sent], steps: list[tuple[str, int]]
) -> None:
    asyncio.run(compare(1, log, steps, LONG_GRACE))


FORGETFUL = {"idle_gap_s": 60, "grace_s": 80, "guard_s": 160}


@SETTINGS
@given(log=logs(1, late=True), steps=STEPS)
def test_every_event_is_in_a_session_or_a_dead_letter_despite_lost_state(
    log: list[Sent], steps: list[tuple[str, int]]
) -> None:
    async def run() -> None:
        flow = make(1, FORGETFUL, hold=True)
        await disturbed(flow, log, steps)
        sent = {name for each in log if (name := _event_id(each.value))}
        late = {name for letter in flow.dead_letters() if letter.reason == "late" and (name := _event_id(letter.value))}
        found = {item["event_id"] for session in flow.sessions() for item in session["events"]}
        assert sent - late <= found <= sent

    asyncio.run(run())


def _event_id(value: bytes | None) -> str | None:
    try:
        document = orjson.loads(value or b"")
    except ValueError:
        return None
    return document.get("event_id") if isinstance(document, dict) else None


def stray(number: int) -> Sent:
    """Returns an event of the session `a` in the first partition; the home of the session is the second one."""
    return Sent(0, TOPICS.invocations, 0, orjson.dumps(event("tool.called", "a", event_id=str(number))), None)


@SETTINGS
@given(log=logs(3), steps=STEPS)
# The home closes the session with the first stray, and then reads the second one.
@example(
    log=[stray(1), stray(2)],
    steps=[("take", 0), ("take", 1), ("checkpoint", 0), ("take", 1), ("checkpoint", 1), ("lost", 1)],
)
# The home reads the dead letters of two partitions in another order than they were written.
@example(
    log=[
        Sent(0, TOPICS.invocations, 0, b"{", b"a"),
        Sent(0, TOPICS.invocations, 2, b"{", b"a"),
        stray(1),
    ],
    steps=[("take", 2), ("checkpoint", 2)],
)
def test_misrouted_records_commit_the_same_despite_failures(log: list[Sent], steps: list[tuple[str, int]]) -> None:
    asyncio.run(compare(3, log, steps, LONG_GRACE))
