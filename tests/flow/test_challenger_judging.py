"""The judges of a challenger have a budget of their own, and ask nothing that the champion's judge has answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr
from tests.support.flow import TOPICS
from tests.support.judge_retries import session, settle
from tests.support.judged import KEY, judged_plan
from tests.support.openai_server import Say, busy, openai_server

from traceweir.scorers.evaluation.plan import Challenger, Plan
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.testing import Flow, event

# Importing litellm takes seconds; the group keeps it to one process.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]

PRICE: dict[str, Any] = {"prices": {"openai/stub": {"input": 1_000, "output": 1_000}}}
"""A price at which a question reserves about 0.1 USD, and costs about 0.012 USD."""


def plan_with(challenger: Plan, budget_usd: float | None = None, champion: Plan | None = None) -> Plan:
    champion = champion or judged_plan(**PRICE)
    return replace(champion, challenger=Challenger("v2", 1.0, budget_usd, challenger, {"samples": 3}))


def flow_of(plan: Plan, url: str) -> Flow:
    access = Access(url, SecretStr(KEY))
    return Flow(plan, stages=("score",), judging=lambda clock: Judging(plan.judge, access, clock))


def restarted(flow: Flow, plan: Plan, url: str) -> Flow:
    """Returns a flow with the same topics and rows, as in a new process."""
    fresh = flow_of(plan, url)
    fresh.logs, fresh.table = flow.logs, flow.table
    fresh.crash()
    return fresh


def named(name: str) -> dict[str, Any]:
    """Returns a session with a question of its own."""
    answer = {"parts": [{"text": f"Answer {name}."}]}
    return session(name, events=[event("invocation.completed", name, final_response=answer, event_id="1")], traces=[])


async def score(flow: Flow, *names: str) -> None:
    for name in names:
        flow.send(TOPICS.sessions, named(name), name.encode())
    await settle(flow)
    await settle(flow)


def of_session(scores: list[Any]) -> list[Any]:
    return [each for each in scores if each["level"] == "session"]


@pytest.mark.slow
async def test_a_question_that_the_champion_has_asked_is_not_asked_again() -> None:
    async with openai_server(default=lambda body: Say(text="yes")) as server:
        flow = flow_of(plan_with(judged_plan(samples=3, **PRICE)), server.url)
        await score(flow, "a")
        assert len(server.asked) == 3  # the champion asks one question, the challenger two more
        await score(flow, "a")  # the record again: the verdicts of both are stored
    assert len(server.asked) == 3
    assert len(flow.rows(b"score/j")) == 3
    assert [each["value"] for each in of_session(flow.challenger_results("v2"))] == [1.0, 1.0]


@pytest.mark.slow
async def test_the_budget_of_a_challenger_is_its_own_and_holds_over_restarts() -> None:
    plan = plan_with(judged_plan(samples=3, **PRICE), budget_usd=0.2)
    async with openai_server(default=lambda body: Say(text="yes")) as server:
        flow = flow_of(plan, server.url)
        for number in range(20):
            await score(flow, f"s{number}")
            flow = restarted(flow, plan, server.url)
    scores = flow.challenger_results("v2")
    paid = sum(each["cost"]["usd"] for each in scores if each["cost"])
    reasons = {each["not_evaluated_because"] for each in of_session(scores) if each["value"] is None}
    assert 0 < paid <= 0.2
    assert reasons == {"budget"}
    assert all(each["value"] == 1.0 for each in of_session(flow.results("asks")))
    assert len(of_session(scores)) == 20


@pytest.mark.slow
async def test_the_champions_budget_does_not_count_what_the_challenger_costs() -> None:
    champion = judged_plan(**PRICE, budget={"usd": 0.5})
    plan = plan_with(judged_plan(samples=20, **PRICE), champion=champion)
    async with openai_server(default=lambda body: Say(text="yes")) as server:
        flow = flow_of(plan, server.url)
        for number in range(5):
            await score(flow, f"s{number}")
            flow = restarted(flow, plan, server.url)
    assert sum(each["cost"]["usd"] for each in flow.challenger_results("v2") if each["level"] == "invocation") > 0.5
    assert all(each["value"] == 1.0 for each in of_session(flow.results("asks")))


async def test_a_challenger_whose_judge_fails_is_not_asked_again_and_the_champion_keeps_its_score() -> None:
    later: dict[str, Any] = {"retries": {"attempts": 1}, "retry_later": {"after_s": 1}}
    plan = plan_with(judged_plan(samples=2, **PRICE, **later), champion=judged_plan(**PRICE, **later))
    async with openai_server(Say(text="yes"), default=lambda body: busy(None, 500)) as server:
        flow = flow_of(plan, server.url)
        await score(flow, "a")  # only the first question of the champion has an answer
        flow.pass_time(10_000)
        await settle(flow)
        assert len(server.asked) == 2
    (failed,) = of_session(flow.challenger_results("v2"))
    assert (failed["value"], failed["not_evaluated_because"]) == (None, "error")
    assert [each["value"] for each in of_session(flow.results("asks"))] == [1.0]
    assert flow.rows(b"score/r") == flow.rows(b"score/w") == {}
