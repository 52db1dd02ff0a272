"""Asks a judge about cases whose verdict is known, and counts the verdicts that are right."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from time import monotonic

from traceweir.schemas.turns import Turn
from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.judge import BudgetSpent, Judge, JudgeFailed, Question, Reply, Room
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.scorers.judged.known_cases import KnownCase, asking_once, known_cases

_WITHOUT_VERDICT = (BudgetSpent, JudgeFailed, MissingInput, ValueError)


@dataclass(frozen=True, slots=True)
class CheckedCriterion:
    """Holds the verdicts of a judge on the known cases of a criterion."""

    metric: str
    model: str
    """The judge's model, as in the config."""
    cases: int
    """Number of cases; 0 for a criterion of a plugin, which has none."""
    right: int
    """Number of cases with the right verdict."""
    passed_wrongly: int
    """Number of cases that must fail and that the judge passes."""
    failed_wrongly: int
    """Number of cases that must pass and that the judge fails."""
    problem: str
    """Why the first case without a verdict has none; empty if all have one."""
    questions: int
    """Number of questions that the judge answered, with those of earlier runs whose verdicts are stored."""
    input_tokens: int
    output_tokens: int
    usd: float
    seconds: float
    """From the first question to the last answer."""

    @property
    def is_fit(self) -> bool:
        """Whether the judge tells all cases apart."""
        return self.right == self.cases


@dataclass(frozen=True, slots=True)
class JudgedOnce:
    """Holds what a judge was asked about an invocation, and what it answered."""

    asked: Sequence[tuple[Question, Reply | None]]
    """The questions in their order, each with the answer; None if there was none."""
    measurement: Measurement | None
    """What the criterion makes of the answers; None if there is no verdict."""
    problem: str
    """Why there is no verdict; empty if there is one."""
    seconds: float
    """From the first question to the last answer."""


async def judge_once(scorer: JudgedScorer, turn: Turn, judge: Judge) -> JudgedOnce:
    """Asks a judge about an invocation, each question once.

    Args:
        scorer: The criterion, with the options of the config.
        turn: The invocation, with its reference.
        judge: The judge.
    """
    noting = _Noting(judge)
    began = monotonic()
    measured, problem = await _measured(
        asking_once(scorer), Subject(invocation=turn.invocation, reference=turn.reference, judge=noting)
    )
    return JudgedOnce(noting.asked, measured, problem, monotonic() - began)


async def check_judge_on(scorer: JudgedScorer, judge: Judge) -> CheckedCriterion:
    """Asks a judge once about each known case of a criterion.

    A case passes if its value is 1. A case without a value is neither right nor wrong, and makes the judge unfit.

    Args:
        scorer: The criterion, with the options of the config.
        judge: The judge.
    """
    noting = _Noting(judge)
    cases = known_cases(scorer)
    began = monotonic()
    found = await asyncio.gather(*(_passes(scorer, case, noting) for case in cases))
    replies = [reply for _, reply in noting.asked if reply is not None]
    passed = [(case.right, passes) for case, passes in zip(cases, found, strict=True)]
    return CheckedCriterion(
        scorer.metric,
        scorer.judge_model,
        len(cases),
        right=sum(right is passes for right, passes in passed),
        passed_wrongly=passed.count((False, True)),
        failed_wrongly=passed.count((True, False)),
        problem=next((each for each in found if isinstance(each, str)), ""),
        questions=len(replies),
        input_tokens=sum(reply.cost.input_tokens for reply in replies),
        output_tokens=sum(reply.cost.output_tokens for reply in replies),
        usd=sum(reply.cost.usd for reply in replies),
        seconds=monotonic() - began,
    )


async def _passes(scorer: JudgedScorer, case: KnownCase, judge: Judge) -> bool | str:
    """Returns whether the judge passes a case, or why it has no verdict."""
    try:
        return await case.passes(scorer, judge)
    except _WITHOUT_VERDICT as error:
        return str(error)


async def _measured(scorer: Scorer, subject: Subject) -> tuple[Measurement | None, str]:
    """Returns the measurement, or why there is none."""
    try:
        found = scorer.score(subject)
        return (await found if isinstance(found, Awaitable) else found), ""
    except _WITHOUT_VERDICT as error:
        return None, str(error)


class _Noting(Judge):
    """A judge that notes what another one is asked and answers."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.asked: list[tuple[Question, Reply | None]] = []

    async def room(self, question: Question) -> Room | None:
        return await self._judge.room(question)

    async def ask(self, question: Question) -> Reply:
        position = len(self.asked)
        self.asked.append((question, None))
        reply = await self._judge.ask(question)
        self.asked[position] = (question, reply)
        return reply
