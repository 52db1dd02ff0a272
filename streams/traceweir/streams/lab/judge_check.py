"""Asks a judge about labelled cases, and counts the verdicts that are right."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from traceweir.schemas.score import Cost
from traceweir.schemas.session import Session
from traceweir.schemas.turns import Turn
from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.judge import BudgetSpent, Judge, JudgeFailed, Question, Reply, Room
from traceweir.scorers.judged.base import JudgedScorer, subject_at_end
from traceweir.scorers.judged.labelled_cases import LabelledCase, asking_once, plain_cases
from traceweir.scorers.judged.vote import total_cost

NOT_ASKED = frozenset({"budget", "judge_unavailable", "too_long"})
"""The causes of a missing verdict that say nothing about the judge: it could not be asked, or sent no answer."""


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """Holds what a judge made of a labelled case."""

    case: LabelledCase
    passes: bool | None
    """Whether the value of the case reaches the least that passes; None if there is no value."""
    cause: str
    """Why there is no value, in a word: a cause of a Score, `budget`, `missing_input` or `error`; empty if there is one."""
    problem: str
    """The same in a sentence."""


@dataclass(frozen=True, slots=True)
class JudgedCases:
    """Holds what a judge made of the cases of a criterion, and what that took."""

    cases: Sequence[JudgedCase]
    questions: int
    """Number of questions that the judge answered, with those of earlier runs whose verdicts are stored."""
    cost: Cost
    """What all questions have cost, with those that have no answer; nothing for stored verdicts."""
    seconds: float
    """From the first question to the last answer."""

    @property
    def problem(self) -> str:
        """Why the first case without a verdict has none; empty if all have one."""
        return next((each.problem for each in self.cases if each.problem), "")

    def count(self, *, must_pass: bool, passes: bool) -> int:
        """Returns the number of cases with this label and this verdict."""
        return sum(each.case.must_pass is must_pass and each.passes is passes for each in self.cases)


@dataclass(frozen=True, slots=True)
class CheckedCriterion:
    """Holds the verdicts of a judge on the plain cases of a criterion."""

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
    not_asked: int
    """Number of cases about which the judge could not be asked, or sent no answer."""
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
    def is_fit(self) -> bool | None:
        """Whether the judge tells all cases apart; None if it could not be asked, and has none of the other cases wrong."""
        if self.not_asked and self.right + self.not_asked == self.cases:
            return None
        return self.right == self.cases


@dataclass(frozen=True, slots=True)
class JudgedOnce:
    """Holds what a judge was asked about an invocation or a session, and what it answered."""

    asked: Sequence[tuple[Question, Reply | None]]
    """The questions in their order, each with the answer; None if there was none."""
    measurement: Measurement | None
    """What the criterion makes of the answers; None if there is no verdict."""
    cause: str
    """Why there is no verdict, in a word, as in `JudgedCase`; empty if there is one."""
    problem: str
    """Why there is no verdict; empty if there is one."""
    seconds: float
    """From the first question to the last answer."""
    unanswered: Cost
    """What the questions without an answer have cost."""


async def judge_once(
    scorer: JudgedScorer, turns: Sequence[Turn], judge: Judge, session: Session | None = None
) -> JudgedOnce:
    """Asks a judge about the last invocation of some turns, or about all as a session, each question once.

    Args:
        scorer: The criterion, with the options of the config.
        turns: The turns in order, each with its reference; at least one.
        judge: The judge.
        session: Their session, if it is known.
    """
    noting = NotingJudge(judge)
    began = monotonic()
    subject = subject_at_end(scorer, turns, noting, session)
    measured, cause, problem = await measured_case(asking_once(scorer), subject)
    return JudgedOnce(noting.asked, measured, cause, problem, monotonic() - began, noting.unanswered)


async def judge_cases(
    scorer: JudgedScorer,
    cases: Sequence[LabelledCase],
    judge: Judge,
    *,
    passes_from: float = 1.0,
    judged: Callable[[JudgedCase], object] = lambda found: None,
) -> JudgedCases:
    """Asks a judge once about each case.

    Args:
        scorer: The criterion, with the options of the config.
        cases: The cases.
        judge: The judge.
        passes_from: The least value with which a case passes.
        judged: Called with each case when its verdict is there, or the reason why there is none.
    """
    noting = NotingJudge(judge)

    async def ask(case: LabelledCase) -> JudgedCase:
        asking = case.scorer(scorer)
        measured, cause, problem = await measured_case(asking, case.subject(asking, noting))
        found = JudgedCase(case, None if measured is None else measured.value >= passes_from, cause, problem)
        judged(found)
        return found

    began = monotonic()
    found = await asyncio.gather(*map(ask, cases))
    answered = sum(reply is not None for _, reply in noting.asked)
    return JudgedCases(found, answered, noting.cost, monotonic() - began)


async def check_judge_on(scorer: JudgedScorer, judge: Judge) -> CheckedCriterion:
    """Asks a judge once about each plain case of a criterion.

    A case passes if its value is 1. A case without a value is neither right nor wrong, and makes the judge unfit if it
    was asked.

    Args:
        scorer: The criterion, with the options of the config.
        judge: The judge.
    """
    found = await judge_cases(scorer, plain_cases(scorer), judge)
    return CheckedCriterion(
        scorer.metric,
        scorer.judge_model,
        len(found.cases),
        right=found.count(must_pass=True, passes=True) + found.count(must_pass=False, passes=False),
        passed_wrongly=found.count(must_pass=False, passes=True),
        failed_wrongly=found.count(must_pass=True, passes=False),
        not_asked=sum(each.cause in NOT_ASKED for each in found.cases),
        problem=found.problem,
        questions=found.questions,
        input_tokens=found.cost.input_tokens,
        output_tokens=found.cost.output_tokens,
        usd=found.cost.usd,
        seconds=found.seconds,
    )


async def measured_case(scorer: Scorer, subject: Subject) -> tuple[Measurement | None, str, str]:
    """Returns the measurement; else None, the cause, and the problem in a sentence."""
    try:
        found = scorer.score(subject)
        return (await found if isinstance(found, Awaitable) else found), "", ""
    except JudgeFailed as error:
        return None, error.cause, str(error)
    except BudgetSpent as error:
        return None, "budget", str(error)
    except MissingInput as error:
        return None, "missing_input", str(error)
    except ValueError as error:
        return None, "error", str(error)


class NotingJudge(Judge):
    """A judge that notes what another one is asked, what it answers, and what that costs."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.asked: list[tuple[Question, Reply | None]] = []
        self._unanswered: list[Cost] = []

    @property
    def cost(self) -> Cost:
        """What the questions so far have cost, with those that have no answer."""
        return total_cost([*(reply.cost for _, reply in self.asked if reply is not None), *self._unanswered])

    @property
    def unanswered(self) -> Cost:
        """What the questions without an answer have cost so far."""
        return total_cost(self._unanswered)

    async def room(self, question: Question) -> Room | None:
        """Returns what the other judge returns."""
        return await self._judge.room(question)

    async def ask(self, question: Question) -> Reply:
        """Returns the reply of the other judge.

        Raises:
            BudgetSpent: the answer would exceed the budget.
            JudgeFailed: the judge returned no answer.
        """
        position = len(self.asked)
        self.asked.append((question, None))
        try:
            reply = await self._judge.ask(question)
        except JudgeFailed as error:
            self._unanswered.append(error.cost)
            raise
        self.asked[position] = (question, reply)
        return reply
