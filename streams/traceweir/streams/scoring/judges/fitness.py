"""Asks a judge about the known cases of a criterion before its verdicts count: a model can be unfit for a criterion."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, Protocol

from traceweir.scorers.base import MissingInput, Scorer
from traceweir.scorers.judge import SCORE_ENDS_AT_S, BudgetSpent, Judge, JudgeFailed, Question
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.scorers.judged.labelled_cases import LabelledCase, plain_cases
from traceweir.streams.scoring.judges.verdicts import JudgeUsage

log = logging.getLogger(__name__)

MOST_WRONG = 1
"""Number of known cases that a fit judge can have wrong, if none of them is a case that must fail and that it passes."""


class UsedJudge(Judge, Protocol):
    """A judge that knows what it has learned and paid."""

    @property
    def judged(self) -> JudgeUsage:
        """The new verdicts and the payments so far."""


class Fitness(NamedTuple):
    """The verdicts of a judge on the known cases of a criterion."""

    cases: int
    right: int
    """Number of cases with the right verdict."""
    passed_wrongly: int
    """Number of cases that must fail and that the judge passes."""

    @property
    def is_fit(self) -> bool:
        """Whether the judge passes no case that must fail, and has at most `MOST_WRONG` cases wrong.

        >>> Fitness(4, 3, 0).is_fit, Fitness(4, 3, 1).is_fit, Fitness(4, 2, 0).is_fit, Fitness(0, 0, 0).is_fit
        (True, False, False, True)
        """
        return not self.passed_wrongly and self.cases - self.right <= MOST_WRONG


class FitnessCheck:
    """The check of one criterion and model, which sessions wait for together.

    Args:
        scorer: The criterion, which asks the model.
        judge: The judge that is asked, which knows no verdict before.
    """

    def __init__(self, scorer: JudgedScorer, judge: UsedJudge) -> None:
        self._scorer = scorer
        self._judge = judge
        self._paid_taken = 0
        self.ended: asyncio.Task[Fitness] = asyncio.create_task(self._run())
        # Marks the exception as retrieved, in case no session waits for it.
        self.ended.add_done_callback(lambda done: done.cancelled() or done.exception())

    @property
    def is_open(self) -> bool:
        """Whether the check is still running, or has told nothing because no judge could be asked."""
        return not self.ended.done() or self.ended.cancelled() or self.ended.exception() is not None

    @property
    def is_unfit(self) -> bool:
        """Whether the check has failed."""
        return not self.is_open and not self.ended.result().is_fit

    def taken(self) -> JudgeUsage:
        """Returns the verdicts so far, and the payments that no session has taken before."""
        judged = self._judge.judged
        paid = list(judged.paid)[self._paid_taken :]
        self._paid_taken += len(paid)
        return JudgeUsage(list(judged.verdicts), paid)

    async def _run(self) -> Fitness:
        # The check belongs to no score, whose time could end before.
        SCORE_ENDS_AT_S.set(None)
        cases = plain_cases(self._scorer)
        found = await asyncio.gather(*(self._passes(case) for case in cases))
        verdicts = [(case.must_pass, passes) for case, passes in zip(cases, found, strict=True)]
        passed_wrongly = verdicts.count((False, True))
        open_because = next((each for each in found if isinstance(each, Exception)), None)
        # A case that is passed wrongly decides, whatever the others would be.
        if open_because is not None and not passed_wrongly:
            raise open_because
        fitness = Fitness(len(cases), sum(right is passes for right, passes in verdicts), passed_wrongly)
        if not fitness.is_fit:
            log.warning(
                "the judge %s is unfit for %s: of %d known cases it judges %d right, and passes %d that must fail; `traceweir "
                "judge check` shows them",
                self._scorer.judge_model,
                self._scorer.metric,
                fitness.cases,
                fitness.right,
                fitness.passed_wrongly,
            )
        return fitness

    async def _passes(self, case: LabelledCase) -> bool | Exception | None:
        """Returns whether the judge passes a case; None if it answers without a verdict; an error if it cannot be asked."""
        try:
            return await case.passes(self._scorer, self._judge)
        except BudgetSpent as error:
            return error
        except JudgeFailed as error:
            return error if error.cause == "judge_unavailable" else None
        except (MissingInput, ValueError):
            return None


class FitnessChecks:
    """The checks of a process: one for each criterion and model, before the first question.

    Args:
        mode: `require`: questions wait for the check, and fail if the judge is unfit. `warn`: they do not wait.
        scorers: The scorers of the config; those of plugins have no known cases, and are not checked.
        new_judge: Returns a judge for a check, which knows no verdict before.
        shown: Returns the name of a model without secrets.
    """

    def __init__(
        self,
        mode: Literal["warn", "require"],
        scorers: Iterable[Scorer],
        new_judge: Callable[[], UsedJudge],
        shown: Callable[[Question], str],
    ) -> None:
        self._is_required = mode == "require"
        self._new_judge = new_judge
        self._shown = shown
        self._scorers = {
            each.asks_as or each.metric: each
            for each in scorers
            if isinstance(each, JudgedScorer) and plain_cases(each)
        }
        self._checks: dict[tuple[str, str], FitnessCheck] = {}
        self._names: dict[str, str] = {}

    async def before(self, question: Question, started: Callable[[FitnessCheck], object]) -> None:
        """Waits, with `require`, until the judge of a question is known to be fit for its criterion.

        Args:
            question: The question that is to be asked.
            started: Called with the check, before it is waited for.

        Raises:
            JudgeFailed: the judge is unfit (cause `judge_unfit`), or could not be asked.
            BudgetSpent: the check could cost more than the rest of the budget.
        """
        scorer = self._scorers.get(question.metric)
        if scorer is None:
            return
        key = question.metric, question.model
        check = self._checks.get(key)
        if check is None or (check.ended.done() and check.is_open):
            options = scorer.judge_model_options.model_copy(update={"judge_model": question.model})
            check = FitnessCheck(scorer.model_copy(update={"judge_model_options": options}), self._new_judge())
            self._checks[key] = check
            self._names[question.model] = self._shown(question)
        started(check)
        if not self._is_required:
            return
        # Other sessions wait for it too.
        try:
            fitness = await asyncio.shield(check.ended)
        except BudgetSpent as error:
            raise BudgetSpent(f"known cases of {question.metric}: {error}") from None
        except JudgeFailed as error:
            # What the check has cost is not part of a score.
            raise JudgeFailed(
                f"known cases of {question.metric}: {error}",
                error.cause,
                fails_every_question=error.fails_every_question,
            ) from None
        if not fitness.is_fit:
            raise JudgeFailed(
                f"{self._names[question.model]} is unfit to judge {question.metric}: of {fitness.cases} known cases it judges "
                f"{fitness.right} right, and passes {fitness.passed_wrongly} that must fail; ask another model "
                "(judge.check is require)",
                "judge_unfit",
            )

    def unfit(self) -> dict[str, dict[str, bool]]:
        """Returns whether a judge is unfit, by criterion and model; checks without a result are left out."""
        found: dict[str, dict[str, bool]] = {}
        for (metric, model), check in self._checks.items():
            if not check.is_open:
                found.setdefault(metric, {})[self._names[model]] = check.is_unfit
        return found
