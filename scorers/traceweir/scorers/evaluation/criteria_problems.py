"""Finds the problems of a config that concern several of its criteria."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from traceweir.schemas.judge_config import Budget
from traceweir.scorers.databricks_names import full_name
from traceweir.scorers.evaluation.cascade import Condition, rounds_of
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.thresholds import in_words
from traceweir.scorers.spelling import did_you_mean


def cascade_problems(
    metrics: Sequence[Metric], required: Sequence[str], sampling: float | Mapping[str, float]
) -> list[str]:
    """Returns the problems of conditions: a criterion that is unknown, of traces, sampled or the gate's, or a circle.

    A bound outside the scale of the other criterion is a problem too, as a threshold outside the scale is.
    """
    shares = shares_of(sampling, metrics)
    by_name = {metric.name: metric for metric in metrics}
    problems = []
    for metric in metrics:
        if metric.when is not None and metric.scorer is not None and metric.scorer.level == "trace":
            problems.append(f"criteria.{metric.name}.when: a metric of traces takes no condition; remove it")
        for place, condition in enumerate(metric.when.any if metric.when else ()):
            entry = f"criteria.{metric.name}.when.any.{place}"
            where = f"{entry}.metric"
            other = by_name.get(condition.metric)
            if other is None:
                hint = did_you_mean(condition.metric, by_name)
                problems.append(
                    f"{where}: {condition.metric!r} is not among the criteria; add it to criteria, or name another; {hint}"
                )
            elif other.scorer is not None and other.scorer.level == "trace":
                problems.append(f"{where}: {condition.metric} measures traces, and has no score of the session")
            elif shares[other.name] < 1:
                problems.append(
                    f"{where}: {condition.metric} is measured on a share of the sessions (sampling), so nobody could say "
                    f"how probable it is that {metric.name} is asked; sample {metric.name} by `else` instead"
                )
            elif problem := _off_the_scale(condition, other):
                problems.append(f"{entry}.{problem}")
    conditional = {metric.name for metric in metrics if metric.when is not None and metric.when.otherwise < 1}
    problems += [
        f"gate.required: {name} has the condition `when`, so a trace of a session that is not chosen would be rejected; "
        "remove one of the two"
        for name in required
        if full_name(name) in conditional
    ]
    if not problems:
        try:
            rounds_of([(metric.name, metric.when) for metric in metrics])
        except ValueError as error:
            problems.append(f"criteria: {error}")
    return problems


def _off_the_scale(condition: Condition, other: Metric) -> str | None:
    """Returns the problem of a bound that the values of the other criterion cannot have; None if there is none."""
    name = "below" if condition.below is not None else "above"
    bound = condition.below if condition.below is not None else condition.above
    if bound is None or other.scorer is None:
        return None
    lowest, highest = other.scorer.value_range
    if lowest <= bound <= highest:
        return None
    holds = "always" if (bound > highest) == (name == "below") else "never"
    return (
        f"{name}: must be a number {in_words(lowest, highest)}, as the values of {other.name}, not {bound:g}, with which "
        f"it {holds} holds"
    )


def unused_fallbacks(metrics: Sequence[Metric], fallback: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns the problems of a fallback for a model that no criterion asks, which would never have an effect."""
    judged = [metric.scorer for metric in metrics if metric.scorer is not None and metric.scorer.judged]
    asked = {scorer.judge_model for scorer in judged}
    # A scorer of a plugin can ask a model that it does not name.
    if None in asked:
        return []
    names = ", ".join(sorted(map(str, asked))) or "none"
    return [
        f"judge.fallback.{model}: no criterion asks this model (asked: {names}); name the judge_model of a criterion"
        for model in fallback
        if model not in asked
    ]


def unused_budgets(metrics: Sequence[Metric], budget: Budget) -> list[str]:
    """Returns the problems of limits for metrics that ask no judge, which would never have an effect."""
    judged = [metric.name for metric in metrics if metric.scorer is not None and metric.scorer.judged]
    problems = [
        f"judge.budget.metrics.{name}: no criterion of this name asks a judge; {did_you_mean(name, judged)}"
        for name in budget.metrics
        if full_name(name) not in judged
    ]
    counts = Counter(map(full_name, budget.metrics))
    return problems + [
        f"judge.budget.metrics: {name} has limits twice, by its full and its short name; keep one"
        for name, count in counts.items()
        if count > 1
    ]


def shares_of(sampling: float | Mapping[str, float], metrics: Sequence[Metric]) -> dict[str, float]:
    """Returns the share of the sessions, from 0 to 1, on which each metric is measured."""
    if not isinstance(sampling, Mapping):
        return {metric.name: sampling for metric in metrics}
    shares = {full_name(name): share for name, share in sampling.items()}
    return {metric.name: shares.get(metric.name, 1.0) for metric in metrics}
