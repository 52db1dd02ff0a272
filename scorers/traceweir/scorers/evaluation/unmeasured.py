"""Lists the criteria of a config that will be NOT_EVALUATED always, or without a reference, each with the way out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from traceweir.schemas.text import printable
from traceweir.scorers.base import Scorer
from traceweir.scorers.databricks_names import full_name, short_name
from traceweir.scorers.evaluation.cascade import Condition
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.plan import Plan


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


def needing_references(plan: Plan) -> list[str]:
    """Returns sentences that name the criteria without a value where no reference comes, each with the way out.

    >>> from traceweir.scorers.evaluation.plan import read_plan
    >>> needing_references(read_plan({"criteria": {"conversational_guidelines": {"threshold": 1, "guidelines": "Be brief."}}}))
    []
    """
    compared = []
    found = []
    for metric in plan.metrics:
        need = None if metric.scorer is None or metric.runs_on is not None else metric.scorer.needed_reference
        name = printable(short_name(metric.name))
        if need is not None and need.option:
            where = need.where or f"a reference has {_listed(need.fields)}"
            put = _listed([f"`{field}`" for field in need.fields])
            option = f"criteria.{printable(_key_of(metric, plan))}.{need.option}"
            found.append(
                f"{name} is measured only where {where}: {need.change} {option}, or put {put} into references {_TOPIC}"
            )
        elif need is not None:
            compared.append(name)
    if compared:
        found.insert(
            0,
            f"measured only where a reference says what was expected: {', '.join(compared)}; push an eval set with "
            f"`traceweir references push FILE`, put `reference` into the events, or references {_TOPIC}",
        )
    return found


_TOPIC = "on the topic `references` (docs/input-formats.md)"


def without_references(plan: Plan) -> str | None:
    """Returns a sentence if no criterion has a value where no reference comes; None if one has.

    >>> from traceweir.scorers.evaluation.plan import read_plan
    >>> without_references(read_plan({"criteria": {"response_match_score": 0.5, "answered": 1}})) is None
    True
    """
    measured = [metric for metric in plan.metrics if metric.scorer is not None and metric.runs_on is None]
    if not measured or any(metric.scorer and metric.scorer.needed_reference is None for metric in measured):
        return None
    return (
        "every criterion of the config needs a reference, so that a session without one has no verdict: push an eval set with "
        "`traceweir references push FILE`, put `reference` into the events, or add criteria that need none, such as those of "
        "examples/live.json"
    )


def _listed(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _key_of(metric: Metric, plan: Plan) -> str:
    """Returns the key of a criterion in the config, which can be an alias of its name."""
    criteria = (plan.document or {}).get("criteria")
    keys = criteria if isinstance(criteria, dict) else ()
    return next((key for key in keys if full_name(key) == metric.name), short_name(metric.name))


def _reason(metric: Metric, plan: Plan, without_key: Mapping[str, str], never: Mapping[str, str]) -> str | None:
    name = short_name(metric.name)
    if metric.scorer is None:
        return _unsupported(metric)
    if plan.sampling.get(metric.name, 1.0) == 0:
        return f"its share of the sessions is 0; raise sampling.{printable(name)}, or remove the criterion"
    if metric.when is not None and metric.when.otherwise == 0:
        others = {each.name: each for each in plan.metrics}
        reasons = [_never_holds(each, others[each.metric], never) for each in metric.when.any]
        if all(reasons):
            listed = "; ".join(dict.fromkeys(filter(None, reasons)))
            return f"no condition of `when` can hold ({listed}); correct or remove `when`, or set `else`"
    if metric.scorer.judged and metric.scorer.judge_model in without_key:
        model = printable(str(metric.scorer.judge_model))
        if all(each in without_key for each in plan.judge.fallback.get(str(metric.scorer.judge_model), ())):
            return f"the judge {model} has no key; set {without_key[str(metric.scorer.judge_model)]}"
    return None


def _never_holds(condition: Condition, other: Metric, never: Mapping[str, str]) -> str | None:
    """Returns why a condition on another criterion never holds; None if it can."""
    if condition.status == "NOT_EVALUATED":
        return None
    because: str | None = None
    if other.name in never or other.scorer is None:
        because = "it is never measured"
    elif condition.status == "FAILED":
        because = _never_fails(other, other.scorer)
    elif condition.status is None:
        lowest, highest = other.scorer.value_range
        if (condition.below is not None and condition.below <= lowest) or (
            condition.above is not None and condition.above >= highest
        ):
            ends = f"from {lowest:g} to {highest:g}" if math.isfinite(highest) else f"at least {lowest:g}"
            because = f"its values are {ends}"
    if because is None:
        return None
    short = condition.model_copy(update={"metric": printable(short_name(condition.metric))})
    return f"{short}, and {because}"


def _never_fails(metric: Metric, scorer: Scorer) -> str | None:
    """Returns why a criterion passes with every value; None if it can fail."""
    if metric.threshold is None:
        return "it has no threshold"
    lowest, highest = scorer.value_range
    if scorer.direction == "lower":
        return f"every value passes <= {metric.threshold:g}" if metric.threshold >= highest else None
    return f"every value passes >= {metric.threshold:g}" if metric.threshold <= lowest else None


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
