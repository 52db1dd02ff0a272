"""Finds the judge models of a plan and their prices, and estimates tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from traceweir.schemas.judge_config import JudgeConfig
from traceweir.schemas.score import Cost
from traceweir.scorers.base import Scorer
from traceweir.scorers.evaluation.plan import Plan

BYTES_PER_TOKEN = 3
"""UTF-8 bytes per token, a low value so that estimates are rather too high. English has about four, Korean three."""
ANSWER_TOKENS = 250
"""Tokens of an answer, as an assumption: a short reasoning and a verdict."""
OVERHEAD_TOKENS = 16
"""Tokens that a provider adds around a prompt."""


class Use(NamedTuple):
    """The tokens and the USD of an attempt, a question or a period."""

    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: object) -> Use:
        """Returns the sum of both."""
        return Use(self.tokens + other.tokens, self.usd + other.usd) if isinstance(other, Use) else NotImplemented

    def __sub__(self, other: Use) -> Use:
        """Returns the difference, at least 0 in tokens and in USD."""
        return Use(max(0, self.tokens - other.tokens), max(0.0, self.usd - other.usd))


class Spent(NamedTuple):
    """What an attempt or a question has used, as the provider reports it, and its price."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    cached_input_tokens: int = 0
    """How many of the input tokens the provider had in its cache."""
    reasoning_tokens: int = 0
    """How many of the output tokens were reasoning."""

    def __add__(self, other: object) -> Spent:
        """Returns the sum of both."""
        if not isinstance(other, Spent):
            return NotImplemented
        return Spent(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.usd + other.usd,
            self.cached_input_tokens + other.cached_input_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )

    @property
    def use(self) -> Use:
        """What counts against a budget."""
        return Use(self.input_tokens + self.output_tokens, self.usd)

    @property
    def cost(self) -> Cost:
        """What a Score shows."""
        return Cost(**self._asdict())


def models_of(plan: Plan) -> list[str]:
    """Returns the names of the models that the criteria of a plan ask, fallbacks included, as the config writes them.

    >>> from traceweir.scorers.evaluation.plan import read_plan
    >>> models_of(read_plan({"criteria": {"response_match_score": 0.8, "hallucinations_v1": 0.9, "safety_v1": 0.8}}))
    ['gemini-2.5-flash']
    """
    asked = {model for metric in plan.metrics if metric.scorer and (model := metric.scorer.judge_model)}
    return sorted(asked.union(*(plan.judge.fallback.get(model, ()) for model in asked)))


def scorers_of(plan: Plan) -> list[Scorer]:
    """Returns the scorers of a plan."""
    return [metric.scorer for metric in plan.metrics if metric.scorer is not None]


def estimated_tokens(text: str) -> int:
    """Returns an estimate of the tokens of a text, which is rather too high than too low.

    A tokenizer would be more exact, but takes some milliseconds per prompt and differs from the provider's tokenizer.
    """
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN) + OVERHEAD_TOKENS


def price_of(config: JudgeConfig, model: str, known: Mapping[str, object]) -> tuple[float, float] | None:
    """Returns USD per input token and per output token; None if neither the config nor litellm has a price.

    Args:
        config: Config with prices (USD per million tokens), which take precedence.
        model: litellm's name of the model.
        known: litellm's information about the model.
    """
    if (price := config.prices.get(model)) is not None:
        return price.input / 1e6, price.output / 1e6
    found = known.get("input_cost_per_token"), known.get("output_cost_per_token")
    if isinstance(found[0], int | float) and isinstance(found[1], int | float):
        return float(found[0]), float(found[1])
    return None
