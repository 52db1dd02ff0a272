"""Checks the models: the embedder, and the judges of a config with their keys."""

from __future__ import annotations

import os
from collections.abc import Iterator

from traceweir.schemas.model_names import litellm_name
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.scoring.embedders.loading import DEFAULT_MODEL, EmbedderUnavailableError, load_embedder
from traceweir.streams.scoring.judges.errors import JudgeUnavailableError
from traceweir.streams.scoring.judges.litellm_setup import load_litellm
from traceweir.streams.scoring.judges.models import models_of
from traceweir.streams.tools.doctor.finding import Finding


def check_models(settings: Settings, plan: Plan) -> Iterator[Finding]:
    """Yields what is found about the embedder and the judges. No model is asked, so nothing is paid."""
    yield _embedder(settings.embedder)
    if not plan.judged:
        yield Finding("judges", "not checked", "no criterion asks a judge")
        return
    try:
        load_litellm()
    except JudgeUnavailableError as error:
        yield Finding("judges", "failure", str(error))
        return
    for model in models_of(plan):
        yield _judge(settings, litellm_name(model, plan.judge.models, settings.judge_api_base))


def _embedder(name: str) -> Finding:
    try:
        embedder = load_embedder(name)
    except EmbedderUnavailableError as error:
        return Finding("embedder", "failure", str(error))
    if embedder is None and name == "auto":
        return Finding(
            "embedder", "warning",
            f"{DEFAULT_MODEL} is not on this machine, so that novelty is 0.5 for every trace: install the extra "
            "[embeddings] and the model, or set TRACEWEIR_EMBEDDER=hashing, or =none if novelty does not matter",
        )  # fmt: skip
    return Finding("embedder", "ok", embedder.id if embedder is not None else "none: novelty is 0.5 for every trace")


def _judge(settings: Settings, model: str) -> Finding:
    if settings.judge_api_key is not None:
        return Finding("judges", "ok", f"{model}: TRACEWEIR_JUDGE_API_KEY is set (not shown, and not tried)")
    if settings.judge_api_base is not None and not os.environ.get("OPENAI_API_KEY"):
        return Finding("judges", "ok", f"{model}: without a key, at TRACEWEIR_JUDGE_API_BASE (not tried)")
    found = load_litellm().validate_environment(model)
    if found["keys_in_environment"]:
        return Finding("judges", "ok", f"{model}: the key is in the environment (not shown, and not tried)")
    missing = " or ".join(found["missing_keys"]) or "the key of its provider"
    return Finding(
        "judges", "failure",
        f"{model} has no key: set {missing} or TRACEWEIR_JUDGE_API_KEY; until then its criteria are NOT_EVALUATED",
    )  # fmt: skip
