"""What the models that judge are called, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from traceweir.schemas.judge_config import JudgeConfig

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
"""Whose a bare name is, by how it begins. Without, litellm would take Gemini's to be Vertex AI's, which needs a cloud account."""
BYTES_A_TOKEN = 3
"""Of UTF-8. English has about four, Korean about three: a question is rather taken for larger than it is."""
OVERHEAD = 16
"""Tokens that a provider adds around a prompt."""


class Use(NamedTuple):
    """What something took."""

    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: object) -> Use:
        """Both together."""
        return Use(self.tokens + other.tokens, self.usd + other.usd) if isinstance(other, Use) else NotImplemented

    def __sub__(self, other: Use) -> Use:
        """Without the other, and never less than nothing."""
        return Use(max(0, self.tokens - other.tokens), max(0.0, self.usd - other.usd))


def litellm_name(model: str, aliases: Mapping[str, str], api_base: str | None = None) -> str:
    """What litellm calls a model.

    Args:
        model: As the config's criteria name it.
        aliases: The config's own table, which goes first.
        api_base: Where a local server listens, if there is one: it has every model that is nobody else's.

    >>> litellm_name("gemini-2.5-flash", {}), litellm_name("azure/mine", {}), litellm_name("qwen", {}, "http://127.0.0.1:8000/v1")
    ('gemini/gemini-2.5-flash', 'azure/mine', 'openai/qwen')
    >>> litellm_name("gemini-2.5-flash", {"gemini-2.5-flash": "openai/qwen"})
    'openai/qwen'
    """
    if model in aliases:
        return aliases[model]
    if "/" in model:
        return model
    for beginning, provider in FAMILIES:
        if model.startswith(beginning):
            return provider + model
    return f"openai/{model}" if api_base else model


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, rather too many than too few.

    A tokenizer would be nearer, take some milliseconds a prompt, and still be another than the provider's.
    """
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN) + OVERHEAD


def price_of(config: JudgeConfig, model: str, known: Mapping[str, object]) -> tuple[float, float] | None:
    """USD per token of input and of output; None if nobody knows.

    Args:
        config: Whose prices go first.
        model: litellm's name.
        known: What litellm knows of the model.
    """
    if (price := config.prices.get(model)) is not None:
        return price.input / 1e6, price.output / 1e6
    found = known.get("input_cost_per_token"), known.get("output_cost_per_token")
    if isinstance(found[0], int | float) and isinstance(found[1], int | float):
        return float(found[0]), float(found[1])
    return None
