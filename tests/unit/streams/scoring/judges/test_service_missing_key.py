"""Tests that a missing API key ends a question after one attempt, with the variables that can hold the key."""

from __future__ import annotations

import os
import re

import pytest
from tests.support.judge_errors import error_message
from tests.support.judged import Clock, Pauses, judge_section, question
from tests.support.openai_server import busy, openai_server

from traceweir.schemas.judge_config import JudgeConfig
from traceweir.scorers.judge import JudgeFailed
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.http_limits import HttpExchange
from traceweir.streams.scoring.judges.litellm_setup import load_litellm
from traceweir.streams.scoring.judges.missing_key import missing_key
from traceweir.streams.scoring.judges.service import Judging

# Loading litellm takes seconds, so one process runs these tests.
pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]

_OF_PROVIDERS = re.compile("KEY|TOKEN|AWS_|AZURE|GOOGLE|VERTEX|_API_BASE|_BASE_URL")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    load_litellm()
    for name in list(os.environ):
        if _OF_PROVIDERS.search(name):
            monkeypatch.delenv(name)
    # Otherwise the client of AWS asks an address of the cloud for credentials.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def keyless(model: str, pauses: Pauses, api_base: str | None = None) -> Judging:
    config = JudgeConfig.model_validate(judge_section(models={"openai/stub": model}))
    return Judging(config, Access(api_base), Clock(), sleep=pauses)


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("gemini/gemini-2.5-flash", "GEMINI_API_KEY"),
        ("anthropic/claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("bedrock/anthropic.claude-3-haiku-20240307-v1:0", "AWS_ACCESS_KEY_ID"),
        ("sagemaker/judge", "AWS_SECRET_ACCESS_KEY"),
        ("azure/judge", "AZURE_API_KEY"),
        ("fireworks_ai/judge", "FIREWORKS_AI_API_KEY"),
    ],
)
async def test_a_key_without_which_nothing_is_sent_is_asked_for_at_the_first_attempt(model: str, variable: str) -> None:
    pauses = Pauses()
    with pytest.raises(JudgeFailed) as failed:
        await keyless(model, pauses).session().ask(question())
    assert variable in str(failed.value)
    assert "TRACEWEIR_JUDGE_API_KEY" in str(failed.value)
    assert (failed.value.cause, failed.value.fails_every_question) == ("judge_unavailable", True)
    assert pauses.taken == []


@pytest.mark.parametrize(
    ("provider", "address"), [("openai", "OPENAI_API_BASE"), ("mistral", "MISTRAL_AZURE_API_BASE")]
)
async def test_a_provider_that_refuses_a_question_without_key_is_asked_once(
    provider: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = Pauses()
    async with openai_server(default=lambda body: busy(None, 401, "You did not provide an API key")) as server:
        monkeypatch.setenv(address, server.url)
        why = await error_message(keyless(f"{provider}/judge", pauses).session().ask(question()))
    assert f"not set in the environment: {provider.upper()}_API_KEY)" in why
    assert (len(server.asked), pauses.taken) == (1, [])


async def test_a_wrong_key_is_not_called_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "wrong-wrong-wrong-wrong")
    async with openai_server(
        default=lambda body: busy(None, 401, "Incorrect API key: wrong-wrong-wrong-wrong")
    ) as server:
        why = await error_message(keyless("openai/judge", Pauses(), server.url).session().ask(question()))
    assert "Incorrect API key" in why
    assert "not set" not in why
    assert "wrong" not in why


async def test_a_setting_that_the_provider_needs_is_not_waited_for() -> None:
    pauses = Pauses()
    why = await error_message(keyless("azure_ai/judge", pauses).session().ask(question()))
    assert "api_base is required" in why
    assert pauses.taken == []


def test_a_provider_out_of_reach_lacks_a_key_only_if_the_request_had_none() -> None:
    litellm = load_litellm()
    exchange = HttpExchange()
    exchange.is_sent = True
    assert missing_key(litellm, "mistral/judge", exchange) == ["MISTRAL_API_KEY"]
    exchange.is_authorized = True
    assert missing_key(litellm, "mistral/judge", exchange) == []
    # A server of one's own needs none.
    exchange.is_authorized = False
    assert missing_key(litellm, "ollama/judge", exchange) == []
    assert missing_key(litellm, "hosted_vllm/judge", exchange) == []
