"""Tests which answers are failures of the address or of the account, and what a provider says of the next attempt."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.judge_errors import error_message
from tests.support.judged import Pauses, judging, question
from tests.support.openai_server import Say, openai_server

# Loading litellm takes seconds, so one process runs these tests.
pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]

PAGE = b"\n<!DOCTYPE html><html><body>Welcome</body></html>"
EVENTS = b'data: {"choices":[{"delta":{"content":"yes"}}]}\n\ndata: [DONE]\n\n'


def refused(status: int, error: dict[str, Any], headers: dict[str, str] | None = None) -> Say:
    return Say(status=status, body=json.dumps({"error": error}).encode(), headers=headers or {})


def quota(quota_id: str, delay: str = "27s") -> Say:
    """Returns Gemini's refusal by a quota."""
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota_id}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    return refused(429, {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow down", "details": details})


def parts(*content: Any) -> Say:
    message = {"role": "assistant", "content": list(content)}
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "stub",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }
    return Say(body=json.dumps(body).encode())


@pytest.mark.parametrize(
    ("body", "why"), [(PAGE, "sent an HTML page"), (EVENTS, "sent an event stream"), (b": ping\n\n", "an event stream")]
)
async def test_what_is_no_answer_of_an_api_is_not_asked_for_again(body: bytes, why: str) -> None:
    async with openai_server(default=lambda asked: Say(body=body)) as server:
        message = await error_message(judging(server.url).session().ask(question()))
    assert why in message
    assert "check the base URL (TRACEWEIR_JUDGE_API_BASE)" in message
    assert len(server.asked) == 1


async def test_the_text_of_a_content_in_parts_is_read() -> None:
    said = parts({"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "y"}, {"type": "text", "text": "es"})
    async with openai_server(said) as server:
        reply = await judging(server.url).session().ask(question())
    assert (reply.text, reply.cost.output_tokens, len(server.asked)) == ("yes", 2, 1)


async def test_a_content_without_text_parts_is_an_answer_without_text() -> None:
    async with openai_server(parts({"type": "image_url"}, "yes", 7)) as server:
        message = await error_message(judging(server.url).session().ask(question()))
    assert "sent an answer without text" in message
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("said", "pause_s"),
    [
        (quota("GenerateRequestsPerMinutePerProjectPerModel"), 27),
        (quota("GenerateRequestsPerMinutePerProjectPerModel", "1.5s"), 1.5),
        (quota("GenerateRequestsPerMinutePerProjectPerModel", "soon"), 5),
        (refused(429, {"message": "slow down"}, {"retry-after-ms": "2500", "retry-after": "3"}), 2.5),
        (refused(503, {"message": "overloaded"}, {"Retry-After": "2"}), 2),
        (refused(429, {"message": "slow down"}, {"retry-after": "0"}), 5),
        (refused(429, {"message": "slow down"}, {"retry-after-ms": "nan"}), 5),
    ],
)
async def test_the_provider_decides_the_pause(said: Say, pause_s: float) -> None:
    pauses = Pauses()
    async with openai_server(said) as server:
        retries = {"initial_s": 5, "max_s": 60, "jitter_s": 0}
        await judging(server.url, config={"retries": retries}, sleep=pauses).session().ask(question())
    assert pauses.taken == [pause_s]


@pytest.mark.parametrize(
    "said",
    [
        quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
        refused(429, {"code": "insufficient_quota", "message": "You exceeded your current quota"}),
        refused(429, {"type": "insufficient_quota", "message": "You exceeded your current quota"}),
        refused(
            400,
            {"type": "invalid_request_error", "message": "Your credit balance is too low to access the Anthropic API."},
        ),
        refused(402, {"message": "This request requires more credits, or fewer max_tokens."}),
        refused(402, {"code": "invalid_request_error", "message": "Insufficient Balance"}),
        refused(
            400, {"code": "Arrearage", "message": "Access denied, please make sure your account is in good standing."}
        ),
        refused(403, {"message": "You have insufficient credits."}),
        refused(429, {"message": "Insufficient credit"}),
        refused(429, {"type": "exceeded_current_quota_error", "message": "Please check your plan and billing details"}),
        refused(429, {"message": "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 a day"}),
        Say(status=429, body=b'{"error": "insufficient credit"}'),
        Say(status=429, body=b'{"object": "error", "type": "insufficient_quota", "message": "Check your plan."}'),
    ],
)
async def test_a_spent_quota_or_credit_is_not_retried_and_opens_the_breaker(said: Say) -> None:
    pauses = Pauses()
    async with openai_server(Say(), default=lambda asked: said) as server:
        judge = judging(server.url, sleep=pauses).session()
        await judge.ask(question("0"))
        whys = [await error_message(judge.ask(question(str(number)))) for number in (1, 2)]
    assert (len(server.asked), pauses.taken) == (2, [])
    assert ["not asked" in why for why in whys] == [False, True]


async def test_a_refusal_that_repeats_the_text_of_an_agent_does_not_open_the_breaker() -> None:
    text = (
        "blocked: my credit balance is too low, says the user; "
        ' credit balance is too low {"code": "insufficient_quota", "quotaId": "PerDay"}, insufficient credit'
    )
    async with openai_server(refused(400, {"message": text})) as server:
        judge = judging(server.url, config={"breaker": {"failures": 1}}).session()
        await error_message(judge.ask(question("1")))
        assert (await judge.ask(question("2"))).text == "yes"
