"""Finds entries of the judge section for models that no criterion asks: a name that is misspelled or of the other kind."""

from __future__ import annotations

from collections.abc import Iterator

from traceweir.schemas.model_names import litellm_name
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.spelling import did_you_mean
from traceweir.streams.scoring.judges.models import models_of

MAX_NAME_CHARACTERS = 200


def unused_names(plan: Plan, api_base: str | None = None) -> list[str]:
    """Returns a sentence for each model of `judge.window_tokens`, `judge.options` and `judge.models` that is not asked.

    Fallbacks are asked. Prices are not checked: the log names each asked model without one.

    Args:
        plan: The plan.
        api_base: The address of a server of one's own, which decides litellm's name of a model of unknown provider; None:
            both names of such a model count, because the workers can have an address.

    >>> from traceweir.scorers.evaluation.plan import read_plan
    >>> judge = {"window_tokens": {"gemini-2.5-flash": 32_768}}
    >>> unused_names(read_plan({"criteria": {"safety_v1": 0.8}, "judge": judge}))[0].partition(": ")[0]
    'judge.window_tokens.gemini-2.5-flash has no effect'
    """
    judged = [metric.scorer for metric in plan.metrics if metric.scorer is not None and metric.scorer.judged]
    # A scorer of a plugin can ask a model that it does not name.
    if any(scorer.judge_model is None for scorer in judged):
        return []
    return [*_sentences(plan, api_base)]


def _sentences(plan: Plan, api_base: str | None) -> Iterator[str]:
    models = models_of(plan)
    aliases = plan.judge.models
    full_names = {model: litellm_name(model, aliases, api_base or "a server") for model in models}
    own_names = {full: model for model, full in full_names.items()}
    if not api_base:
        own_names |= {litellm_name(model, aliases): model for model in models}
    of_criteria = "the name of the model in the criteria"
    of_litellm = "litellm's name of the model"
    for option, names, asked, other_kind, kind in (
        ("window_tokens", plan.judge.window_tokens, own_names, full_names, of_litellm),
        ("options", plan.judge.options, full_names, own_names, of_criteria),
        ("models", aliases, full_names, own_names, of_criteria),
    ):
        for name in names:
            if name not in asked:
                known = ", ".join(asked) or "none"
                meant = f"did you mean {other_kind[name]!r}? Known: {known}" if name in other_kind else None
                shown = printable(name, MAX_NAME_CHARACTERS)
                yield (
                    f"judge.{option}.{shown} has no effect: no criterion asks this model, and the key is {kind}; "
                    f"{meant or did_you_mean(name, asked)}"
                )
