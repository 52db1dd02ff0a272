"""Tests the scores of a session: the measured subjects, their order, and the resulting status."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from tests.support.fake_scorers import TURNS, ScoresYes, plan_of, summary
from tests.support.scoring import NOW, make_session, make_trace, make_turn, scores_of

from traceweir.schemas.invocation import Level
from traceweir.schemas.score import Cost
from traceweir.scorers import Measurement, Scorer, Subject, evaluate, read_plan
from traceweir.scorers.evaluation.aggregation import MAX_NAMED_INVOCATIONS


async def test_scores_are_in_the_order_of_invocations_with_the_session_last() -> None:
    assert [summary(score) for score in await scores_of(plan_of(ScoresYes()), TURNS)] == [
        ("invocation", "i1", "PASSED", None, 1.0),
        ("invocation", "i2", "FAILED", None, 0.0),
        ("invocation", "i3", "NOT_EVALUATED", "missing_input", None),
        ("session", None, "PASSED", None, 0.5),
    ]


async def test_a_session_names_the_invocations_without_a_value() -> None:
    *_, session = await scores_of(plan_of(ScoresYes()), TURNS)
    assert session.details == {
        "invocations": 3,
        "measured": 2,
        "not_evaluated": {"missing_input": {"count": 1, "invocations": ["i3"]}},
    }
    assert session.rationale == "over 2 of 3 invocations"


async def test_a_session_names_a_bounded_number_of_invocations_without_a_value() -> None:
    *_, session = await scores_of(plan_of(ScoresYes()), [TURNS[0], *(make_turn(f"n{n}") for n in range(1_000))])
    named: Any = session.details["not_evaluated"]
    assert (named["missing_input"]["count"], len(named["missing_input"]["invocations"])) == (
        1_000,
        MAX_NAMED_INVOCATIONS,
    )


async def test_a_score_contains_the_measurement_and_its_subject() -> None:
    ended = NOW - timedelta(hours=1)
    session = make_session("s", segment=2, revision=3, last_record_at=ended)
    first, *_ = await scores_of(plan_of(ScoresYes()), TURNS, session)
    assert (first.rationale, first.details, first.cost) == ("read it", {"was": "yes"}, Cost(input_tokens=3, usd=0.5))
    assert (first.session_id, first.segment, first.revision, first.scorer_version) == ("s", 2, 3, "7")
    assert (first.config_digest, first.threshold, first.occurred_at, first.evaluated_at) == ("config", 0.5, ended, NOW)


async def test_the_cost_of_a_session_is_on_its_invocations_only() -> None:
    scores = await scores_of(plan_of(ScoresYes()), TURNS)
    assert [score.cost.usd for score in scores] == [0.5, 0.5, 0.0, 0.0]


async def test_a_value_at_the_threshold_passes() -> None:
    scores = await scores_of(plan_of(ScoresYes(), threshold=1.0), TURNS[:1])
    assert [score.status for score in scores] == ["PASSED", "PASSED"]


async def test_a_session_of_which_no_invocation_has_a_value_is_not_evaluated() -> None:
    *_, session = await scores_of(plan_of(ScoresYes()), [make_turn("i1"), make_turn("i2")])
    assert summary(session) == ("session", None, "NOT_EVALUATED", "missing_input", None)


async def test_a_session_without_an_invocation_is_not_evaluated() -> None:
    assert [summary(score) for score in await scores_of(plan_of(ScoresYes()), [])] == [
        ("session", None, "NOT_EVALUATED", "missing_input", None)
    ]


async def test_asynchronous_scorers_run_concurrently() -> None:
    class Meets(Scorer):
        """Returns only when all subjects are being measured."""

        barrier: ClassVar[asyncio.Barrier] = asyncio.Barrier(6)

        async def score(self, subject: Subject) -> Measurement:
            await self.barrier.wait()
            return Measurement(value=1.0)

    scores = await scores_of(plan_of(Meets(), Meets()), TURNS)
    assert {score.status for score in scores} == {"PASSED"}


async def test_other_levels_have_a_score_per_subject() -> None:
    class Counts(Scorer):
        """Counts a trace's steps, or a session's traces."""

        level: ClassVar[Level] = "trace"

        def score(self, subject: Subject) -> Measurement:
            return Measurement(value=float(len(subject.trace.steps if subject.trace else subject.session.traces)))  # type: ignore[union-attr]

    class OfSession(Counts):
        level: ClassVar[Level] = "session"

    session = make_session(traces=[make_trace(id="kp:trace:a"), make_trace(id="kp:trace:b")])
    scores = await scores_of(plan_of(Counts(), OfSession()), TURNS, session)
    assert [(score.level, score.trace_id, score.value) for score in scores] == [
        ("trace", "kp:trace:a", 1.0),
        ("trace", "kp:trace:b", 1.0),
        ("session", None, 2.0),
    ]


async def test_an_unsupported_metric_has_a_single_not_evaluated_score() -> None:
    scores = await scores_of(read_plan({"criteria": {"response_evaluation_score": 1}}), TURNS)
    assert [summary(score) for score in scores] == [("session", None, "NOT_EVALUATED", "unsupported", None)]


class OfLevel(Scorer):
    level: ClassVar[Level] = "session"

    def score(self, subject: Subject) -> Measurement:
        return Measurement(value=1.0)


class OfTraces(OfLevel):
    level: ClassVar[Level] = "trace"


async def test_what_was_withdrawn_has_no_value_in_place_of_that_of_a_former_revision() -> None:
    plan = plan_of(ScoresYes())
    plan = replace(plan, metrics=tuple(replace(each, needs_input=True) for each in plan.metrics))

    scores = await evaluate(
        plan, make_session(), (), now=lambda: NOW, timeout_s=5, withdrawn=[make_turn("gone", answer="yes")]
    )

    assert [summary(score) for score in scores] == [
        ("invocation", "gone", "NOT_EVALUATED", "missing_input", None),
        ("session", None, "NOT_EVALUATED", "missing_input", None),
    ]


async def test_a_withdrawn_invocation_leaves_the_others_as_they_are() -> None:
    without = await scores_of(plan_of(ScoresYes()), TURNS)
    scores = await evaluate(
        plan_of(ScoresYes()), make_session(), TURNS, now=lambda: NOW, timeout_s=5, withdrawn=[make_turn("gone")]
    )

    assert [each for each in scores if each.invocation_id != "gone"] == without
    assert len(scores) == len(without) + 1


@pytest.mark.parametrize("scorer", [OfLevel(), OfTraces()])
async def test_a_session_of_which_nothing_is_left_has_no_value(scorer: Scorer) -> None:
    session = make_session(traces=[make_trace(metadata={"withdrawn": True})])

    scores = await scores_of(plan_of(scorer), (), session)

    assert [(each.level, each.status) for each in scores] == [(scorer.level, "NOT_EVALUATED")]
