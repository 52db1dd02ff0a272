"""Lists the criteria of a config that will be NOT_EVALUATED always, or without a reference, each with the way out."""

from __future__ import annotations

from collections.abc import Mapping

from traceweir.schemas.text import printable
from traceweir.scorers import databricks_names
from traceweir.scorers.databricks_names import short_name
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.plan import Plan

NEEDS_REFERENCE = frozenset(
    {
        "tool_trajectory_avg_score",
        "response_match_score",
        "final_response_match_v2",
        "trajectory_exact_match",
        "trajectory_in_order_match",
        "trajectory_any_order_match",
        "trajectory_precision",
        "trajectory_recall",
        databricks_names.CORRECTNESS,
        databricks_names.SUFFICIENCY,
        databricks_names.RECALL,
    }
)
"""The metrics that compare with what a reference expects, and have no value without one."""


def never_measured(plan: Plan, without_key: Mapping[str, str] | None = None) -> list[str]:
    """Returns a sentence for each criterion that no session will have a value of, with the way out.

    Args:
        plan: The plan.
        without_key: By name of a judge model what it lacks, such as the variable with its key; models that lack nothing
            are left out. None if nobody has looked.

    >>> from traceweir.scorers.evaluation.plan import read_plan
    >>> never_measured(read_plan({"criteria": {"answered": 1}, "sampling": {"answered": 0}}))
    ['answered is never measured: its share of the sessions is 0; raise sampling.answered, or remove the criterion']
    """
    found: dict[str, str] = {}
    for metrics in plan.rounds:
        for metric in metrics:
            reason = _reason(metric, plan, without_key or {}, found)
            if reason is not None:
                found[metric.name] = reason
    return [
        f"{printable(short_name(metric.name))} is never measured: {found[metric.name]}"
        for metric in plan.metrics
        if metric.name in found
    ]


def needing_references(plan: Plan) -> str | None:
    """Returns a sentence that names the criteria without a value where no reference comes; None if there are none."""
    names = [
        printable(short_name(metric.name))
        for metric in plan.metrics
        if metric.name in NEEDS_REFERENCE and metric.scorer is not None and metric.runs_on is None
    ]
    if not names:
        return None
    return (
        f"measured only where a reference says what was expected: {', '.join(names)}; put `reference` into the events, or "
        "references on the topic `references` (docs/input-formats.md)"
    )


def _reason(metric: Metric, plan: Plan, without_key: Mapping[str, str], never: Mapping[str, str]) -> str | None:
    name = short_name(metric.name)
    if metric.scorer is None:
        return _unsupported(metric)
    if plan.sampling.get(metric.name, 1.0) == 0:
        return f"its share of the sessions is 0; raise sampling.{printable(name)}, or remove the criterion"
    if metric.when is not None and metric.when.otherwise == 0 and all(each.metric in never for each in metric.when.any):
        waits = ", ".join(sorted({printable(short_name(each.metric)) for each in metric.when.any}))
        return f"it waits for {waits}, which are never measured; remove `when`, or set `else`"
    if metric.scorer.judged and metric.scorer.judge_model in without_key:
        model = printable(str(metric.scorer.judge_model))
        if all(each in without_key for each in plan.judge.fallback.get(str(metric.scorer.judge_model), ())):
            return f"the judge {model} has no key; set {without_key[str(metric.scorer.judge_model)]}"
    return None


_INSTEAD = {
    "response_evaluation_score": "final_response_match_v2 or rubric_based_final_response_quality_v1",
    "per_turn_user_simulator_quality_v1": "user_frustration or conversation_completeness on recorded sessions",
}
"""What a config can use in place of a metric of Google ADK that Traceweir does not compute."""


def _unsupported(metric: Metric) -> str:
    if metric.code is not None:
        return f"{metric.unsupported_because}, or write a criterion with a `prompt`"
    instead = _INSTEAD.get(metric.name)
    return f"Traceweir does not compute it; {'remove the criterion' if instead is None else f'use {instead}'}"
