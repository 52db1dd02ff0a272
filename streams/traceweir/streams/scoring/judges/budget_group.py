"""Lets the budgets of several configs count the same spending, because the judges of one worker have one bill."""

from __future__ import annotations

from traceweir.streams.scoring.judges.budget import JudgeBudget, Paid, Share, Spending


class BudgetGroup:
    """The budgets of a process: each has the limits of its config, and counts what all of them have spent."""

    def __init__(self) -> None:
        self._budgets: list[JudgeBudget] = []
        self._spending = Spending()
        self._share = Share()

    def add(self, budget: JudgeBudget) -> None:
        """Adds a budget, which learns what was spent before."""
        budget.set_share(self._share)
        for paid in self._spending.entries():
            budget.record_spend(paid)
        self._budgets.append(budget)

    def record_spend(self, paid: Paid, by: JudgeBudget | None = None) -> None:
        """Adds spending; `by` has counted it already."""
        self._spending.add(paid)
        for budget in self._budgets:
            if budget is not by:
                budget.record_spend(paid)

    def set_share(self, share: Share) -> None:
        """Sets the share of every limit that belongs to this process."""
        self._share = share
        for budget in self._budgets:
            budget.set_share(share)
