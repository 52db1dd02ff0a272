"""An answer without a verdict is paid as its provider reports, and its failure says why the model stopped."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.support.judge_errors import PRICES
from tests.support.judged import judging, question
from tests.support.openai_server import Say, openai_server

from traceweir.scorers.judge import JudgeFailed
from traceweir.streams.scoring.judges.model_calls import Attempt

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


def refused_with(status: int, message: str, code: str = "") -> Say:
    """Returns an error of OpenAI's API."""
    return Say(
        status=status,
        body=json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}}).encode(),
    )


TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
FILTERED = "Your request was rejected as a result of our safety system."
CALL = {"id": "1", "type": "function", "function": {"name": "verdict", "arguments": '{"result": "yes"}'}}


@pytest.mark.parametrize(
    ("said", "why", "cause"),
    [
        (
            completion("length", USAGE, content=""),
            "was cut off at 100 tokens; 8192 of 8192 tokens were reasoning: raise judge.max_output_tokens",
            "judge_truncated",
        ),
        (
            completion("length", content='{"rationale": "It is'),
            "was cut off at 100 tokens: raise judge.max_output_tokens",
            "judge_truncated",
        ),
        (
            completion("stop", content=None, refusal="I cannot help."),
            "refused to answer: ask another model",
            "judge_refused",
        ),
        (
            completion("content_filter", content=""),
            "was stopped by its provider's filter (content_filter): loosen the filter",
            "judge_refused",
        ),
        (
            completion("tool_calls", content=None, tool_calls=[CALL]),
            "called a tool in place of an answer: use a model that answers with text",
            "judge_unparsable",
        ),
        (completion("stop", content="  "), "sent an answer without text", "judge_unparsable"),
        (Say(choices=0), "sent no choices", "judge_unparsable"),
        (Say(body=b"<html>hello</html>"), "openai/stub: ", "judge_unparsable"),
        (Say(body=b" " * 1_000_001), "the answer has more than 1,000,000 bytes", "judge_unparsable"),
        (
            refused_with(400, TOO_LONG),
            "ask a model with a longer context, or lower judge.max_output_tokens",
            "too_long",
        ),
        (
            refused_with(400, FILTERED, "content_policy_violation"),
            "the provider's filter refused the question: loosen the filter",
            "judge_refused",
        ),
        (refused_with(400, "temperature: unsupported value"), "unsupported value", "judge_unavailable"),
        (refused_with(401, "no such key"), "no such key", "judge_unavailable"),
        (refused_with(404, "no such model"), "no such model", "judge_unavailable"),
        (refused_with(429, "insufficient_quota"), "insufficient_quota", "judge_unavailable"),
        (refused_with(500, "broken"), "broken", "judge_unavailable"),
        (Say(status=302, headers={"Location": "http://elsewhere/"}), "redirects to elsewhere", "judge_unavailable"),
    ],
)
async def test_the_failure_says_why_there_is_no_answer_with_its_cause(said: Say, why: str, cause: str) -> None:
    requests = list[Attempt]()
    async with openai_server(said) as server:
        config = {"retries": {"attempts": 1}}
        judge = judging(server.url, config=config, attempted=requests.append).session()
        with pytest.raises(JudgeFailed) as failed:
            await judge.ask(question(problem=lambda reply: "it contains no verdict"))
        assert len(server.asked) == 1
    assert (failed.value.cause, [each.cause for each in requests]) == (cause, [cause])
    assert why in str(failed.value)


async def test_a_verdict_that_cannot_be_read_is_a_request_with_a_cause() -> None:
    requests = list[Attempt]()
    async with openai_server(Say(text="Well."), Say(text="yes")) as server:
        judge = judging(server.url, attempted=requests.append).session()
        reply = await judge.ask(question(problem=lambda reply: None if reply == "yes" else "it contains no verdict"))
    assert reply.text == "yes"
    assert [(each.outcome, each.cause) for each in requests] == [("unusable", "judge_unparsable"), ("answered", None)]


async def test_a_question_that_waits_for_an_equal_one_fails_for_the_same_cause() -> None:
    async with openai_server(completion("length", USAGE, content="")) as server:
        server.gate = asyncio.Event()
        judges = judging(server.url)
        asked = [asyncio.create_task(judges.session().ask(question())) for _ in range(2)]
        await server.has_requests(1)
        server.gate.set()
        failed = await asyncio.gather(*asked, return_exceptions=True)
        assert len(server.asked) == 1
    assert [each.cause for each in failed if isinstance(each, JudgeFailed)] == ["judge_truncated", "judge_truncated"]
    assert str(failed[0]) == str(failed[1])


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
