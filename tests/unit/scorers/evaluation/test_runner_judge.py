"""Tests the scores of a scorer that asks a judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest
from tests.support.fake_scorers import TURNS, plan_of
from tests.support.scoring import NOW, make_session

from traceweir.schemas.dimensions import Dimensions
from traceweir.schemas.score import Cost
from traceweir.scorers import Measurement, Scorer, Subject
from traceweir.scorers.evaluation.runner import evaluate
from traceweir.scorers.judge import AnswerUnusable, BudgetSpent, Judge, JudgeFailed, Question, Reply


class AsksJudge(Scorer):
    judged: ClassVar[bool] = True

    async def score(self, subject: Subject) -> Measurement:
        assert subject.judge is not None
        question = Question(metric="m", version="1", model="some", prompt="Is it?")
        reply = await subject.judge.ask(question)
        return Measurement(value=float(reply.text), cost=reply.cost)


class FixedReply:
    """Returns the same reply to every question, or raises the same error."""

    def __init__(self, reply: str | Exception) -> None:
        self._reply = reply

    async def ask(self, question: Question) -> Reply:
        if isinstance(self._reply, Exception):
            raise self._reply
        return Reply(text=self._reply, cost=Cost(input_tokens=7))


@pytest.mark.parametrize(
    ("judge", "outcome"),
    [
        (FixedReply("0.75"), ("PASSED", None, "")),
        (
            FixedReply(BudgetSpent("0 of 5 USD are left today")),
            ("NOT_EVALUATED", "budget", "0 of 5 USD are left today"),
        ),
        (FixedReply(JudgeFailed("it\x1b hung up")), ("NOT_EVALUATED", "error", "JudgeFailed: it\\x1b hung up")),
        (None, ("NOT_EVALUATED", "error", "there is no judge to ask")),
    ],
)
async def test_a_judge_answers_or_its_error_is_the_reason(judge: Judge | None, outcome: tuple[Any, ...]) -> None:
    scores = await evaluate(plan_of(AsksJudge()), make_session(), TURNS[:1], now=lambda: NOW, timeout_s=1, judge=judge)
    first = scores[0]
    assert (first.status, first.not_evaluated_because, first.rationale) == outcome
    assert first.cost.input_tokens == (7 if first.value is not None else 0)


class AnswersInTurn(Judge):
    """Answers each question with the next reply, or raises it."""

    def __init__(self, *replies: str | Exception) -> None:
        self._replies = iter(replies)

    async def ask(self, question: Question) -> Reply:
        return await FixedReply(next(self._replies)).ask(question)


UNUSABLE = AnswerUnusable("no verdict", Cost())
REFUSED = JudgeFailed("it refused", "judge_refused")


@pytest.mark.parametrize(
    ("replies", "causes", "total"),
    [
        ((REFUSED, REFUSED), ["judge_refused", "judge_refused"], "judge_refused"),
        ((REFUSED, JudgeFailed("no connection")), ["judge_refused", "judge_unavailable"], None),
        ((UNUSABLE, BudgetSpent("spent")), ["judge_unparsable", None], "judge_unparsable"),
        ((ValueError("a defect"), ValueError("a defect")), [None, None], None),
    ],
)
async def test_a_score_has_the_cause_of_its_judge_and_a_session_the_one_that_its_invocations_share(
    replies: tuple[Exception, ...], causes: list[str | None], total: str | None
) -> None:
    judge = AnswersInTurn(*replies)
    scores = await evaluate(plan_of(AsksJudge()), make_session(), TURNS[:2], now=lambda: NOW, timeout_s=1, judge=judge)
    assert [score.cause for score in scores] == [*causes, total]
    assert {score.not_evaluated_because for score in scores if score.cause} <= {"error"}


async def test_the_details_of_a_session_count_the_causes() -> None:
    judge = AnswersInTurn("0.75", REFUSED)
    scores = await evaluate(plan_of(AsksJudge()), make_session(), TURNS[:2], now=lambda: NOW, timeout_s=1, judge=judge)
    assert scores[-1].details["not_evaluated"] == {
        "error": {"count": 1, "invocations": [TURNS[1].invocation.invocation_id], "causes": {"judge_refused": 1}}
    }


class AsksTwice(AsksJudge):
    async def score(self, subject: Subject) -> Measurement:
        first = await super().score(subject)
        try:
            return await super().score(subject)
        except JudgeFailed:
            return first


PAID_REFUSAL = JudgeFailed("it refused", "judge_refused", Cost(input_tokens=30, output_tokens=1, usd=0.5))


async def test_a_failed_question_that_was_paid_is_in_the_cost_of_its_score() -> None:
    async def cost_of(scorer: Scorer, *replies: str | Exception) -> Cost:
        judge = AnswersInTurn(*replies)
        scores = await evaluate(plan_of(scorer), make_session(), TURNS[:1], now=lambda: NOW, timeout_s=1, judge=judge)
        return scores[0].cost

    assert await cost_of(AsksJudge(), PAID_REFUSAL) == PAID_REFUSAL.cost
    both = Cost(input_tokens=37, output_tokens=1, usd=0.5)
    assert await cost_of(AsksTwice(), "0.75", PAID_REFUSAL) == both
    assert await cost_of(AsksTwice(), "0.75", BudgetSpent("spent")) == Cost(input_tokens=7)


async def test_a_criterion_without_a_judge_has_a_cause() -> None:
    first, *_ = await evaluate(plan_of(AsksJudge()), make_session(), TURNS[:1], now=lambda: NOW, timeout_s=1)
    assert first.cause == "judge_unavailable"


async def test_a_question_says_for_which_app_and_metric_it_is_asked() -> None:
    asked: list[Question] = []

    class Noting(Judge):
        async def ask(self, question: Question) -> Reply:
            asked.append(question)
            return Reply(text="1", cost=Cost())

    turns = [replace(TURNS[0], dimensions=Dimensions(app_name="rail")), TURNS[0]]
    plan = plan_of(AsksJudge())
    await evaluate(plan, make_session(), turns, now=lambda: NOW, timeout_s=1, judge=Noting())

    assert [(each.app_name, each.asked_for) for each in asked] == [
        ("rail", plan.metrics[0].name),
        (TURNS[0].dimensions.app_name, plan.metrics[0].name),
    ]
    assert asked[0] == Question(metric="m", version="1", model="some", prompt="Is it?")
