"""Tests that another model is asked when a model is unavailable, and never because of what it says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.fake_scorers import plan_of
from tests.support.judge_errors import error_message
from tests.support.judged import Asks, Clock, judging, question
from tests.support.openai_server import OpenAiServer, Say, busy, openai_server
from tests.support.scoring import make_turn, scores_of
from tests.support.slow_model import SlowModel
from tests.support.virtual_time import run_in_virtual_time

from traceweir.scorers.judge import SCORE_ENDS_AT_S, BudgetSpent, JudgeFailed
from traceweir.streams.scoring.judges.litellm_setup import load_litellm

# Loading litellm takes seconds, so one process runs these tests.
pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]

CONFIG: dict[str, Any] = {"fallback": {"openai/stub": ["openai/second", "openai/third"]}}


def models_asked(server: OpenAiServer) -> list[str]:
    return [body["model"] for body in server.asked]


def by_model(**says: Say) -> Any:
    """Returns a script in which each model answers in its own way; others answer yes."""
    return lambda body: says.get(body["model"], Say())


@pytest.mark.parametrize(
    "trouble",
    [
        busy(None, 500),
        busy("0"),
        busy("3600"),
        busy(None, 401),
        Say(body=b"<html>"),
        busy(None, 429, "insufficient_quota"),
    ],
)
async def test_the_second_model_is_asked_when_the_first_is_unavailable(trouble: Say) -> None:
    async with openai_server(default=by_model(stub=trouble)) as server:
        judge = judging(server.url, config=CONFIG).session()
        reply = await judge.ask(question())
    assert (reply.text, reply.model, models_asked(server)[-1]) == ("yes", "openai/second", "second")
    assert not judge.failed


async def test_the_second_model_is_asked_at_once_while_the_breaker_of_the_first_is_open() -> None:
    async with openai_server(default=by_model(stub=busy(None, 500))) as server:
        config = CONFIG | {"breaker": {"failures": 1, "open_s": 600}, "retries": {"attempts": 1}}
        judge = judging(server.url, config=config).session()
        replies = [await judge.ask(question(str(number))) for number in range(3)]
    assert [reply.model for reply in replies] == ["openai/second"] * 3
    assert models_asked(server) == ["stub", "second", "second", "second"]


@pytest.mark.parametrize("said", [Say(text=""), Say(text="perhaps"), busy(None, 400, "temperature"), Say(choices=0)])
async def test_no_other_model_is_asked_because_of_what_the_first_says(said: Say) -> None:
    async with openai_server(default=by_model(stub=said)) as server:
        judge = judging(server.url, config=CONFIG | {"repairs": 0}).session()
        try:
            reply = await judge.ask(question(problem=lambda reply: "no verdict"))
        except JudgeFailed:
            pass
        else:
            assert reply.model == "openai/stub"
    assert models_asked(server) == ["stub"]


@pytest.mark.parametrize("second", [Say(), Say(status=408, body=b"{}")])
async def test_the_cost_of_a_model_that_failed_stays_in_the_reply_and_in_the_failure(second: Say) -> None:
    prices = {f"openai/{name}": {"input": 1e4, "output": 1e5} for name in ("stub", "second")}
    config = {"fallback": {"openai/stub": ["openai/second"]}, "prices": prices, "retries": {"attempts": 1}}
    async with openai_server(default=by_model(stub=Say(status=408, body=b"{}"), second=second)) as server:
        session = judging(server.url, config=config).session()
        try:
            cost = (await session.ask(question())).cost
        except JudgeFailed as failed:
            cost = failed.cost
    assert models_asked(server) == ["stub", "second"]
    assert len(session.judged.paid) == 2
    assert cost.usd == pytest.approx(sum(paid.usd for paid in session.judged.paid))
    assert not cost.cached


async def test_an_answer_that_cannot_be_read_is_no_reason_to_ask_another_model() -> None:
    async with openai_server(default=by_model(stub=Say(body=b"no JSON"))) as server:
        config = CONFIG | {"retries": {"attempts": 1}}
        await error_message(judging(server.url, config=config).session().ask(question()))
    assert models_asked(server) == ["stub"]


async def test_a_spent_budget_asks_no_other_model() -> None:
    async with openai_server() as server:
        config = CONFIG | {"budget": {"tokens_per_day": 101}}
        await error_message(judging(server.url, config=config).session().ask(question()), BudgetSpent)
    assert server.asked == []


async def test_the_failure_of_all_models_names_each() -> None:
    async with openai_server(default=lambda body: busy(None, 401, f"{body['model']} is closed")) as server:
        why = await error_message(judging(server.url, config=CONFIG).session().ask(question()))
    assert all(f"{model} is closed" in why for model in ("stub", "second", "third"))
    assert models_asked(server) == ["stub", "second", "third"]


async def test_a_verdict_of_the_second_model_is_used_again_though_the_first_is_back() -> None:
    async with openai_server(default=by_model(stub=busy(None, 401))) as server:
        service = judging(server.url, config=CONFIG, clock=Clock())
        await service.session().ask(question())
        server.default = lambda body: Say(text="no")
        again = await service.session().ask(question())
        other = await service.session().ask(question("Another?"))
    assert (again.text, again.model, again.cost.cached) == ("yes", "openai/second", True)
    assert (other.text, other.model) == ("no", "openai/stub")


async def test_a_score_names_the_models_that_judged() -> None:
    # Both are asked at the same time, so that the order of the requests says nothing.
    def says(body: Any) -> Say:
        is_refused = body["model"] == "stub" and "two" in body["messages"][-1]["content"]
        return busy(None, 401) if is_refused else Say()

    async with openai_server(default=says) as server:
        judge = judging(server.url, config=CONFIG).session()
        turns = [make_turn("i1", "one"), make_turn("i2", "two")]
        first, second, session = await scores_of(plan_of(Asks()), turns, judge=judge)
    assert [first.judge, second.judge] == ["openai/stub", "openai/second"]
    assert session.judge == "openai/second + openai/stub"
    assert b'"judge":"openai/second"' in second.wire()


async def test_a_score_without_an_answer_names_no_judge() -> None:
    async with openai_server(default=lambda body: busy(None, 401)) as server:
        first, _ = await scores_of(plan_of(Asks()), [make_turn()], judge=judging(server.url).session())
    assert first.judge is None
    assert b'"judge"' not in first.wire()


def test_each_model_has_an_equal_share_of_the_time_of_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SlowModel(10_000)
    model.install(monkeypatch)

    async def seconds() -> float:
        SCORE_ENDS_AT_S.set(600)
        retries = {"initial_s": 5, "jitter_s": 0}
        judge = judging("http://127.0.0.1:1/v1", config=CONFIG | {"retries": retries, "timeout_s": 60}).session()
        with pytest.raises(JudgeFailed):
            await judge.ask(question())
        return SCORE_ENDS_AT_S.get() or 0

    assert run_in_virtual_time(seconds()) == 600
    # Each has more than 200 s, which three attempts fit, and four do not.
    assert model.asked == 9


@pytest.mark.parametrize("timeout_s", [60, 600])
def test_a_first_attempt_that_lasts_too_long_leaves_the_other_models_their_time(
    timeout_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowModel(10_000)
    quick = SlowModel(1)

    async def answer(**options: Any) -> Any:
        return await (slow if options["model"] == "openai/stub" else quick).acompletion(**options)

    monkeypatch.setattr(load_litellm(), "acompletion", answer)

    async def seconds() -> float:
        SCORE_ENDS_AT_S.set(600)
        config = CONFIG | {"timeout_s": timeout_s, "concurrency": 1, "retries": {"attempts": 1}}
        judge = judging("http://127.0.0.1:1/v1", config=config).session()
        # The second question waits for the place of the first.
        replies = await asyncio.gather(judge.ask(question("1")), judge.ask(question("2")))
        assert [reply.model for reply in replies] == ["openai/second"] * 2
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(seconds()) < 210


def test_what_a_model_cost_that_was_left_is_part_of_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowModel(10_000)
    quick = SlowModel(1)

    async def answer(**options: Any) -> Any:
        return await (slow if options["model"] == "openai/stub" else quick).acompletion(**options)

    monkeypatch.setattr(load_litellm(), "acompletion", answer)

    async def cost() -> tuple[float, float]:
        SCORE_ENDS_AT_S.set(600)
        prices = {f"openai/{name}": {"input": 1e4, "output": 1e5} for name in ("stub", "second")}
        config = CONFIG | {"timeout_s": 600, "prices": prices}
        judge = judging("http://127.0.0.1:1/v1", config=config).session()
        reply = await judge.ask(question())
        return reply.cost.usd, sum(paid.usd for paid in judge.judged.paid)

    score_usd, paid_usd = run_in_virtual_time(cost())
    assert score_usd == pytest.approx(paid_usd)
