"""Says in one line which criteria are on, and where they come from."""

from __future__ import annotations

from traceweir.schemas.figures import threshold_figure
from traceweir.schemas.text import printable
from traceweir.scorers.databricks_names import short_name
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.plan import Plan


def criteria_text(plan: Plan, config: str | None) -> str:
    """Returns the criteria of a plan as one line for a person.

    Args:
        plan: The plan.
        config: The name of the config file; None if there is no file, or its name is unknown.

    >>> from traceweir.scorers.evaluation.plan import read_plan
    >>> criteria_text(read_plan({"criteria": {"response_match_score": 0.8, "latency": {}}}), "eval.json")
    'criteria of eval.json: response_match_score >= 0.8, latency_seconds'
    """
    if plan.is_default:
        always = ", ".join(metric.name for metric in plan.metrics if not metric.needs_input)
        sometimes = ", ".join(metric.name for metric in plan.metrics if metric.needs_input)
        return f"no config, so the default criteria are on: {always}; for sessions with the input also {sometimes}"
    name = "the config" if config is None else printable(config)
    if not plan.metrics:
        return (
            f"{name} has no criteria, so a session without traces gets no score; name criteria in the config, or leave "
            "out the config for the default criteria"
        )
    return f"criteria of {name}: {', '.join(map(_in_words, plan.metrics))}"


def _in_words(metric: Metric) -> str:
    name = printable(short_name(metric.name))
    sign = "<=" if metric.scorer is not None and metric.scorer.direction == "lower" else ">="
    words = name if metric.threshold is None else f"{name} {sign} {threshold_figure(metric.threshold)}"
    if metric.scorer is None:
        return f"{words} (unsupported: NOT_EVALUATED)"
    if metric.code is None:
        return words
    return f"{words} (measured by the registered scorer; {printable(metric.code, 100)} is not run)"
