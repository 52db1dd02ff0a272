"""Says which labels are off the scale of their criterion, by the config that measures it."""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.schemas.labels import Label
from traceweir.schemas.text import listed, printable
from traceweir.scorers.base import Scorer
from traceweir.scorers.databricks_names import full_name
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.evaluation.thresholds import in_words
from traceweir.scorers.judged.prompt_criterion import PromptCriterion
from traceweir.scorers.judged.scales import CategoryScale
from traceweir.scorers.judged.session_rating import SessionRating


def metric_of_label(label: Label, plan: Plan) -> Metric | None:
    """Returns the criterion of a label; None if the config does not measure it, as an outcome or a renamed criterion."""
    name = full_name(label.criterion)
    return next((each for each in plan.metrics if each.name == name), None)


def off_scale(label: Label, plan: Plan) -> str | None:
    """Returns why a label cannot be compared with the scores of its criterion; None if it can, or the config has none."""
    metric = metric_of_label(label, plan)
    if metric is None or metric.scorer is None:
        return None
    if label.value is not None:
        low, high = metric.scorer.value_range
        if not low <= label.value <= high:
            scale = f"{printable(metric.name, 100)}, a number {in_words(low, high)}"
            return f"value: {label.value:g} is off the scale of {scale}"
    if label.category is not None:
        categories = _categories(metric.scorer)
        if label.category not in categories:
            known = f"it has {listed(categories, 80, separator=', ')}" if categories else "it has none"
            return (
                f"category: {printable(label.category, 80)!r} is no category of {printable(metric.name, 100)}; {known}"
            )
    return None


def _categories(scorer: Scorer) -> Sequence[str]:
    """Returns the categories of a scorer: of its scale, if the config defines it, or of its own."""
    if isinstance(scorer, PromptCriterion):
        return sorted(scorer.scale.categories) if isinstance(scorer.scale, CategoryScale) else []
    return sorted(scorer.categories) if isinstance(scorer, SessionRating) else []
