"""Finds out what is known of a model: its provider, its prices, and the forms of answers and prompts that it takes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from traceweir.schemas.judge_config import JudgeConfig
from traceweir.streams.scoring.judges.answer_formats import formats_of
from traceweir.streams.scoring.judges.errors import FinalFailure, Secrets
from traceweir.streams.scoring.judges.models import price_of
from traceweir.streams.scoring.judges.sampling import LITELLMS_PARAMETERS
from traceweir.streams.scoring.judges.secret_tag import TaggedPrompt

log = logging.getLogger(__name__)

FREE = (0.0, 0.0)
"""The price of a token of a model whose price is unknown, as those of input and output in USD."""
CACHE_WRITE = 1.25
"""What an input token costs that Claude's providers write to their cache, in input tokens."""


def load_model(litellm: Any, config: JudgeConfig, secrets: Secrets, name: str) -> AskedModel:
    """Returns what litellm and the config say of a model; logs a warning if its price is unknown.

    Args:
        litellm: The module.
        config: The judge section of the evaluation config.
        secrets: What is hidden in the log.
        name: litellm's name of the model.

    Raises:
        FinalFailure: the provider of the model is unknown.
    """
    try:
        provider = str(litellm.get_llm_provider(name)[1])
    except Exception:  # noqa: BLE001  # any error means that litellm does not know the provider of the model
        raise FinalFailure(
            f"the provider of the model {name!r} is unknown: use litellm's name (`openai/...`, `gemini/...`), map the name in the "
            "config's judge.models, or set TRACEWEIR_JUDGE_API_BASE to a server that serves the model"
        ) from None
    known: Mapping[str, object]
    try:
        known = litellm.get_model_info(name)
    except Exception:  # noqa: BLE001  # litellm does not know the model
        known = {}
    price = price_of(config, name, known)
    if price is None:
        is_refused = config.budget.unknown_price == "refuse"
        log.warning(
            "the price of %s is unknown, so %s: set the price in the config's judge.prices",
            secrets.hide(name),
            "a budget in USD lets no question to it pass, and without one its tokens count as 0 USD"
            if is_refused
            else "its tokens count as 0 USD and a budget in USD does not limit them",
        )
    no_schemas = known.get("supports_response_schema") is False and not litellm.supports_response_schema(name)
    formats = formats_of(config.structured_output, no_schemas=no_schemas)
    # litellm leaves out what it does not know for a provider, without a word.
    supported = litellm.get_supported_openai_params(name.removeprefix(f"{provider}/"), provider)
    left_out = {each for each in LITELLMS_PARAMETERS if supported and each not in supported}
    configured = config.prices.get(name)
    cached = None if configured is None else configured.cached_input
    found = price or FREE
    cached_price = found[0] if cached is None else cached / 1e6
    has_system = known.get("supports_system_messages") is not False
    # Anthropic's models cache a beginning only if it is marked; the other providers cache without a mark.
    is_marked = "claude" in name and (provider == "anthropic" or known.get("supports_prompt_caching") is True)
    return AskedModel(
        name,
        provider,
        formats,
        found,
        cached_price,
        price is not None,
        has_system,
        is_marked,
        set(),
        left_out,
        known,
    )


class AskedModel(NamedTuple):
    """A model with what is known of it, and what it has refused."""

    name: str
    provider: str
    formats: tuple[str, ...]
    """Forms of the answer that are tried before text."""
    price: tuple[float, float]
    cached_price: float
    has_price: bool
    has_system: bool
    """Whether the model takes a system message."""
    is_marked: bool
    """Whether its provider needs a mark at the end of what it is to cache."""
    refused: set[str]
    """Parameters that the model has refused."""
    left_out: set[str]
    """Sampling parameters that litellm does not send to the model's provider."""
    known: Mapping[str, object]
    """What litellm knows about the model; empty if it knows nothing."""

    def messages(self, prompt: TaggedPrompt) -> list[dict[str, Any]]:
        """Returns the messages of a prompt in the form that the model takes."""
        if not prompt.stable or not self.has_system:
            return [{"role": "user", "content": prompt.stable + prompt.session}]
        stable: Any = prompt.stable.rstrip()
        if self.is_marked:
            stable = [{"type": "text", "text": stable, "cache_control": {"type": "ephemeral"}}]
        return [{"role": "system", "content": stable}, {"role": "user", "content": prompt.session}]

    def usd(self, input_tokens: int, output_tokens: int, cached: int = 0, kept: int = 0) -> float:
        """Returns the price of an answer; `kept` input tokens were written to the provider's cache."""
        read = (input_tokens - cached + kept * (CACHE_WRITE - 1)) * self.price[0] + cached * self.cached_price
        return round(read + output_tokens * self.price[1], 12)
