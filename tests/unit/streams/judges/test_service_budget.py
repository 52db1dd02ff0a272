"""Tests that the judge service keeps within its budget of tokens and US dollars."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.judge_errors import PRICES, error_message
from tests.support.judged import Clock, judging, question
from tests.support.openai_server import Say, openai_server

from traceweir.scorers.judge import BudgetSpent

pytestmark = pytest.mark.xdist_group("litellm")  # loading it takes seconds: in one process only


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        ({"tokens_per_day": 300}, "288 of .*300 tokens per day"),
        ({"tokens_per_minute": 300}, "per minute"),
        ({"usd_per_day": 13}, "USD per day"),
        ({"usd_per_minute": 13}, "12.7000 USD of the 13.0000 USD per minute"),
    ],
)
async def test_the_budget_is_not_exceeded(limit: dict[str, float], left: str) -> None:
    clock = Clock()
    async with openai_server(
        default=lambda body: Say(usage=(90, 0) if body["messages"][0]["content"] != "0" else (10, 2))
    ) as server:
        config = {**PRICES, "budget": limit, "max_output_tokens": 100}
        judge = judging(server.url, config=config, clock=clock).session()
        await judge.ask(question("0"))
        why = ""
        for number in range(1, 30):
            try:
                await judge.ask(question(str(number)))
            except BudgetSpent as spent:
                why = str(spent)
                break
        asked = len(server.asked)
        paid = judge.judged.paid
        assert sum(each.tokens for each in paid) <= limit.get("tokens_per_day", limit.get("tokens_per_minute", 10_000))
        assert sum(each.usd for each in paid) <= limit.get("usd_per_day", limit.get("usd_per_minute", 10_000))
        assert "the budget resets at " in why
        begins = "2026-02-01 00:00 UTC" if "day" in next(iter(limit)) else "2026-01-31 12:01 UTC"
        assert begins in why
        clock.go(days=1) if "day" in next(iter(limit)) else clock.go(minutes=1)
        await judge.ask(question("another"))
    assert len(server.asked) == asked + 1
    assert asked > 1


async def test_a_question_that_does_not_fit_is_not_sent() -> None:
    async with openai_server() as server:
        judge = judging(server.url, config={"budget": {"tokens_per_day": 150}}).session()
        why = await error_message(judge.ask(question("x" * 600)), BudgetSpent)
    assert "150 tokens of the 150 tokens per day are left, and this question can use 316 tokens" in why
    assert server.asked == []


async def test_questions_wait_for_reserved_budget() -> None:
    async with openai_server(default=lambda body: Say(usage=(5, 1), after_s=0.01)) as server:
        judge = judging(server.url, config={"budget": {"tokens_per_day": 250}}).session()
        replies = await asyncio.gather(*(judge.ask(question(str(number))) for number in range(20)))
    assert len(replies) == 20
    assert server.at_once == 2


async def test_what_was_paid_before_counts() -> None:
    clock = Clock()
    async with openai_server() as server:
        first = judging(server.url, clock=clock, config={"budget": {"tokens_per_day": 125}})
        judge = first.session()
        await judge.ask(question())
        second = judging(server.url, clock=clock, config={"budget": {"tokens_per_day": 125}})
        for paid in judge.judged.paid:
            second.budget.record_spend(paid)
        await error_message(second.session().ask(question()), BudgetSpent)
