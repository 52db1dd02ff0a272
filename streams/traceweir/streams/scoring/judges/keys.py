"""Tells which judges of a config have no key in the environment, without the client of the judges."""

from __future__ import annotations

from collections.abc import Mapping

from traceweir.schemas.model_names import litellm_name
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.scoring.judges.models import models_of

KEYS: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY", "OPENAI_IDENTITY_TOKEN_FILE"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "azure": (
        "AZURE_API_KEY",
        "AZURE_OPENAI_API_KEY",
        "AZURE_AD_TOKEN",
        "AZURE_CLIENT_ID",
        "AZURE_FEDERATED_TOKEN_FILE",
    ),
    "mistral": ("MISTRAL_API_KEY", "MISTRAL_AZURE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "cohere_chat": ("COHERE_API_KEY", "CO_API_KEY"),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_TOKEN"),
    "xai": ("XAI_API_KEY",),
}
"""The variables in which litellm looks for the key of a provider, or for a token in place of it; one is enough.

Providers that are not listed can have other credentials, such as those of a machine, and nothing is said of them.
"""


def without_key(
    plan: Plan, environment: Mapping[str, str], *, has_key: bool, api_base: str | None = None
) -> dict[str, str]:
    """Returns the judges of a plan without a key, each with the variables of which one must be set.

    Args:
        plan: The plan.
        environment: The variables of the environment.
        has_key: Whether the settings have a key, which counts for all judges.
        api_base: The address of a server of one's own. It needs no key where the provider of the model is `openai`.

    >>> from traceweir.scorers.evaluation.plan import read_plan
    >>> without_key(read_plan({"criteria": {"safety_v1": 0.8}}), {}, has_key=False)
    {'gemini-2.5-flash': 'GEMINI_API_KEY or GOOGLE_API_KEY or TRACEWEIR_JUDGE_API_KEY'}
    """
    if has_key:
        return {}
    found = {}
    for model in models_of(plan):
        provider = litellm_name(model, plan.judge.models, api_base).partition("/")[0]
        if api_base and provider == "openai":
            continue
        names = KEYS.get(provider, ())
        if names and not any(environment.get(name) for name in names):
            found[model] = " or ".join([*names, "TRACEWEIR_JUDGE_API_KEY"])
    return found
