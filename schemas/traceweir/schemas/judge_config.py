"""JudgeConfig: how the models that judge are asked, what they may cost, and how long their verdicts are remembered."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from traceweir.schemas.base import ConfigModel, NonEmpty

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=1)]
Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Price(ConfigModel):
    """What a model costs, in USD per million tokens."""

    input: Usd
    output: Usd


class Retries(ConfigModel):
    """When a model is asked again that was busy (429), failed (5xx) or did not answer in time. The defaults are Google ADK's."""

    attempts: Whole = 7
    """How often it is asked, the first time included."""
    initial_s: Positive = 5.0
    """Seconds before the second attempt; the pause is `base` times as long before each further one."""
    base: Annotated[float, Field(ge=1, le=10)] = 2.0
    max_s: Positive = 120.0
    """The longest pause in seconds. A provider that asks for a longer one (`Retry-After`) is not asked again."""
    jitter_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """Up to so many seconds, drawn anew each time, are added to a pause."""


class Breaker(ConfigModel):
    """When a model that keeps failing is left alone, so that nobody waits for it."""

    failures: Whole = 10
    """Failures in a row after which nothing is asked for a while: what a criterion asks then is NOT_EVALUATED `error` at once."""
    open_s: Positive = 30.0
    """For how many seconds; then one question tries, and the others wait for how it fares."""


class Budget(ConfigModel):
    """What judging may cost, at most; checked before each question. Minutes and days are those of UTC. Left out: no limit."""

    tokens_per_minute: Whole | None = None
    tokens_per_day: Whole | None = None
    usd_per_minute: Positive | None = None
    usd_per_day: Positive | None = None


class VerdictCache(ConfigModel):
    """How long, and how many, verdicts are remembered."""

    max_age_s: Positive = 30 * 86_400.0
    """Seconds after which a verdict is forgotten."""
    max_verdicts: Annotated[int, Field(ge=0, le=1_000_000)] = 10_000
    """The most that are remembered: in the state of each partition, and in the file of `traceweir score`. Beyond, the oldest go.
    0: none, so every replay pays again."""


class RetryLater(ConfigModel):
    """When a worker scores a session once more whose judge was down or its budget spent. What then has a value makes one more
    revision of the session's scores, and of its candidates if the gate requires a judged criterion."""

    after_s: Positive = 900.0
    """Seconds until then, and between two times."""
    attempts: Annotated[int, Field(ge=1, le=1_000_000)] = 96
    """How often, before the scores stay NOT_EVALUATED."""
    max_sessions: Annotated[int, Field(ge=1, le=10_000_000)] = 100_000
    """The most sessions of a partition that wait for it; beyond, the oldest stay as they are."""


class JudgeConfig(ConfigModel):
    """The models that judge."""

    models: dict[NonEmpty, NonEmpty] = {}
    """What litellm calls a model that the criteria name otherwise: `{"gemini-2.5-flash": "vertex_ai/gemini-2.5-flash"}`. It goes before
    the built-in rules (`gemini-*` is `gemini/gemini-*`, and so on)."""
    prices: dict[NonEmpty, Price] = {}
    """By litellm's name of the model. It goes before litellm's own prices; a model with neither counts as free, which the log says."""
    structured_output: Literal["auto", "always", "never"] = "auto"
    """Whether the JSON Schema of the answer goes with the question: `auto` where litellm knows that the model can keep to one."""
    timeout_s: Positive = 60.0
    """Seconds that one attempt may take, the whole answer included."""
    max_output_tokens: Whole = 8_192
    """The longest answer, which the model is told, and which is set aside of the budget while it is asked."""
    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Questions that are with the providers at the same time, of one process."""
    requests_per_minute: Whole | None = None
    """Above it, questions wait for their turn. Left out: no limit."""
    tokens_per_minute: Whole | None = None
    """Likewise, of a question's estimated tokens and those of its longest answer."""
    retries: Retries = Retries()
    breaker: Breaker = Breaker()
    budget: Budget = Budget()
    cache: VerdictCache = VerdictCache()
    retry_later: RetryLater | None = None
    """Left out: what was not evaluated stays so. Only workers do it; `traceweir score` and `traceweir eval` are simply run again."""

    @model_validator(mode="after")
    def _leaves_room_for_a_question(self) -> JudgeConfig:
        for place in ("tokens_per_minute", "tokens_per_day"):
            limit = getattr(self.budget, place)
            if limit is not None and limit <= self.max_output_tokens:
                raise ValueError(
                    f"budget.{place} is {limit}, but one answer may take max_output_tokens = {self.max_output_tokens}, so nothing could "
                    "ever be asked; raise the one or lower the other"
                )
        return self
