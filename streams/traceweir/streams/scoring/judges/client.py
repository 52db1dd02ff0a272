"""Sends one question to a model, through litellm, which has a client for each provider."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import JsonValue, SecretStr

from traceweir.schemas.judge_config import JudgeConfig
from traceweir.schemas.model_names import litellm_name
from traceweir.schemas.score import Cause
from traceweir.scorers.judge import Question, Room
from traceweir.streams.base.clock import utc_now
from traceweir.streams.scoring.judges.answer_formats import (
    first_format,
    is_format_refused,
    parameter_of,
    response_format,
)
from traceweir.streams.scoring.judges.asked_model import FREE, AskedModel, load_model
from traceweir.streams.scoring.judges.endings import Stopped, count, why_stopped
from traceweir.streams.scoring.judges.errors import FinalFailure, Secrets, Transient
from traceweir.streams.scoring.judges.http_limits import (
    AnswerTooLargeError,
    HttpExchange,
    LimitError,
    RedirectError,
    connection_problem,
    limit_error,
    limited_http,
)
from traceweir.streams.scoring.judges.instrumentation import trace_headers, uninstrumented
from traceweir.streams.scoring.judges.litellm_setup import ignore_litellms_warnings, load_litellm
from traceweir.streams.scoring.judges.missing_key import is_refused_here, missing_key
from traceweir.streams.scoring.judges.models import ANSWER_TOKENS, Spent, Use, estimated_tokens
from traceweir.streams.scoring.judges.refusals import refusal
from traceweir.streams.scoring.judges.sampling import (
    RefusedParameter,
    refused_parameter,
    sampling_for,
)
from traceweir.streams.scoring.judges.secret_tag import SecretTags, TaggedPrompt, usable_key
from traceweir.streams.scoring.judges.windows import longest_prompt, room_in

# The scoring process reads no settings, and starts earlier without the import.
if TYPE_CHECKING:
    from traceweir.streams.base.settings import Settings

log = logging.getLogger(__name__)

BUSY = 429
TIMED_OUT = 408
NO_KEY = "no-key"
"""The API key sent to a local server that needs no key: the client of OpenAI's API refuses an empty key."""
_TRANSIENT = {TIMED_OUT, BUSY}
_UNAUTHORIZED = {401, 403}
_FAIL_EVERY_QUESTION = {401, 403, 404}
"""HTTP statuses that every other question would get too."""


@dataclass(frozen=True, slots=True)
class Access:
    """The address of the judges' API, and its key.

    None: the provider in the model's name, with the environment variables of that provider.
    """

    api_base: str | None = None
    api_key: SecretStr | None = None
    tag_key: SecretStr | None = None
    """Key of the secret tag in prompts; None: the API key."""

    @classmethod
    def of(cls, settings: Settings) -> Access:
        """Returns the access that the settings describe."""
        return cls(settings.judge_api_base, settings.judge_api_key, settings.judge_tag_key)

    @property
    def address(self) -> str:
        """The address for a person: without path and query, which can contain a key."""
        if self.api_base is None:
            return "the address of its provider"
        parts = urlsplit(self.api_base)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class Answered(NamedTuple):
    """The answer of a model, with what it has cost."""

    text: str
    spent: Spent


class JudgeClient:
    """Asks models, one attempt per call.

    Args:
        config: Timeout, limits, prices and names of the models.
        access: Address and key of the API.

    Raises:
        JudgeUnavailableError: litellm is not installed.
    """

    def __init__(self, config: JudgeConfig, access: Access) -> None:
        self._litellm = load_litellm()
        # For each client: pytest resets the warning filters after each test.
        ignore_litellms_warnings()
        self._config = config
        self._access = access
        self._key = access.api_key.get_secret_value() if access.api_key else None
        self.secrets = Secrets.of_environment(*([self._key] if self._key else []))
        self._tags = SecretTags(access.tag_key.get_secret_value() if access.tag_key else usable_key(self._key))
        self._models: dict[str, AskedModel] = {}

    def name_of(self, model: str) -> str:
        """Returns litellm's name of a model."""
        return litellm_name(model, self._config.models, self._access.api_base)

    def has_price(self, question: Question) -> bool:
        """Returns whether the model of a question has a price."""
        return self._model(self.name_of(question.model)).has_price

    def upper_bounds(self, question: Question) -> tuple[Use, Use]:
        """Returns upper bounds for a question: the use of its prompt alone, and with the longest answer."""
        model = self._model(self.name_of(question.model))
        prompt = estimated_tokens(question.prompt)
        longest = self._config.max_output_tokens
        # The whole prompt can go into a cache that has a price of its own.
        kept = prompt if model.is_marked and question.stable_characters else 0
        return (
            Use(prompt, model.usd(prompt, 0, kept=kept)),
            Use(prompt + longest, model.usd(prompt, longest, kept=kept)),
        )

    async def room(self, question: Question) -> Room | None:
        """Returns how much of the window of its model a question takes; None if the window is unknown.

        Raises:
            FinalFailure: the provider of the model is unknown.
        """
        name = self.name_of(question.model)
        longest = sampling_for(question, self._config, ()).get("max_tokens")
        answer = longest if isinstance(longest, int) else self._config.max_output_tokens
        limit = longest_prompt(self._config, name, self._model(name).known, answer)
        return None if limit is None else await room_in(self._litellm, name, question.prompt, limit)

    def estimate(self, question: Question) -> Use:
        """Returns the use of a question with an answer of usual length; a model without a price is free."""
        model = self._model(self.name_of(question.model))
        prompt = estimated_tokens(question.prompt)
        return Use(prompt + ANSWER_TOKENS, model.usd(prompt, ANSWER_TOKENS))

    def messages(self, question: Question) -> list[dict[str, Any]]:
        """Returns the messages that are sent for a question, with the secret tag in them."""
        model = self._model(self.name_of(question.model))
        return model.messages(self._tags.tagged(question, model.provider))

    async def ask(self, question: Question) -> Answered:
        """Asks the model of the question once, or again without a parameter that the model refuses.

        Raises:
            Transient: a later attempt can succeed.
            FinalFailure: every other attempt would fail too.
        """
        while True:
            model = self._model(self.name_of(question.model))
            sampling = sampling_for(question, self._config, model.refused)
            if left_out := model.left_out & sampling.keys():
                self._note_refused(model, *sorted(left_out))
                continue
            kind = first_format(model.formats, model.refused) if question.answer is not None else None
            try:
                return await self._ask(model, question, sampling, kind)
            except RefusedParameter as refused:
                self._note_refused(model, refused.name)

    def _note_refused(self, model: AskedModel, *names: str) -> None:
        for name in names:
            # Another question can have been refused at the same time.
            if name in model.refused:
                continue
            log.warning(
                "%s refuses the parameter %s: it is not sent to this model any more",
                self.secrets.hide(model.name),
                name,
            )
            model.refused.add(name)

    async def _ask(
        self, model: AskedModel, question: Question, sampling: Mapping[str, JsonValue], kind: str | None
    ) -> Answered:
        prompt = self._tags.tagged(question, model.provider)
        limit_s = self._config.timeout_s
        try:
            # litellm's own timeout is per read, so a slow stream never reaches it.
            async with asyncio.timeout(limit_s) as limit:
                with limited_http() as exchange, uninstrumented():
                    response = await self._litellm.acompletion(**self._options(model, question, kind), **sampling)
        except (Exception, asyncio.CancelledError) as error:
            if limit.expired():
                why = f"{model.name} sent no complete answer within {limit_s:g} s"
                raise Transient(why, unknown=True, overloaded=True) from None
            if isinstance(error, asyncio.CancelledError):
                raise
            if (refused := limit_error(error)) is not None:
                raise self._refused(model.name, refused) from None
            if (problem := connection_problem(error)) is not None:
                message = f"{model.name}: {self.secrets.hide(f'no connection to {self._access.address}: {problem}')}"
                # A server of one's own can need no key.
                if not self._has_own_server(model) and (lacking := missing_key(self._litellm, model.name, exchange)):
                    raise FinalFailure(_asking_for_key(message, lacking), down=True) from None
                raise Transient(message, unreachable=True) from None
            about_text = (self._litellm.ContextWindowExceededError, self._litellm.ContentPolicyViolationError)
            if not isinstance(error, about_text):
                if (name := refused_parameter(error, sampling)) is not None:
                    raise RefusedParameter(name) from None
                is_required = self._config.structured_output == "always"
                if kind and not is_required and is_format_refused(error, exchange.body, prompt.stable + prompt.session):
                    raise RefusedParameter(parameter_of(kind)) from None
            # The cause quotes the request.
            raise self._classify(model.name, prompt, error, exchange) from None
        return self._read_answer(model, question, prompt, response, sampling["max_tokens"])

    def _options(self, model: AskedModel, question: Question, kind: str | None) -> dict[str, Any]:
        options: dict[str, Any] = {
            "model": model.name,
            "messages": self.messages(question),
            "timeout": self._config.timeout_s,
            "num_retries": 0,
            "max_retries": 0,
            # Keeps the question from litellm's callbacks.
            "no-log": True,
        }
        headers = {}
        if self._access.api_base:
            options["api_base"] = self._access.api_base
            headers = trace_headers()
        key = self._key
        if (
            key is None
            and self._access.api_base
            and model.provider == "openai"
            and not os.environ.get("OPENAI_API_KEY")
        ):
            key = NO_KEY
        if key is not None:
            options["api_key"] = key
        if model.provider == "openai" and (organization := os.environ.get("OPENAI_ORGANIZATION")):
            # litellm's client for all providers does not send this header itself.
            headers["OpenAI-Organization"] = organization
        if headers:
            options["extra_headers"] = headers
        return options | response_format(question, kind)

    def _read_answer(
        self, model: AskedModel, question: Question, prompt: TaggedPrompt, response: Any, longest: object
    ) -> Answered:
        choices = getattr(response, "choices", None) or ()
        message = getattr(choices[0], "message", None) if choices else None
        text = getattr(message, "content", None)
        text = prompt.masked(text) if isinstance(text, str) else ""
        usage = getattr(response, "usage", None)
        spent = self._spent(model, question, text, usage)
        # A verdict that the model gave before it was stopped is one.
        if not text.strip() or question.problem(text) is not None:
            stopped = getattr(choices[0], "finish_reason", None) if choices else None
            is_own = longest == self._config.max_output_tokens
            setting = "judge.max_output_tokens" if is_own else "the limit of the criterion or of judge.options"
            ending = why_stopped(stopped, message, usage, spent.output_tokens, longest, setting)
            if ending is None and not text.strip():
                ending = Stopped("sent an answer without text" if choices else "sent no choices", "judge_unparsable")
            if ending is not None:
                raise FinalFailure(f"{model.name} {ending.why}", used=spent, cause=ending.cause)
        return Answered(self.secrets.known(text), spent)

    def _spent(self, model: AskedModel, question: Question, text: str, usage: Any) -> Spent:
        read = count(usage, "prompt_tokens")
        written = count(usage, "completion_tokens")
        # Some servers count only the other kind of tokens, or none. A filter can leave no token of an answer.
        is_complete = read > 0 and (written > 0 or not text)
        read = read or estimated_tokens(question.prompt)
        if text:
            written = written or estimated_tokens(text)
        details = getattr(usage, "prompt_tokens_details", None)
        cached = min(read, count(details, "cached_tokens"))
        kept = min(read - cached, count(details, "cache_creation_tokens")) if model.is_marked else 0
        reasoning = min(written, count(getattr(usage, "completion_tokens_details", None), "reasoning_tokens"))
        usd = model.usd(read, written, cached, kept)
        if is_complete and model.name not in self._config.prices and model.price != FREE:
            # litellm knows which of the tokens have a price of their own: cached ones, reasoning, those of a long prompt.
            usd = round(sum(self._litellm.cost_per_token(model=model.name, usage_object=usage)), 12)
        return Spent(read, written, usd, cached, reasoning)

    def _refused(self, model: str, error: LimitError) -> FinalFailure:
        message = f"{model}: {self.secrets.hide(str(error))}"
        if isinstance(error, RedirectError):
            return FinalFailure(message, down=True)
        is_too_large = isinstance(error, AnswerTooLargeError)
        return FinalFailure(message, down=not is_too_large, unknown=is_too_large, cause="judge_unparsable")

    def _classify(
        self, model: str, prompt: TaggedPrompt, error: Exception, exchange: HttpExchange
    ) -> Transient | FinalFailure:
        status = getattr(error, "status_code", None)
        # For a missing key or an answer of an unexpected shape, litellm appends a whole traceback to the message.
        text = str(error).removeprefix("litellm.").partition("Traceback (most recent call last)")[0].rstrip()
        message = f"{model}: {self.secrets.hide(prompt.masked(text)) or type(error).__name__}"
        headers = exchange.headers if exchange.headers is not None else getattr(error, "litellm_response_headers", None)
        refused = refusal(headers, exchange.body, utc_now(), status if isinstance(status, int) else None)
        if refused.is_too_long or isinstance(error, self._litellm.ContextWindowExceededError):
            way_out = (
                "the question and the longest answer do not fit into the model: ask a model with a longer context, or "
                "lower judge.max_output_tokens"
            )
            return FinalFailure(f"{message}; {way_out}", cause="too_long")
        if refused.is_filtered or isinstance(error, self._litellm.ContentPolicyViolationError):
            way_out = "the provider's filter refused the question: loosen the filter of the judge, or ask another model"
            return FinalFailure(f"{message}; {way_out}", cause="judge_refused")
        if not isinstance(status, int):
            return FinalFailure(message)
        is_not_sent = is_refused_here(error, status, exchange)
        if status in _UNAUTHORIZED or is_not_sent:
            lacking = missing_key(self._litellm, model, exchange)
            if lacking or is_not_sent:
                return FinalFailure(_asking_for_key(message, lacking), down=True)
        if refused.is_spent:
            return FinalFailure(message, down=True, spent=True)
        if status in _TRANSIENT:
            is_late = status == TIMED_OUT
            return Transient(message, after_s=refused.after_s, down=is_late, unknown=is_late, overloaded=True)
        # Below 300: the provider answered, but the answer cannot be read.
        if status >= 500 or status < 300:
            cause: Cause = "judge_unparsable" if status < 300 else "judge_unavailable"
            return Transient(message, after_s=refused.after_s, unknown=status < 300, cause=cause)
        return FinalFailure(message, down=status in _FAIL_EVERY_QUESTION)

    def _has_own_server(self, model: AskedModel) -> bool:
        """Returns whether the environment names an address in place of that of the provider."""
        address = re.compile(rf"{re.escape(model.provider.upper())}_(.*_)?(API_BASE|BASE_URL)")
        return bool(self._access.api_base) or any(map(address.fullmatch, os.environ))

    def _model(self, name: str) -> AskedModel:
        if (found := self._models.get(name)) is None:
            found = self._models[name] = load_model(self._litellm, self._config, self.secrets, name)
        return found


def _asking_for_key(message: str, lacking: list[str]) -> str:
    if not lacking:
        return message
    return (
        f"{message}; no key of the provider was found: set it, or TRACEWEIR_JUDGE_API_KEY (not set in the environment: "
        f"{', '.join(lacking)})"
    )
