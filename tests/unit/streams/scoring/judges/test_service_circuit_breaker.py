"""Tests the circuit breaker of the judge service."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.judge_errors import error_message
from tests.support.judged import judging, question
from tests.support.openai_server import Say, busy, openai_server

pytestmark = [
    pytest.mark.xdist_group("litellm"),
    pytest.mark.slow,
]  # loading litellm takes seconds, so one process runs these tests


async def test_the_open_breaker_refuses_questions_to_its_model_and_not_to_other_models() -> None:
    async with openai_server(default=lambda body: busy(None, 500)) as server:
        config = {"breaker": {"failures": 4, "open_s": 1_000}}
        judge = judging(server.url, config=config).session()
        whys = [await error_message(judge.ask(question(str(number)))) for number in range(3)]
        assert len(server.asked) == 4
        server.default = lambda body: Say()
        other = await judge.ask(question(model="openai/other"))
    assert "not asked: the circuit breaker opened after 4 consecutive failures" in whys[1]
    assert "next attempt possible in" in whys[2]
    assert other.text == "yes"


async def test_replies_with_status_429_do_not_open_the_breaker() -> None:
    async with openai_server(*[busy("0")] * 30) as server:
        judge = judging(server.url, config={"breaker": {"failures": 4}}).session()
        found = await asyncio.gather(*(judge.ask(question(str(number))) for number in range(10)))
    assert len(found) == 10


async def test_questions_in_the_rate_limit_queue_are_refused_when_the_breaker_opens() -> None:
    async with openai_server(default=lambda body: busy(None, 500)) as server, asyncio.timeout(20):
        config = {"requests_per_minute": 1, "retries": {"attempts": 1}, "breaker": {"failures": 1}}
        judge = judging(server.url, config=config).session()
        whys = await asyncio.gather(*(error_message(judge.ask(question(str(number)))) for number in range(5)))
    assert len(server.asked) == 1
    assert ["not asked" in why for why in whys] == [False, True, True, True, True]


async def test_questions_that_the_breaker_refuses_use_none_of_the_rate_limit() -> None:
    async with openai_server(busy(None, 500)) as server, asyncio.timeout(20):
        config = {"requests_per_minute": 20, "retries": {"attempts": 1}, "breaker": {"failures": 1}}
        judge = judging(server.url, config=config).session()
        await error_message(judge.ask(question("0")))
        for number in range(1, 20):  # two requests can start at once; one is left
            assert "not asked" in await error_message(judge.ask(question(str(number))))
        await judge.ask(question(model="openai/other"))
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    "config", [{"concurrency": 1}, {"budget": {"tokens_per_day": 150}}], ids=lambda each: str(*each)
)
async def test_an_open_breaker_refuses_before_the_wait_for_another_model(config: dict[str, Any]) -> None:
    async with openai_server(busy(None, 500)) as server, asyncio.timeout(20):
        config |= {"retries": {"attempts": 1}, "breaker": {"failures": 1}}
        judge = judging(server.url, config=config).session()
        await error_message(judge.ask(question()))
        server.was_asked.clear()
        server.gate = asyncio.Event()
        other = asyncio.create_task(judge.ask(question(model="openai/other")))
        await server.was_asked.wait()
        assert "not asked" in await error_message(judge.ask(question()))
        server.gate.set()
        await other
