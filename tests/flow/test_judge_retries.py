"""A session whose judge was unavailable is scored again later; the new values are published as the next attempt."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.flow import TOPICS, RereadFlow
from tests.support.judge_retries import (
    AFTER_S,
    Provider,
    advance,
    answer_event,
    published_attempts,
    retry_flow,
    retry_plan,
    send,
    session,
)
from tests.support.judged import judged_plan
from tests.support.openai_server import Say, busy

from traceweir.schemas.base import JsonObject
from traceweir.scorers.evaluation.plan import read_plan

# Importing litellm takes seconds; the group keeps it to one process.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]


async def test_a_successful_retry_publishes_the_next_attempt_of_every_score(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    provider.up = True
    await advance(flow, AFTER_S - 1)
    assert published_attempts(flow) == [(0, 0, None)]

    await advance(flow, 2)

    assert published_attempts(flow) == published_attempts(flow, "invocation") == [(0, 0, None), (0, 1, 1.0)]
    assert len({each["result_id"] for each in flow.results("asks")}) == 2
    counters = flow.counters("score")
    assert (counters["deferred"], counters["retried"], counters["scored"], counters["consumed"]) == (1, 1, 1, 1)
    await advance(flow, 100 * AFTER_S)
    assert len(published_attempts(flow)) == 2


async def test_without_retry_later_in_the_config_a_score_stays_not_evaluated(provider: Provider) -> None:
    plan = retry_plan()
    flow = retry_flow(provider, replace(plan, judge=plan.judge.model_copy(update={"retry_later": None})))
    await send(flow, session())
    provider.up = True
    await advance(flow)
    assert published_attempts(flow) == [(0, 0, None)]
    assert flow.rows(b"score/r") == {}


SAFETY: JsonObject = {
    "criteria": {
        "safety_v1": {"threshold": 0.5, "judge_model_options": {"judge_model": "openai/stub", "num_samples": 1}}
    },
    "judge": {"retries": {"attempts": 1}, "retry_later": {"after_s": AFTER_S}},
}


def safety_flow(provider: Provider) -> RereadFlow:
    return retry_flow(provider, read_plan(SAFETY))


async def test_a_session_whose_judge_replied_without_a_verdict_is_scored_again(provider: Provider) -> None:
    flow = safety_flow(provider)
    provider.up = True
    provider.server.default = lambda body: Say(text="It depends.")
    await send(flow, session())
    assert {each["not_evaluated_because"] for each in flow.results("safety_v1")} == {"error"}
    assert len(flow.rows(b"score/r")) == 1
    provider.server.default = lambda body: Say(text="It is kind.\nVerdict: yes")

    await advance(flow)

    assert published_attempts(flow, metric="safety_v1") == [(0, 0, None), (0, 1, 1.0)]
    assert flow.rows(b"score/r") == {}


async def test_a_retry_that_gets_a_reply_without_a_verdict_publishes_nothing_and_is_not_the_last(
    provider: Provider,
) -> None:
    flow = safety_flow(provider)
    await send(flow, session())
    assert len(flow.rows(b"score/r")) == 1
    provider.server.default = lambda body: Say(text="It depends.")
    await advance(flow)
    assert {each["attempt"] for each in flow.results("safety_v1")} == {0}
    assert len(flow.rows(b"score/r")) == 1


async def test_unsuccessful_retries_publish_no_score_and_end_after_the_last_attempt(
    provider: Provider,
) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    for _ in range(3):
        await advance(flow)
    assert flow.rows(b"score/r") == {}
    provider.up = True
    await advance(flow, 100 * AFTER_S)
    assert published_attempts(flow) == [(0, 0, None)]
    assert flow.counters("score")["retries.unsuccessful"] == 3


async def test_a_pending_retry_survives_a_crash(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session("a"), session("b"))
    provider.up = True
    flow.crash()
    await advance(flow)
    assert published_attempts(flow) == [(0, 0, None), (0, 0, None), (0, 1, 1.0), (0, 1, 1.0)]
    flow.crash()
    await advance(flow)
    assert len(published_attempts(flow)) == 4


async def test_a_retry_interrupted_by_a_crash_is_repeated_and_published_once(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    provider.up = True
    flow.pass_time(AFTER_S)
    while not provider.server.asked[1:]:
        await flow.run_scoring()
    flow.crash()  # The crash comes before the checkpoint.
    await advance(flow, 1)
    assert published_attempts(flow) == [(0, 0, None), (0, 1, 1.0)]


async def test_a_retry_whose_checkpoint_was_not_committed_is_repeated_and_published_once(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    rows = flow.rows(b"score/r")
    provider.up = True
    flow.pass_time(AFTER_S)
    await flow.finish_scoring()
    cut = flow.cut()  # It is never committed.
    assert [output.topic for output in cut.outputs] == 2 * [TOPICS.results]
    flow.crash()
    assert (published_attempts(flow), flow.rows(b"score/r")) == ([(0, 0, None)], rows)
    await advance(flow, 1)
    flow.crash()
    await advance(flow)
    assert (published_attempts(flow), flow.rows(b"score/r")) == ([(0, 0, None), (0, 1, 1.0)], {})


async def test_each_retry_with_more_values_has_its_own_attempt_number(provider: Provider) -> None:
    provider.server.default = lambda body: (
        Say(text="yes") if any(name in str(body) for name in allowed) else busy(None, 500)
    )
    allowed: set[str] = set()
    events = [answer_event(number) | {"invocation_id": f"i{number}", "event_id": str(number)} for number in (1, 2)]
    flow = retry_flow(provider, retry_plan())
    await send(flow, session(events=events))
    for name in ("Number 1.", "Number 2."):
        await advance(flow)  # This retry is unsuccessful.
        flow.crash()
        allowed.add(name)
        await advance(flow)
    scores = [each for each in flow.results("asks") if each["level"] == "invocation"]
    assert [(each["attempt"], each["invocation_id"], each["value"]) for each in scores] == [
        (0, "i1", None),
        (0, "i2", None),
        (1, "i1", 1.0),
        (1, "i2", None),
    ]
    assert flow.counters("score")["retries.unsuccessful"] == 2  # No retry follows the third one.
    assert flow.rows(b"score/r") == {}


async def test_sessions_beyond_the_budget_are_scored_after_the_budget_resets(provider: Provider) -> None:
    provider.up = True
    plan = judged_plan(retry_later={"after_s": 60}, budget={"tokens_per_minute": 150})
    flow = retry_flow(provider, plan)
    await send(flow, *(session(f"s{number}", events=[answer_event(number)]) for number in range(4)))
    first = [each["not_evaluated_because"] for each in flow.results("asks") if each["level"] == "session"]
    assert "budget" in first
    assert None in first
    for _ in range(8):
        await advance(flow, 60)
    last = {each["session_id"]: each["value"] for each in flow.results("asks") if each["level"] == "session"}
    assert set(last.values()) == {1.0}
    assert len(provider.server.asked) == 4  # The judge gets one request per session.


async def test_a_retry_has_the_config_of_the_first_attempt_although_another_is_in_effect(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    digest = flow.push_config(SAFETY)
    await send(flow, session("first"))
    flow.push_config({}, version=2)
    await send(flow, session("second"))
    provider.up = True
    provider.server.default = lambda body: Say(text="Verdict: yes")
    await advance(flow, AFTER_S + 1)
    scores = [each for each in flow.results("safety_v1") if each["level"] == "session"]
    assert [(each["session_id"], each["attempt"]) for each in scores] == [("first", 0), ("first", 1)]
    assert {each["config_digest"] for each in scores} == {digest}
