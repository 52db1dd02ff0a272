"""Defines the sampling parameters of judges, in litellm's names and in those of Google ADK."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from traceweir.schemas.base import ConfigModel, JsonObject, NonEmpty

Temperature = Annotated[float, Field(ge=0, le=2)]
Share = Annotated[float, Field(ge=0, le=1)]
Penalty = Annotated[float, Field(ge=-2, le=2)]
Whole = Annotated[int, Field(ge=1)]


class Sampling(ConfigModel):
    """Parameters of a question, in litellm's names. None: not sent."""

    temperature: Temperature | None = None
    """From 0 to 2. 0: the most probable answer."""
    top_p: Share | None = None
    """Share of the probability from which tokens are drawn, from 0 to 1."""
    top_k: Whole | None = None
    """Number of the most probable tokens from which one is drawn."""
    seed: int | None = None
    """Seed of the draws."""
    max_tokens: Whole | None = None
    """Maximum length of an answer in tokens; `max_output_tokens` of the judge section limits it."""
    stop: list[NonEmpty] | None = None
    """Texts that end an answer."""
    presence_penalty: Penalty | None = None
    """From -2 to 2."""
    frequency_penalty: Penalty | None = None
    """From -2 to 2."""
    reasoning_effort: NonEmpty | None = None
    """How long a model reasons before it answers: `low`, `medium`, `high`, or another word of its provider."""
    thinking: JsonObject | None = None
    """Budget of reasoning, such as `{"type": "enabled", "budget_tokens": 1024}`."""

    def sent(self) -> JsonObject:
        """Returns the parameters that are set.

        >>> Sampling(temperature=0, stop=["END"]).sent()
        {'temperature': 0.0, 'stop': ['END']}
        """
        return self.model_dump(mode="json", exclude_none=True)


class _AdkConfig(ConfigModel):
    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, config: object) -> object:
        # ADK writes null for each field that is not set, also for those that have no meaning here.
        return (
            {key: value for key, value in config.items() if value is not None} if isinstance(config, dict) else config
        )


class ThinkingConfig(_AdkConfig):
    """Holds `thinking_config` of ADK."""

    thinking_budget: Annotated[int, Field(ge=-1)] | None = None
    """Tokens of reasoning; 0: none, -1: the model decides."""
    thinking_level: NonEmpty | None = None
    """`LOW`, `MEDIUM` or `HIGH`."""


class JudgeModelConfig(_AdkConfig):
    """Holds `judge_model_config` of ADK: the part of Google's `GenerateContentConfig` for which litellm has names."""

    temperature: Temperature | None = None
    top_p: Share | None = None
    top_k: Annotated[float, Field(ge=1)] | None = None
    seed: int | None = None
    max_output_tokens: Whole | None = None
    stop_sequences: list[NonEmpty] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    thinking_config: ThinkingConfig | None = None

    def sampling(self) -> Sampling:
        """Returns the parameters in litellm's names.

        >>> JudgeModelConfig(maxOutputTokens=900, thinkingConfig={"thinkingBudget": 128}).sampling().sent()
        {'max_tokens': 900, 'thinking': {'type': 'enabled', 'budget_tokens': 128}}
        """
        thinking = self.thinking_config or ThinkingConfig()
        budget = thinking.thinking_budget
        return Sampling(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=None if self.top_k is None else round(self.top_k),
            seed=self.seed,
            max_tokens=self.max_output_tokens,
            stop=self.stop_sequences,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            reasoning_effort=thinking.thinking_level.lower() if thinking.thinking_level else None,
            thinking=None if budget is None else {"type": "enabled", "budget_tokens": budget},
        )
