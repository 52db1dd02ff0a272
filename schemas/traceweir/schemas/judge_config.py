"""Defines JudgeConfig: how judge models are called, their budget, and the storage of their verdicts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from traceweir.schemas.base import ConfigModel, JsonObject, NonEmpty
from traceweir.schemas.model_names import litellm_name
from traceweir.schemas.sampling import Sampling

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=1)]
Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Price(ConfigModel):
    """The price of a model, in USD per million tokens."""

    input: Usd
    """USD per million input tokens, at least 0."""
    output: Usd
    """USD per million output tokens, at least 0."""
    cached_input: Usd | None = None
    """USD per million input tokens that the provider had in its cache; null: the price of all input tokens."""


class Retries(ConfigModel):
    """Retries after a model was busy (429), failed (5xx) or timed out. The defaults are Google ADK's."""

    attempts: Whole = 7
    """Maximum number of attempts, including the first."""
    initial_s: Positive = 5.0
    """Seconds before the second attempt; each further pause is `base` times as long."""
    base: Annotated[float, Field(ge=1, le=10)] = 2.0
    """Factor by which each pause is longer than the one before, from 1 to 10."""
    max_s: Positive = 120.0
    """Maximum pause in seconds. If a provider requests a longer pause (`Retry-After`), there is no further attempt."""
    jitter_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """Maximum random number of seconds added to each pause."""


class Breaker(ConfigModel):
    """Circuit breaker: a model that is down is not called for a while, so that no session waits for it.

    It opens by the share of failed attempts, so it stays closed while a slow model answers some of its questions.
    """

    failures: Whole = 10
    """Failed attempts that open the circuit, if they are `failure_rate` of the attempts of the last `window_s` seconds.

    The criteria of the model are then NOT_EVALUATED `error` at once.
    """
    failure_rate: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Smallest share of failed attempts that opens the circuit, above 0 and at most 1."""
    window_s: Positive = 60.0
    """Seconds of the attempts that are counted; the last `failures` attempts count however old they are."""
    open_s: Positive = 30.0
    """Seconds for which the circuit stays open; then a single question probes the model, and the others fail at once."""


class BudgetLimits(ConfigModel):
    """Limits of the cost of judging, checked before each question. No limits by default. Minutes and days are UTC."""

    tokens_per_minute: Whole | None = None
    """Maximum number of tokens in a minute."""
    tokens_per_day: Whole | None = None
    """Maximum number of tokens in a day."""
    usd_per_minute: Positive | None = None
    """Maximum USD in a minute, above 0."""
    usd_per_day: Positive | None = None
    """Maximum USD in a day, above 0."""
    usd: Positive | None = None
    """Maximum USD in all since the state of the workers began, above 0; `traceweir shadow --budget` sets it."""


class Budget(BudgetLimits):
    """Limits of the cost of judging for all questions, for those of an app, and for those of a metric.

    A question has to fit all limits that hold for it.
    """

    apps: dict[NonEmpty, BudgetLimits] = {}
    """Limits of an app, by its `app_name`. They count from the config on that has them; `usd` too."""
    metrics: dict[NonEmpty, BudgetLimits] = {}
    """Limits of a judged metric, by its full or short name. They count from the config on that has them; `usd` too."""
    unknown_price: Literal["count_tokens", "refuse"] = "count_tokens"
    """What a limit in USD does with a model without a price.

    With `count_tokens` its tokens cost 0 USD, so that only limits in tokens hold. With `refuse` a limit in USD lets no
    question to it pass: the scores are NOT_EVALUATED `budget`.
    """


class VerdictCache(ConfigModel):
    """Storage of verdicts."""

    max_age_s: Positive = 30 * 86_400.0
    """Seconds after which a stored verdict expires."""
    max_verdicts: Annotated[int, Field(ge=0, le=1_000_000)] = 10_000
    """Maximum number of stored verdicts, in the state of each partition and in the file of `traceweir score`.

    Beyond this number the oldest verdicts are dropped. With 0 no verdict is stored, and every replay asks the judge
    again.
    """


class RetryLater(ConfigModel):
    """Retries of whole sessions whose judge was unavailable or whose budget was spent.

    If a retry results in a value, the worker publishes the scores of the session's revision again under the next
    attempt number, and its candidates too if the gate requires a judged criterion.
    """

    after_s: Positive = 900.0
    """Seconds before the first retry, and between retries."""
    attempts: Annotated[int, Field(ge=1, le=1_000_000)] = 96
    """Maximum number of retries; the scores then stay NOT_EVALUATED."""
    max_sessions: Annotated[int, Field(ge=1, le=10_000_000)] = 100_000
    """Maximum number of sessions of a partition that wait for a retry; beyond it, the oldest are not retried."""


class JudgeConfig(ConfigModel):
    """The judge models."""

    models: dict[NonEmpty, NonEmpty] = {}
    """litellm's names of the models in the criteria, such as `{"gemini-2.5-flash": "vertex_ai/gemini-2.5-flash"}`.

    These names take precedence over the built-in rules (`gemini-*` is `gemini/gemini-*`, and so on).
    """
    fallback: dict[NonEmpty, Annotated[list[NonEmpty], Field(min_length=1, max_length=10)]] = {}
    """Models that are asked, in order, when a model of the criteria is unavailable: `{"gemini-2.5-flash": ["gpt-4o-mini"]}`.

    They are never asked because of a verdict, a refusal of the question or a spent budget. The Score names the model that
    answered in `judge`.
    """
    prices: dict[NonEmpty, Price] = {}
    """Prices by litellm's name of the model; they take precedence over litellm's prices.

    A model without any price counts as free, and a log line reports it.
    """
    window_tokens: dict[NonEmpty, Whole] = {}
    """Tokens of a question and its longest answer, by litellm's name of the model; they take precedence over litellm's.

    A question that does not fit is never sent. Set it for a server of your own, of which litellm knows no window. The
    window decides what a judge reads of a long session, so it is part of the result ids of the criteria that ask the model.
    """
    structured_output: Literal["auto", "always", "never"] = "auto"
    """Whether a question contains the JSON Schema of its answer.

    With `auto`, it does unless litellm reports that the model takes none. A model that refuses the schema is asked for any
    JSON object, then for text. With `always`, a refusal is a failure.
    """
    options: dict[NonEmpty, Sampling] = {}
    """Sampling parameters by name of the model, as the criteria write it: `{"gemini-2.5-flash": {"temperature": 0}}`.

    `judge_model_config` of a criterion takes precedence. They are part of the result ids.
    """
    timeout_s: Positive = 60.0
    """Seconds that one attempt can take, until the end of the answer."""
    max_output_tokens: Whole = 8_192
    """Maximum length of an answer, sent to the model; the budget reserves this number of tokens during a question."""
    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Maximum number of questions of one process in flight.

    The number for each model adapts below it: answers raise it, timeouts and the status 429 halve it. Further questions
    wait, outside of `timeout_s`.
    """
    requests_per_minute: Whole | None = None
    """Maximum number of requests per minute; further questions wait. No limit by default."""
    tokens_per_minute: Whole | None = None
    """Maximum number of tokens per minute, where a question counts its estimated tokens and the longest answer.

    Further questions wait. No limit by default.
    """
    retries: Retries = Retries()
    """Retries of a single question."""
    repairs: Annotated[int, Field(ge=0, le=10)] = 2
    """How often a question is asked again whose answer contains no verdict, with what the answer lacks.

    An answer without a verdict is never stored.
    """
    check: Literal["off", "warn", "require"] = "off"
    """Whether a judge is asked about the known cases of a criterion before its first question.

    A judge that passes a case that must fail, or has less than three of four right, is unfit. With `warn`, a log line and
    a metric say so. With `require`, sessions wait for the check, and the scores of an unfit judge are NOT_EVALUATED.
    """
    breaker: Breaker = Breaker()
    """When a failing model is not called for a while."""
    budget: Budget = Budget()
    """Limits of the cost."""
    cache: VerdictCache = VerdictCache()
    """Storage of verdicts, so that no question is asked twice."""
    retry_later: RetryLater | None = None
    """Retries of sessions by workers; without this section, such scores stay NOT_EVALUATED.

    `traceweir score` and `traceweir eval` do not retry; run the command again.
    """

    def sampling_of(self, model: str) -> JsonObject:
        """Returns the sampling parameters of a model, as the criteria write its name; empty if none is set."""
        return self.options[model].sent() if model in self.options else {}

    def windows_of(self, *models: str) -> JsonObject:
        """Returns the entries of `window_tokens` for models, as the criteria write their names.

        >>> JudgeConfig(window_tokens={"openai/qwen": 32_768, "azure/qwen": 65_536}).windows_of("qwen")
        {'openai/qwen': 32768}
        """
        # The environment decides whether a bare name is asked at a server of one's own, and a digest is equal everywhere.
        names = {litellm_name(model, self.models, base) for model in models for base in (None, "a server")}
        return {model: tokens for model, tokens in self.window_tokens.items() if model in names}

    @model_validator(mode="after")
    def _check_fallback_names_other_models(self) -> JudgeConfig:
        for model, others in self.fallback.items():
            named = [model, *others]
            twice = next((each for each in named if named.count(each) > 1), None)
            if twice is not None:
                raise ValueError(f"fallback.{model} asks {twice} twice; name each model once, without {model} itself")
        return self

    @model_validator(mode="after")
    def _check_window_leaves_room(self) -> JudgeConfig:
        for model, window in self.window_tokens.items():
            if window <= self.max_output_tokens:
                raise ValueError(
                    f"window_tokens.{model} is {window}, but an answer can take max_output_tokens = "
                    f"{self.max_output_tokens}, so no question would fit; reduce max_output_tokens"
                )
        return self

    @model_validator(mode="after")
    def _check_budget_allows_a_question(self) -> JudgeConfig:
        places: dict[str, BudgetLimits] = {"budget": self.budget}
        places |= {f"budget.apps.{name}": limits for name, limits in self.budget.apps.items()}
        places |= {f"budget.metrics.{name}": limits for name, limits in self.budget.metrics.items()}
        for place, limits in places.items():
            for name in ("tokens_per_minute", "tokens_per_day"):
                limit = getattr(limits, name)
                if limit is not None and limit <= self.max_output_tokens:
                    raise ValueError(
                        f"{place}.{name} is {limit}, but an answer can take max_output_tokens = {self.max_output_tokens}, "
                        f"so the budget would allow no question; increase {place}.{name} or reduce max_output_tokens"
                    )
        return self
