"""Asks each judge of a config one small question, to find a wrong key, address or model before a session needs it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

from traceweir.schemas.model_names import litellm_name
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.judge import Judge, Question, Reply
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.scorers.judged.labelled_cases import plain_cases
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.lab.judge_check import JudgedOnce, judge_once
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.errors import JudgeUnavailableError
from traceweir.streams.scoring.judges.models import models_of
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.scoring.judges.verdict_file import JudgeFile
from traceweir.streams.tools.doctor.finding import Finding

CHECK = "judge asked"
MAX_PROBLEM_CHARACTERS = 300
_LONG = ("hallucinations_v1",)
"""Criteria that ask more than one question about an invocation; another one is used if there is one."""


async def ask_judges(settings: Settings, plan: Plan) -> AsyncIterator[Finding]:
    """Yields what each judge model of a plan, and of its fallback, answers to one known case of a judged criterion.

    The question is sent once, whatever verdicts are stored, and its answer is not stored. It counts in the budget of the
    commands that run without Kafka.

    Args:
        settings: Address and key of the judges' API, and the path of the file with the spending.
        plan: The criteria.
    """
    if not plan.judged:
        yield Finding(CHECK, "not checked", "no criterion asks a judge")
        return
    for model in models_of(plan):
        name = printable(litellm_name(model, plan.judge.models, settings.judge_api_base))
        scorer = min(_scorers_for(plan, model), key=lambda each: each.metric in _LONG, default=None)
        if scorer is None:
            yield Finding(CHECK, "not checked", f"{name}: no criterion that asks it has a known case")
            continue
        try:
            yield await _ask(settings, plan, model, scorer)
        except JudgeUnavailableError as error:
            yield Finding(CHECK, "failure", f"{name}: {error}")


async def _ask(settings: Settings, plan: Plan, model: str, scorer: JudgedScorer) -> Finding:
    retries = plan.judge.retries.model_copy(update={"attempts": 1})
    cache = plan.judge.cache.model_copy(update={"max_verdicts": 0})
    once = plan.judge.model_copy(update={"retries": retries, "repairs": 0, "cache": cache, "fallback": {}})
    case = plain_cases(scorer)[0]
    with JudgeFile(settings.judge_cache, plan.judge.cache) as file:
        judging = Judging(once, Access.of(settings), utc_now, note=file.pay)
        for paid in file.paid():
            judging.budget.record_spend(paid)
        judge = _OfModel(judging.session(), model)
        found = await judge_once(case.scorer(scorer), case.turns, judge)
    asked = judging.shown_model_of(judge.question) if judge.question is not None else model
    return _finding(scorer.metric, printable(asked), found, judging.bill.text())


def _finding(metric: str, model: str, found: JudgedOnce, bill: str) -> Finding:
    paid = f"{found.seconds:.1f} s, {bill or 'nothing was sent'}"
    if found.measurement is not None:
        return Finding(CHECK, "ok", f"{model} gave a verdict for {metric}: {paid}")
    problem = printable(found.problem, MAX_PROBLEM_CHARACTERS)
    return Finding(CHECK, "failure", f"{model} gave no verdict for {metric} ({found.cause}): {problem} ({paid})")


def _scorers_for(plan: Plan, model: str) -> Iterator[JudgedScorer]:
    """Yields the criteria with known cases that ask a model, at once or as a fallback."""
    for metric in plan.metrics:
        scorer = metric.scorer
        if not isinstance(scorer, JudgedScorer) or not plain_cases(scorer):
            continue
        if model in (scorer.judge_model, *plan.judge.fallback.get(scorer.judge_model, ())):
            yield scorer


class _OfModel(Judge):
    """A judge that asks one model, whichever the criterion names."""

    def __init__(self, judge: Judge, model: str) -> None:
        self._judge = judge
        self._model = model
        self.question: Question | None = None

    async def ask(self, question: Question) -> Reply:
        """Returns the reply of the model.

        Raises:
            BudgetSpent: the budget does not allow the question.
            JudgeFailed: there is no answer.
        """
        self.question = replace(question, model=self._model)
        return await self._judge.ask(self.question)
