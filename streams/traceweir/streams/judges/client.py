"""One attempt to ask a model, through litellm, which knows the providers.

litellm is an extra (`pip install '.[judge]'`) and is imported only when a criterion asks a judge: the import takes seconds.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import SecretStr

from traceweir.schemas.judge_config import JudgeConfig
from traceweir.scorers.judge import Question
from traceweir.streams.clock import utc_now
from traceweir.streams.judges.errors import JudgeUnavailableError, Refused, Secrets, Transient
from traceweir.streams.judges.models import estimated_tokens, litellm_name, price_of

log = logging.getLogger(__name__)

INSTALL = "pip install '.[judge]' in a clone of Traceweir"
BUSY, TIMED_OUT = 429, 408
NO_KEY = "no-key"
"""What is sent where a local server needs none: the client of OpenAI's API refuses to send nothing."""
_TRANSIENT = {TIMED_OUT, BUSY}
_EVERYONES = {401, 402, 403, 404}
"""Statuses that another question would meet as well."""


@dataclass(frozen=True, slots=True)
class Access:
    """Where judges are asked, and with which key; None: at the provider that the model's name says, with that provider's own variables."""

    api_base: str | None = None
    api_key: SecretStr | None = None


class Answered(NamedTuple):
    """What a model said, and what that took."""

    text: str
    input_tokens: int
    output_tokens: int
    usd: float


def check_judge() -> None:
    """See that what asks judges is installed.

    Raises:
        JudgeUnavailable: it is not.
    """
    missing = [name for name in ("litellm", "tenacity", "aiolimiter") if importlib.util.find_spec(name) is None]
    if missing:
        raise JudgeUnavailableError(
            f"a criterion of the evaluation config asks a judge, which needs {', '.join(missing)}: install it with {INSTALL}, or take "
            'the criterion out of the config (those of agent_evaluation with "judged": false)'
        )


@lru_cache(maxsize=1)
def load_litellm() -> Any:
    """The library, told to say nothing and to fetch nothing.

    Raises:
        JudgeUnavailable: it is not installed.
    """
    check_judge()
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import fetches a price list
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # else it reads whatever `.env` lies in the working directory
    # OpenAI's API by the client that asks all other providers, too: by OpenAI's own a question takes 1.3 times as much of the processor.
    os.environ.setdefault("EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER", "True")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = True  # what a provider does not know is left out
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "httpcore", "openai"):
        quiet = logging.getLogger(name)  # they quote requests, keys included
        quiet.setLevel(logging.CRITICAL + 1)
        quiet.propagate = False
    return litellm


def ignore_litellms_warnings() -> None:
    """Let nothing be said about litellm's use of its own parts, which may come with any question."""
    warnings.filterwarnings("ignore", message="Item .* on TypedDict class|Pydantic serializer warnings")


class JudgeClient:
    """Asks models, one attempt a call.

    Args:
        config: How.
        access: Where, and with which key.

    Raises:
        JudgeUnavailable: litellm is not installed.
    """

    def __init__(self, config: JudgeConfig, access: Access) -> None:
        self._litellm = load_litellm()
        ignore_litellms_warnings()  # each time, for pytest forgets after a test what was ignored in it
        self._config, self._access = config, access
        self._key = access.api_key.get_secret_value() if access.api_key else None
        self.secrets = Secrets.of_environment(*([self._key] if self._key else []))
        self._models: dict[str, _Model] = {}

    def name_of(self, model: str) -> str:
        """What litellm calls a model."""
        return litellm_name(model, self._config.models, self._access.api_base)

    def most(self, question: Question) -> tuple[int, int, float]:
        """The tokens of the question and of its longest answer, about, and the USD of both."""
        tokens = estimated_tokens(question.prompt), self._config.max_output_tokens
        return *tokens, self._model(self.name_of(question.model)).usd(*tokens)

    async def ask(self, question: Question) -> Answered:
        """Ask once.

        Raises:
            Transient: it may succeed later.
            Refused: it would fail again.
        """
        model = self._model(self.name_of(question.model))
        limit_s = self._config.timeout_s
        try:
            async with asyncio.timeout(
                limit_s
            ) as limit:  # the library's own limit is per read, and a slow stream never meets it
                response = await self._litellm.acompletion(**self._options(model, question))
        except (Exception, asyncio.CancelledError) as error:
            if limit.expired():
                raise Transient(f"{model.name} gave no whole answer within {limit_s:g} s", unknown=True) from None
            if isinstance(error, asyncio.CancelledError):
                raise
            raise self._in_words(model.name, error) from None  # the cause quotes the request
        return self._answered(model, question, response)

    def _options(self, model: _Model, question: Question) -> dict[str, Any]:
        options: dict[str, Any] = {
            "model": model.name,
            "messages": [{"role": "user", "content": question.prompt}],
            "timeout": self._config.timeout_s,
            "max_tokens": self._config.max_output_tokens,
            "num_retries": 0,
            "max_retries": 0,
            "no-log": True,  # to whatever litellm's callbacks are
        }
        if self._access.api_base:
            options["api_base"] = self._access.api_base
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
            options["extra_headers"] = {"OpenAI-Organization": organization}  # the common client leaves it out
        wanted = self._config.structured_output
        if question.answer is not None and (wanted == "always" or (wanted == "auto" and model.keeps_to_schemas)):
            schema: dict[str, Any] = {
                "name": re.sub(r"[^A-Za-z0-9_-]", "_", question.metric)[:64] or "answer",
                "schema": dict(question.answer),
            }
            if question.answer.get("additionalProperties") is False:  # what strict asks of a schema
                schema["strict"] = True
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        return options

    def _answered(self, model: _Model, question: Question, response: Any) -> Answered:
        choices = getattr(response, "choices", None) or ()
        text = getattr(getattr(choices[0], "message", None), "content", None) if choices else None
        text = text if isinstance(text, str) else ""
        usage = getattr(response, "usage", None)
        taken = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        tokens = taken if any(taken) else (estimated_tokens(question.prompt), estimated_tokens(text))
        if not text.strip():
            raise Refused(f"{model.name} answered with no text", unknown=True)
        return Answered(self.secrets.known(text), *tokens, model.usd(*tokens))

    def _in_words(self, model: str, error: Exception) -> Transient | Refused:
        status = getattr(error, "status_code", None)
        # Of a missing key, or of an answer of another shape, litellm says so with a whole traceback behind it.
        told = str(error).removeprefix("litellm.").partition("Traceback (most recent call last)")[0].rstrip()
        said = self.secrets.hide(told)
        why = f"{model}: {said or type(error).__name__}"
        if not isinstance(status, int):
            return Refused(why)
        spent = "insufficient_quota" in str(error)  # OpenAI says so with a 429, for days
        if status in _TRANSIENT and not spent:
            after = retry_after(getattr(error, "litellm_response_headers", None), utc_now())
            return Transient(why, after_s=after, down=status != BUSY, unknown=status == TIMED_OUT)
        if status >= 500 or status < 300:  # 200 and an answer that cannot be read, but was given
            after = retry_after(getattr(error, "litellm_response_headers", None), utc_now())
            return Transient(why, after_s=after, unknown=status < 300)
        return Refused(why, down=spent or status in _EVERYONES)

    def _model(self, name: str) -> _Model:
        if (found := self._models.get(name)) is None:
            found = self._models[name] = self._looked_up(name)
        return found

    def _looked_up(self, name: str) -> _Model:
        litellm = self._litellm
        try:
            provider = str(litellm.get_llm_provider(name)[1])
        except Exception:  # noqa: BLE001  # whatever it raises, it does not know whose the model is
            raise Refused(
                f"nothing tells whose model {name!r} is: name it as litellm does (`openai/...`, `gemini/...`), give its name in the "
                "config's judge.models, or set TRACEWEIR_JUDGE_API_BASE to a server that has it"
            ) from None
        known: Mapping[str, object]
        try:
            known = litellm.get_model_info(name)
        except Exception:  # noqa: BLE001  # a model that it does not know
            known = {}
        price = price_of(self._config, name, known)
        if price is None:
            log.warning(
                "nobody knows what %s costs, so it counts as free, and a budget in USD does not bound it: give its price in the "
                "config's judge.prices",
                self.secrets.hide(name),
            )
        keeps = bool(litellm.supports_response_schema(name))
        return _Model(name, provider, keeps, price or (0.0, 0.0))


class _Model(NamedTuple):
    name: str
    provider: str
    keeps_to_schemas: bool
    price: tuple[float, float]

    def usd(self, input_tokens: int, output_tokens: int) -> float:
        return round(input_tokens * self.price[0] + output_tokens * self.price[1], 12)


def retry_after(headers: Mapping[str, str] | None, now: datetime) -> float | None:
    """Seconds that a reply's `Retry-After` asks to wait, be it a number or a date; None if it asks nothing that can be read.

    >>> from datetime import UTC
    >>> now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    >>> [retry_after({"retry-after": said}, now) for said in ("7", "Sat, 31 Jan 2026 12:00:30 GMT", "soon")]
    [7.0, 30.0, None]
    """
    said = (headers or {}).get("retry-after")
    if not said:
        return None
    try:
        seconds = float(said)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(said) - now).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if seconds < 1e9 else None


def _count(usage: Any, name: str) -> int:
    found = getattr(usage, name, 0)
    return found if isinstance(found, int) and found > 0 else 0
