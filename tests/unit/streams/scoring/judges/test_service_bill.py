"""What a provider bills is what the budget counts, what the session pays and what the Score shows, whatever happens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.judge_errors import PRICES, error_message
from tests.support.judged import judging, question
from tests.support.openai_server import Say, openai_server

from traceweir.scorers.judge import BudgetSpent, JudgeFailed
from traceweir.streams.scoring.judges.litellm_setup import load_litellm
from traceweir.streams.scoring.judges.models import estimated_tokens

# Loading litellm takes seconds, so one process runs these tests.
pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]

LIMIT = 1_000_000
READ_USD = 0.01
WRITTEN_USD = 0.1
CACHED = {"prices": {"openai/stub": {"input": 1e4, "output": 1e5, "cached_input": 1e3}}}
PROMPT = "Is it good?"
CALL = {"id": "1", "type": "function", "function": {"name": "verdict", "arguments": "{}"}}


def completion(read: int, written: int, *, choices: bool = True, reason: str = "stop", **said: Any) -> Say:
    """Returns a completion that the provider bills, with the details of its tokens in `usage`."""
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written} | said.pop(
        "usage", {}
    )
    message = {"role": "assistant", "content": "yes"} | said
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "stub",
        "choices": [{"index": 0, "finish_reason": reason, "message": message}] if choices else [],
        "usage": usage,
    }
    return Say(body=json.dumps(body).encode())


NO_ANSWER = [Say(after_s=60)] * 2


def no_verdict(reply: str) -> str | None:
    return None if reply == "yes" else "it contains no verdict"


@pytest.mark.parametrize(
    ("said", "billed", "is_answered"),
    [
        ([completion(90, 3)], (90, 3), True),
        ([completion(90, 100, reason="length", content='{"ra')], (90, 100), False),
        ([completion(90, 7, content=None, refusal="No.")], (90, 7), False),
        ([completion(90, 0, reason="content_filter", content="")], (90, 0), False),
        ([completion(90, 8, reason="tool_calls", content=None, tool_calls=[CALL])], (90, 8), False),
        ([completion(90, 5, choices=False)], (90, 5), False),
        ([completion(0, 3)], (estimated_tokens(PROMPT), 3), True),
        ([completion(90, 0)], (90, estimated_tokens("yes")), True),
        ([completion(90, 5, content=[1], logprobs="x")], (90, 5), False),
        ([completion(90, 5, content=1), completion(120, 3)], (210, 8), True),
        ([completion(0, 0, usage={"prompt_tokens": 90.0, "completion_tokens": "3"})], (90, 3), True),
        ([completion(90, 3, tool_calls=["x"], reasoning_content=["x"])], (90, 3), True),
        ([Say(usage=None)], (estimated_tokens(PROMPT), estimated_tokens("yes")), True),
        ([completion(90, 5, content="Well."), completion(120, 3)], (210, 8), True),
        ([completion(90, 5, content="Well."), completion(120, 9, content=None, refusal="No.")], (210, 14), True),
        ([Say(body=b"no JSON"), completion(90, 3)], (estimated_tokens(PROMPT) + 90, 3), True),
        ([Say(status=408, body=b"{}"), completion(90, 3)], (estimated_tokens(PROMPT) + 90, 3), True),
        (NO_ANSWER, (2 * estimated_tokens(PROMPT), 0), False),
        ([Say(status=400, body=b"{}")], (0, 0), False),
    ],
)
async def test_budget_payments_and_cost_are_what_the_provider_bills(
    said: list[Say], billed: tuple[int, int], is_answered: bool
) -> None:
    async with openai_server(*said) as server:
        config = {
            **PRICES,
            # A server that is to answer can be slow; one that never answers is waited for a moment.
            "timeout_s": 0.5 if said == NO_ANSWER else 60,
            "budget": {"tokens_per_day": LIMIT, "usd_per_day": LIMIT},
            "retries": {"attempts": 2, "initial_s": 0.001, "jitter_s": 0},
        }
        judges = judging(server.url, config=config)
        judge = judges.session()
        asked = judge.ask(question(PROMPT, problem=no_verdict))
        if is_answered:
            cost = (await asked).cost
        else:
            with pytest.raises(JudgeFailed) as failed:
                await asked
            cost = failed.value.cost
        assert not server.script
    usd = billed[0] * READ_USD + billed[1] * WRITTEN_USD
    assert (cost.input_tokens, cost.output_tokens) == billed
    assert cost.usd == pytest.approx(usd)
    paid = judge.judged.paid
    assert sum(each.tokens for each in paid) == sum(billed)
    assert sum(each.usd for each in paid) == pytest.approx(usd)
    left = judges.budget.left()
    assert left == {
        "tokens_per_day": pytest.approx(1 - sum(billed) / LIMIT, abs=1e-12),
        "usd_per_day": pytest.approx(1 - usd / LIMIT, abs=1e-12),
    }


DETAILS = {
    "prompt_tokens_details": {"cached_tokens": 60},
    "completion_tokens_details": {"reasoning_tokens": 40},
}


@pytest.mark.parametrize(
    ("config", "usd"), [(CACHED, 30 * 0.01 + 60 * 0.001 + 50 * 0.1), (PRICES, 90 * 0.01 + 50 * 0.1)]
)
async def test_cached_and_reasoning_tokens_are_shown_and_priced_by_the_config(config: Any, usd: float) -> None:
    async with openai_server(completion(90, 50, usage=DETAILS)) as server:
        judge = judging(server.url, config=config).session()
        cost = (await judge.ask(question())).cost
    assert (cost.cached_input_tokens, cost.reasoning_tokens) == (60, 40)
    assert cost.usd == judge.judged.paid[0].usd == pytest.approx(usd)


@pytest.mark.parametrize(("model", "usd"), [("openai/stub", 0.9), ("openai/claude-stub", 0.9 + 0.25 * 0.4)])
async def test_tokens_that_claude_writes_to_its_cache_cost_a_quarter_more(
    model: str, usd: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 0, "cache_creation_tokens": 40}}
    config = {"prices": {model: {"input": 1e4, "output": 0}}}
    known = {"supports_prompt_caching": True}
    monkeypatch.setattr(load_litellm(), "get_model_info", lambda name: known)
    async with openai_server(completion(90, 50, usage=details)) as server:
        judge = judging(server.url, config=config).session()
        assert (await judge.ask(question(model=model))).cost.usd == pytest.approx(usd)


@pytest.mark.parametrize(
    ("unknown_price", "text"), [("refuse", "lets no question to it pass"), ("count_tokens", "does not limit them")]
)
async def test_the_log_says_what_becomes_of_a_model_without_a_price(
    unknown_price: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with openai_server(completion(90, 50)) as server:
        judge = judging(server.url, config={"budget": {"unknown_price": unknown_price}}).session()
        await judge.ask(question())
    assert [text in each.getMessage() for each in caplog.records if "price of" in each.getMessage()] == [True]


async def test_the_bill_of_a_run_counts_questions_tokens_and_money_and_names_models_without_a_price() -> None:
    prices = {"openai/stub": {"input": 1_000.0, "output": 2_000.0}}
    async with openai_server(default=lambda body: Say(usage=(9, 1))) as server:
        judges = judging(server.url, config={"prices": prices})
        assert judges.bill.text() == ""
        judge = judges.session()
        await judge.ask(question("one"))
        await judge.ask(question("one"))
        priced = judges.bill.text()
        await judge.ask(question("two", model="openai/own"))
    assert priced == "1 question, 10 tokens, 0.0110 USD"
    assert judges.bill.text() == "2 questions, 20 tokens, 0.0110 USD without openai/own, whose price is unknown"


async def test_cached_tokens_have_the_price_that_litellm_knows() -> None:
    import litellm

    known = litellm.get_model_info("openai/gpt-4o-mini")
    async with openai_server(completion(90, 50, usage=DETAILS)) as server:
        judge = judging(server.url).session()
        cost = (await judge.ask(question(model="openai/gpt-4o-mini"))).cost
    usd = 30 * known["input_cost_per_token"] + 60 * (known["cache_read_input_token_cost"] or 0)
    assert cost.usd == pytest.approx(usd + 50 * known["output_cost_per_token"])


async def test_a_limit_in_usd_can_refuse_a_model_without_a_price() -> None:
    async with openai_server() as server:
        refusing = {"unknown_price": "refuse"}
        judge = judging(server.url, config={"budget": {"usd_per_day": 5, **refusing}}).session()
        why = await error_message(judge.ask(question()), BudgetSpent)
        assert server.asked == []
        await judging(server.url, config={"budget": {"tokens_per_day": 5_000, **refusing}}).session().ask(question())
        priced = {"budget": {"usd_per_day": 50, **refusing}, **PRICES}
        await judging(server.url, config=priced).session().ask(question())
        await judging(server.url, config={"budget": {"usd_per_day": 5}}).session().ask(question())
    assert why == (
        "the price of openai/stub is unknown, so budget.usd_per_day cannot limit it: set its price in judge.prices, or "
        "judge.budget.unknown_price to count_tokens"
    )
