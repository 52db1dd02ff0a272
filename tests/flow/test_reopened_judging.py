"""A session that is reopened is judged again under the next revision, and unchanged turns are paid once."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue, SecretStr
from tests.support.flow import TOPICS
from tests.support.judge_retries import Provider
from tests.support.judged import KEY
from tests.support.openai_server import Say

from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.testing import START_S, Flow, event

# Importing litellm takes seconds; the group keeps it to one process.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]

SETTLE_S = 120
ANSWERS = ("The sun shines in Rome.", "It rains in Paris.", "Snow falls in Oslo.")


def plan_of(settle_s: float = 0) -> Plan:
    options: JsonValue = {"judge_model": "openai/stub", "num_samples": 1}
    criterion: JsonValue = {"threshold": 0.5, "judge_model_options": options, "settle_s": settle_s}
    prices: JsonValue = {"openai/stub": {"input": 1, "output": 1}}
    return read_plan({"criteria": {"safety_v1": criterion}, "judge": {"prices": prices}})


def flow_of(provider: Provider, plan: Plan) -> Flow:
    provider.up = True
    provider.server.default = lambda body: Say(text="It is kind.\nVerdict: yes")
    access = Access(provider.server.url, SecretStr(KEY))
    return Flow(plan, stages=("assemble", "score"), judging=lambda clock: Judging(plan.judge, access, clock))


async def advance(flow: Flow, seconds: float) -> None:
    flow.pass_time(seconds)
    for _ in range(3):
        await flow.settle()
        await flow.finish_scoring()
        flow.checkpoint()


async def say(flow: Flow, number: int) -> None:
    """Sends a turn, and waits until its session has closed and was scored."""
    said = {"user_content": {"parts": [{"text": f"And number {number}?"}]}}
    answered = {"final_response": {"parts": [{"text": ANSWERS[number]}]}}
    at = flow.now - START_S
    event_of_turn = event("invocation.completed", "s", event_id=f"{number}", invocation_id=f"i{number}", at=at)
    flow.send(TOPICS.invocations, event_of_turn | said | answered)
    await flow.settle()
    await advance(flow, flow.settings.idle_gap_s + 1)


def latest(flow: Flow, level: str = "invocation") -> list[Any]:
    found = {each["result_id"]: each for each in flow.results("safety_v1") if each["level"] == level}
    return list(found.values())


async def test_the_turns_that_a_reopened_session_had_before_have_equal_prompts_and_are_paid_once(
    provider: Provider,
) -> None:
    flow = flow_of(provider, plan_of())
    for number in range(3):
        await say(flow, number)

    assert [each["revision"] for each in flow.sessions()] == [0, 1, 2]
    prompts = [str(each["messages"][-1]["content"]) for each in provider.server.asked]
    assert [[answer in prompt for answer in ANSWERS] for prompt in prompts] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert [(each["revision"], each["value"], each["cost"]["cached"]) for each in latest(flow)] == [
        (2, 1.0, True),
        (2, 1.0, True),
        (2, 1.0, False),
    ]
    paid = sum(each["cost"]["usd"] for each in flow.results("safety_v1") if each["level"] == "invocation")
    assert paid == pytest.approx(3 * 12e-6)


async def test_events_that_come_late_one_after_the_other_buy_one_judgement_of_each_turn_after_the_wait(
    provider: Provider,
) -> None:
    plan = plan_of(SETTLE_S + 600)
    flow = flow_of(provider, plan)
    for number in range(3):
        await say(flow, number)
    assert provider.server.asked == []
    assert {each["cause"] for each in latest(flow)} == {"settling"}

    await advance(flow, SETTLE_S + 600)

    assert len(provider.server.asked) == 3
    assert [(each["revision"], each["attempt"], each["value"]) for each in latest(flow)] == [(2, 1, 1.0)] * 3
    assert [(each["revision"], each["value"]) for each in latest(flow, "session")] == [(2, 1.0)]
