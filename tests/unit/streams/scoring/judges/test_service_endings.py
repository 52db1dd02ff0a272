"""An answer without a verdict is paid as its provider reports, and its failure says why the model stopped."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.judge_errors import PRICES
from tests.support.judged import judging, question
from tests.support.openai_server import Say, openai_server

from traceweir.scorers.judge import JudgeFailed

# Loading litellm takes seconds, so one process runs these tests.
pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]

USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 8_192,
    "total_tokens": 8_202,
    "completion_tokens_details": {"reasoning_tokens": 8_192},
}


def completion(finish_reason: str, usage: dict[str, Any] | None = None, **message: Any) -> Say:
    """Returns a completion with this end."""
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "stub",
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant"} | message}],
        "usage": usage or {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }
    return Say(body=json.dumps(body).encode())


CALL = {"id": "1", "type": "function", "function": {"name": "verdict", "arguments": '{"result": "yes"}'}}


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            completion("length", USAGE, content=""),
            "was cut off at 100 tokens; 8192 of 8192 tokens were reasoning: raise judge.max_output_tokens",
        ),
        (completion("length", content='{"rationale": "It is'), "was cut off at 100 tokens: raise"),
        (completion("stop", content=None, refusal="I cannot help."), "refused to answer: ask another model"),
        (completion("content_filter", content=""), "was stopped by its provider's filter (content_filter)"),
        (completion("tool_calls", content=None, tool_calls=[CALL]), "called a tool in place of an answer"),
        (completion("stop", content="  "), "sent an answer without text"),
    ],
)
async def test_the_failure_says_why_the_model_stopped(said: Say, why: str) -> None:
    async with openai_server(said) as server:
        judge = judging(server.url).session()
        with pytest.raises(JudgeFailed) as failed:
            await judge.ask(question(problem=lambda reply: "it contains no verdict"))
        assert len(server.asked) == 1
    assert why in str(failed.value)


async def test_the_use_that_the_provider_reports_is_paid_though_there_is_no_answer() -> None:
    async with openai_server(completion("length", USAGE, content="")) as server:
        judge = judging(server.url, config=PRICES).session()
        with pytest.raises(JudgeFailed):
            await judge.ask(question())
    [paid] = judge.judged.paid
    prices = PRICES["prices"]["openai/stub"]
    assert (paid.tokens, round(paid.usd, 6)) == (
        8_202,
        round((10 * prices["input"] + 8_192 * prices["output"]) / 1e6, 6),
    )


async def test_a_verdict_that_was_complete_when_the_model_was_stopped_counts() -> None:
    async with openai_server(completion("length", content="yes")) as server:
        reply = await judging(server.url).session().ask(question(problem=lambda reply: None))
    assert reply.text == "yes"
