"""Candidates and decisions that follow a successful judge retry."""

from __future__ import annotations

import pytest
from pydantic import SecretStr
from tests.support.flow import TOPICS
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
from tests.support.judged import KEY

from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.testing import Flow, instant

# Importing litellm takes seconds; the group keeps it to one process.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]


@pytest.mark.parametrize("required", [True, False])
async def test_a_retry_publishes_a_candidate_again_only_if_the_gate_requires_the_judged_criterion(
    provider: Provider, required: bool
) -> None:
    flow = retry_flow(provider, retry_plan(required=required))
    await send(flow, session())
    provider.up = True
    await advance(flow)
    candidates = [message.json for message in flow.read(TOPICS.candidates)]
    assert [(each["revision"], each["attempt"]) for each in candidates] == ([(0, 0), (0, 1)] if required else [(0, 0)])
    if required:
        assert candidates[1]["required"]["asks"]["status"] == "PASSED"


async def test_an_optional_judge_causes_no_second_candidate_even_if_the_digest_expired(
    provider: Provider,
) -> None:
    flow = retry_flow(provider, retry_plan(after_s=10 * AFTER_S))
    await send(flow, session())
    flow.pass_time(5 * AFTER_S)
    await send(flow, session("young", last_record_at=instant(5 * AFTER_S)))
    assert [key for key in flow.rows(b"score/t") if b"/ts" in key] == []
    provider.up = True
    await advance(flow, 5 * AFTER_S)
    assert (0, 1, 1.0) in published_attempts(flow)
    assert len(flow.read(TOPICS.candidates)) == 2


@pytest.mark.parametrize("crash", [True, False])
async def test_the_gate_prefers_the_candidate_of_a_retry_to_a_replayed_attempt_0(
    provider: Provider, crash: bool
) -> None:
    access = Access(provider.server.url, SecretStr(KEY))
    plan = retry_plan(required=True)
    flow = Flow(plan, stages=("score", "gate"), judging=lambda clock: Judging(plan.judge, access, clock))

    async def pass_time(seconds: float) -> None:
        flow.pass_time(seconds)
        await flow.settle()
        await flow.finish_scoring()
        await flow.settle()
        if crash:
            flow.crash()

    flow.send(TOPICS.sessions, session(), b"s")
    await pass_time(1)
    provider.up = True
    await pass_time(AFTER_S)
    provider.up = False
    copy = session(events=[answer_event(3)])  # Its prompt has no stored verdict, so the judge is asked again.
    flow.send(TOPICS.sessions, copy, b"s")
    await pass_time(1)
    provider.up = True
    flow.send(TOPICS.sessions, session(revision=1, events=[answer_event(3)], last_record_at=instant(5)), b"s")
    await pass_time(1)

    decided = [(each["revision"], each["attempt"], each["details"]["reasons"]) for each in flow.results("gate")]
    assert decided[1:] == [(0, 1, []), (0, 0, ["superseded"])]
    assert decided[0][:2] == (0, 0)
    assert decided[0][2] != []
    assert [message.value is not None for message in flow.read(TOPICS.network)] == [True]
