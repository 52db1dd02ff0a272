"""Counts what the questions of one scorer about one subject have cost, also where the scorer has no value."""

from __future__ import annotations

from dataclasses import replace

from traceweir.schemas.score import Cost
from traceweir.scorers.base import NOTHING_SPENT
from traceweir.scorers.evaluation.outcome import Outcome, Unmeasured
from traceweir.scorers.judge import Judge, JudgeFailed, Question, Reply
from traceweir.scorers.judged.vote import total_cost


class MeteredJudge:
    """Passes questions to a judge, and keeps what each one has cost."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._costs: list[Cost] = []
        self._has_paid_for_nothing = False

    async def ask(self, question: Question) -> Reply:
        """Returns the judge's reply.

        Raises:
            BudgetSpent: the answer would exceed the budget.
            JudgeFailed: the judge returned no answer.
        """
        try:
            reply = await self._judge.ask(question)
        except JudgeFailed as failure:
            if failure.cost != NOTHING_SPENT:
                self._costs.append(failure.cost)
                self._has_paid_for_nothing = True
            raise
        self._costs.append(reply.cost)
        return reply

    def charged(self, outcome: Outcome) -> Outcome:
        """Returns the outcome with the cost of all questions.

        A measurement keeps the cost that its scorer states, unless a failed question was paid for, of which the scorer
        knows nothing.
        """
        if not self._costs or not (isinstance(outcome, Unmeasured) or self._has_paid_for_nothing):
            return outcome
        return replace(outcome, cost=total_cost(self._costs))
