"""Limits a plan that scores beside another one: a shadow's or a challenger's."""

from __future__ import annotations

from dataclasses import replace

from traceweir.scorers.evaluation.plan import Plan


def limited(plan: Plan, budget_usd: float | None) -> Plan:
    """Returns a plan with the same scores that costs at most this amount in all, and scores each session once.

    It has no challenger.

    Args:
        plan: The plan. If its own budget is lower, that budget is the limit.
        budget_usd: The most that its judges can cost in all, in USD; None: the plan's own budget is the only limit.
    """
    limits = [usd for usd in (budget_usd, plan.judge.budget.usd) if usd is not None]
    budget = plan.judge.budget.model_copy(update={"usd": min(limits, default=None)})
    judge = plan.judge.model_copy(update={"retry_later": None, "budget": budget})
    metrics = tuple(replace(metric, settle_s=0.0) for metric in plan.metrics)
    return replace(plan, metrics=metrics, judge=judge, challenger=None)
