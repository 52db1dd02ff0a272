"""Tests that the budgets of several configs count the same spending."""

from __future__ import annotations

from datetime import UTC, datetime

from traceweir.schemas.judge_config import Budget
from traceweir.streams.scoring.judges.budget import JudgeBudget, Paid, Share
from traceweir.streams.scoring.judges.budget_group import BudgetGroup


def budget(usd: float) -> JudgeBudget:
    return JudgeBudget(Budget(usd_per_day=usd), lambda: datetime.fromtimestamp(600, UTC))


def test_each_budget_counts_what_the_others_have_spent_and_its_own_once() -> None:
    group, one, two = BudgetGroup(), budget(1.0), budget(2.0)
    group.add(one)
    group.add(two)
    one.record_spend(Paid(10, 0, 0.5))  # as the budget itself does with its own question
    group.record_spend(Paid(10, 0, 0.5), by=one)
    assert (one.left()["usd_per_day"], two.left()["usd_per_day"]) == (0.5, 0.75)


def test_a_budget_that_comes_later_knows_what_was_spent_and_the_share() -> None:
    group, late = BudgetGroup(), budget(2.0)
    group.set_share(Share(1, 2))
    group.record_spend(Paid(10, 0, 0.5))
    group.add(late)
    assert late.left()["usd_per_day"] == 0.5


def test_a_budget_that_comes_later_knows_what_its_apps_have_spent() -> None:
    group = BudgetGroup()
    group.record_spend(Paid(10, 0, 0.5, "apps.rail"))
    limits = Budget.model_validate({"apps": {"rail": {"usd_per_day": 2.0}}})
    late = JudgeBudget(limits, lambda: datetime.fromtimestamp(600, UTC))
    group.add(late)
    assert late.left() == {"apps.rail.usd_per_day": 0.75}
