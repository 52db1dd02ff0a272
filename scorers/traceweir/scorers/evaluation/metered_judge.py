"""Notes what the questions of one scorer about one subject have cost, and who has answered them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from traceweir.schemas.score import Cost
from traceweir.scorers.base import NOTHING_SPENT
from traceweir.scorers.evaluation.outcome import Outcome, Unmeasured
from traceweir.scorers.judge import Judge, JudgeFailed, Question, Reply, Room
from traceweir.scorers.judged.vote import total_cost


class MeteredJudge(Judge):
    """Passes questions to a judge, and keeps what each one has cost and who has answered.

    Args:
        judge: The judge.
        metric: Name of the metric whose score needs the answers.
        app_name: Name of the app whose agent is judged; None if it is not known.
    """

    def __init__(self, judge: Judge, metric: str = "", app_name: str | None = None) -> None:
        self._judge = judge
        self._metric = metric
        self._app_name = app_name
        self._costs: list[Cost] = []
        self._has_paid_for_nothing = False
        self._models: set[str | None] = set()

    async def ask(self, question: Question) -> Reply:
        """Returns the judge's reply.

        Raises:
            BudgetSpent: the answer would exceed the budget.
            JudgeFailed: the judge returned no answer.
        """
        try:
            reply = await self._judge.ask(replace(question, asked_for=self._metric, app_name=self._app_name))
        except JudgeFailed as failure:
            if failure.cost != NOTHING_SPENT:
                self._costs.append(failure.cost)
                self._has_paid_for_nothing = True
            raise
        self._costs.append(reply.cost)
        self._models.add(reply.model)
        return reply

    async def room(self, question: Question) -> Room | None:
        """Returns what the judge returns."""
        return await self._judge.room(question)

    def charged(self, outcome: Outcome) -> Outcome:
        """Returns the outcome with the models that have answered, and with the cost of all questions.

        A measurement keeps the cost that its scorer states, unless a failed question was paid for, of which the scorer
        knows nothing.
        """
        if (judge := joined_models(self._models)) is not None:
            outcome = replace(outcome, judge=judge)
        if not self._costs or not (isinstance(outcome, Unmeasured) or self._has_paid_for_nothing):
            return outcome
        return replace(outcome, cost=total_cost(self._costs))


def joined_models(models: Iterable[str | None]) -> str | None:
    """Returns the names of the models that have answered; None if none has.

    >>> joined_models(["openai/b", None, "openai/a"]), joined_models([None])
    ('openai/a + openai/b', None)
    """
    return " + ".join(sorted({model for model in models if model})) or None
