"""Tests that the judge service keeps within its budget of tokens and US dollars."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from tests.support.judge_errors import PRICES, error_message
from tests.support.judged import Clock, judging, question
from tests.support.openai_server import Say, openai_server

from traceweir.schemas.judge_config import Budget
from traceweir.scorers.judge import BudgetSpent
from traceweir.streams.scoring.judges.budget import JudgeBudget, Paid, Reservation
from traceweir.streams.scoring.judges.models import Use

pytestmark = [
    pytest.mark.xdist_group("litellm"),
    pytest.mark.slow,
]  # loading litellm takes seconds, so one process runs these tests


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


async def test_a_question_that_exceeds_the_budget_is_not_sent() -> None:
    async with openai_server() as server:
        judge = judging(server.url, config={"budget": {"tokens_per_day": 150}}).session()
        why = await error_message(judge.ask(question("x" * 600)), BudgetSpent)
    assert "150 tokens of the 150 tokens per day are left, and this question can use 316 tokens" in why
    assert server.asked == []


async def test_a_question_is_charged_to_its_app_and_to_the_metric_whose_score_needs_it() -> None:
    limits = {"apps": {"rail": {"tokens_per_day": 1_000}}, "metrics": {"safety": {"tokens_per_day": 200}}}
    async with openai_server(default=lambda body: Say(usage=(90, 10))) as server:
        judge = judging(server.url, config={"budget": limits}).session()
        await judge.ask(question("one", app_name="rail", asked_for="safety"))
        await judge.ask(question("two", app_name="other", asked_for="m"))
        why = await error_message(judge.ask(question("three", app_name="other", asked_for="safety")), BudgetSpent)
    assert {(paid.account, paid.tokens) for paid in judge.judged.paid} == {
        ("apps.rail", 100),
        ("metrics.safety", 100),
        ("", 100),
    }
    assert why.startswith("100 tokens of the 200 tokens per day for the metric safety are left")


class ObservedBudget(JudgeBudget):
    """Counts the questions that requested a reservation, and the largest number of concurrent reservations."""

    def __init__(self, limits: Budget) -> None:
        super().__init__(limits, Clock())
        self.requested = self.most_reserved = self._reserved_now = 0

    @asynccontextmanager
    async def reserve(
        self,
        most: Use,
        paid: Callable[[Paid], object],
        waiting: AbstractAsyncContextManager[None] | None = None,
        accounts: Collection[str] = (),
    ) -> AsyncIterator[Reservation]:
        self.requested += 1
        async with super().reserve(most, paid, waiting, accounts) as reservation:
            self._reserved_now += 1
            self.most_reserved = max(self.most_reserved, self._reserved_now)
            try:
                yield reservation
            finally:
                self._reserved_now -= 1


async def test_questions_wait_for_reserved_budget() -> None:
    async with openai_server(default=lambda body: Say(usage=(5, 1))) as server, asyncio.timeout(60):
        server.gate = asyncio.Event()
        judges = judging(server.url)
        judges.budget = budget = ObservedBudget(Budget(tokens_per_day=250))
        judge = judges.session()
        tasks = [asyncio.create_task(judge.ask(question(str(number)))) for number in range(20)]
        await server.has_requests(2)
        assert (budget.requested, budget.most_reserved) == (20, 2)
        server.gate.set()
        replies = await asyncio.gather(*tasks)
    assert len(replies) == 20
    assert (budget.most_reserved, server.at_once) == (2, 2)


async def test_spending_recorded_before_the_start_counts_towards_the_budget() -> None:
    clock = Clock()
    async with openai_server() as server:
        first = judging(server.url, clock=clock, config={"budget": {"tokens_per_day": 125}})
        judge = first.session()
        await judge.ask(question())
        second = judging(server.url, clock=clock, config={"budget": {"tokens_per_day": 125}})
        for paid in judge.judged.paid:
            second.budget.record_spend(paid)
        await error_message(second.session().ask(question()), BudgetSpent)
