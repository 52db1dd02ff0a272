"""Tests that retries, revisions, replays and losses publish each attempt once, and the judge's values last."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.flow import TOPICS
from tests.support.judged import judged_plan

from traceweir.schemas.session import Session
from traceweir.streams.scoring.judges.verdicts import JudgeVerdict
from traceweir.streams.scoring.sessions.result import ScoringResult
from traceweir.streams.scoring.sessions.session_scoring import Measure
from traceweir.streams.testing import Flow, event, instant

AFTER_S = 60
SETTLE_S = 30.0
METRICS = ("a", "b")
PLAN = judged_plan(retry_later={"after_s": AFTER_S, "attempts": 1_000})


class Answering:
    """Returns two scores; each has a value if its judge is available."""

    def __init__(self, inner: Measure) -> None:
        self.answering: Sequence[str] = ()
        self.settling = ""
        """The session whose criteria wait for a later revision."""

    async def __call__(self, session: Session, known: Sequence[JudgeVerdict] = (), attempt: int = 0) -> ScoringResult:
        name, revision = session.session_id, session.revision
        answered = {metric: metric in self.answering for metric in METRICS}
        await asyncio.sleep(0)
        settles = self.settling == name and attempt == 0
        scores = [
            orjson.dumps(
                {"id": f"{name}/{metric}", "revision": revision, "attempt": attempt, "value": value and not settles}
            )
            for metric, value in answered.items()
        ]
        last_record_ms = int(session.last_record_at.timestamp() * 1000)
        return ScoringResult(
            session.segment,
            revision,
            attempt,
            last_record_ms,
            scores,
            (),
            {},
            unanswered=0 if settles else [*answered.values()].count(False),
            settle_s=SETTLE_S if settles else 0.0,
        )


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("revise", "put aside", "replay")), st.sampled_from("sst")),
        st.tuples(st.just("wait"), st.sampled_from(((), ("a",), ("b",), METRICS))),
        st.tuples(st.sampled_from(("take", "take", "checkpoint", "checkpoint", "crash", "lost")), st.none()),
    ),
    min_size=10,
    max_size=50,
)


def send(flow: Flow, name: str, revision: int) -> None:
    document = {
        "session_id": name,
        "segment": 0,
        "revision": revision,
        "closed_because": "idle",
        "first_record_at": instant(0),
        "last_record_at": instant(revision),
        "events": [event("invocation.completed", name, event_id=str(revision))],
        "traces": [],
    }
    flow.send(TOPICS.sessions, document, name.encode())


async def play(steps: Sequence[tuple[str, Any]], settling: str = "") -> None:
    flow = Flow(PLAN, stages=("score",), hold=Answering)
    judge = flow.scoring
    assert isinstance(judge, Answering)
    judge.settling = settling
    revisions: dict[str, int] = defaultdict(int)
    aside: dict[str, list[int]] = defaultdict(list)
    for step, argument in steps:
        if step in ("revise", "put aside"):
            if step == "revise":
                send(flow, argument, revisions[argument])
            else:  # The record is a dead letter until a replay sends it.
                aside[argument].append(revisions[argument])
            revisions[argument] += 1
        elif step == "replay" and aside[argument]:
            send(flow, argument, aside[argument].pop())
        elif step == "wait":  # From now on these judges are available.
            judge.answering = argument
            flow.pass_time(AFTER_S)
        elif step == "take":
            await flow.take(TOPICS.sessions)
        elif step == "checkpoint":
            flow.checkpoint()
        elif step == "lost":
            flow.cut()
            flow.crash()
        elif step == "crash":
            flow.crash()
        await flow.run_scoring()
    await flow.settle()
    judge.answering = METRICS
    for _ in range(3):
        flow.pass_time(AFTER_S)
        await flow.finish_scoring()
        await flow.settle()
    check(flow)


def check(flow: Flow) -> None:
    sent = [(session["session_id"], session["revision"]) for session in flow.sessions()]
    published: dict[str, list[tuple[int, int, bool]]] = defaultdict(list)
    for score in (message.json for message in flow.read(TOPICS.results)):
        published[score["id"]].append((score["revision"], score["attempt"], score["value"]))
    assert flow.rows(b"score/r") == {}
    for name in {name for name, _ in sent}:
        last = max(revision for id_, revision in sent if id_ == name)
        for metric in METRICS:
            versions = published[f"{name}/{metric}"]
            attempts: dict[int, list[int]] = defaultdict(list)
            for revision, attempt, _ in versions:
                attempts[revision].append(attempt)
            assert all(found == list(range(len(found))) for found in attempts.values())
            superseded = {revision for id_, revision in sent if id_ == name} - attempts.keys()
            assert len(superseded) <= flow.counters("score").get("superseded", 0)
            assert max(versions)[0] == last
            assert max(versions)[2] is True


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_each_attempt_is_published_once_and_the_highest_attempt_has_the_values_of_the_judge(
    steps: list[tuple[str, Any]],
) -> None:
    asyncio.run(play(steps))


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_the_same_holds_if_the_criteria_of_a_session_wait_for_a_later_revision(steps: list[tuple[str, Any]]) -> None:
    asyncio.run(play(steps, settling="s"))
