"""Finds litellm's name of a judge model, which has the provider before the name."""

from __future__ import annotations

from collections.abc import Mapping

FAMILIES = (
    ("gemini-", "gemini/"),
    ("gemma-", "gemini/"),
    ("claude-", "anthropic/"),
    ("gpt-", "openai/"),
    ("chatgpt-", "openai/"),
    ("o1", "openai/"),
    ("o3", "openai/"),
    ("o4", "openai/"),
    ("mistral-", "mistral/"),
    ("deepseek-", "deepseek/"),
)
"""The provider of a bare model name, by the prefix of the name.

Without this table litellm would route Gemini to Vertex AI, which needs a cloud account.
"""


def litellm_name(model: str, aliases: Mapping[str, str], api_base: str | None = None) -> str:
    """Returns litellm's name of a model.

    Args:
        model: The name that the criteria of the config use.
        aliases: The table of the config, which takes precedence.
        api_base: Address of a local server, if there is one; a model of unknown provider is taken from this server.

    >>> litellm_name("gemini-2.5-flash", {}), litellm_name("azure/mine", {}), litellm_name("qwen", {}, "http://127.0.0.1:8000/v1")
    ('gemini/gemini-2.5-flash', 'azure/mine', 'openai/qwen')
    >>> litellm_name("gemini-2.5-flash", {"gemini-2.5-flash": "openai/qwen"})
    'openai/qwen'
    """
    if model in aliases:
        return aliases[model]
    if "/" in model:
        return model
    for prefix, provider in FAMILIES:
        if model.startswith(prefix):
            return provider + model
    return f"openai/{model}" if api_base else model
