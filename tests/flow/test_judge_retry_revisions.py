"""Retries of a judge beside later revisions, replayed revisions and reused ids of the same session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
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
    settle,
)
from tests.support.openai_server import Say, busy

from traceweir.streams.testing import event, instant

# Importing litellm takes seconds; the group keeps it to one process.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]


async def test_a_later_revision_of_the_session_starts_at_attempt_0(
    provider: Provider,
) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    provider.up = True
    await advance(flow)
    await send(flow, session(revision=1))
    await send(flow, session(segment=1))

    scores = [each for each in flow.results("asks") if each["level"] == "session"]
    assert [(each["segment"], each["revision"], each["attempt"]) for each in scores] == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 1, 0),
        (1, 0, 0),
    ]


async def test_a_pending_later_revision_replaces_the_previous_revision(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    flow.pass_time(AFTER_S / 2)
    await send(flow, session(revision=1))
    provider.up = True
    await advance(flow, AFTER_S / 2)
    assert published_attempts(flow) == [(0, 0, None), (1, 0, None)]
    await advance(flow, AFTER_S / 2)
    assert published_attempts(flow) == [(0, 0, None), (1, 0, None), (1, 1, 1.0)]


async def test_a_judged_later_revision_cancels_the_retry(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    provider.up = True
    await send(flow, session(revision=1))
    await advance(flow)
    assert published_attempts(flow) == [(0, 0, None), (1, 0, 1.0)]
    assert flow.rows(b"score/r") == {}


async def test_a_revision_that_is_scored_during_a_retry_cancels_the_retry(
    provider: Provider,
) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    flow.hold_reading = asyncio.Event()
    provider.up = True
    flow.pass_time(AFTER_S)
    await flow.run_scoring()
    flow.send(TOPICS.sessions, session(revision=1), b"s")
    await flow.take(TOPICS.sessions)
    while flow.lanes[0].stages["score"].counters["scored"] < 2:  # type: ignore[attr-defined]
        await flow.run_scoring()
    flow.hold_reading.set()
    await settle(flow)
    assert published_attempts(flow) == [(0, 0, None), (1, 0, 1.0)]


async def test_a_revision_that_is_deferred_during_a_retry_keeps_its_own_due_time(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    flow.hold_reading = asyncio.Event()
    flow.pass_time(AFTER_S)
    await flow.run_scoring()
    flow.send(TOPICS.sessions, session(revision=1), b"s")
    await flow.take(TOPICS.sessions)
    while flow.lanes[0].stages["score"].counters["scored"] < 2:  # type: ignore[attr-defined]
        await flow.run_scoring()
    flow.hold_reading.set()
    await settle(flow)
    provider.up = True
    await advance(flow, AFTER_S - 1)
    assert published_attempts(flow) == [(0, 0, None), (1, 0, None)]
    await advance(flow, 1)
    assert published_attempts(flow) == [(0, 0, None), (1, 0, None), (1, 1, 1.0)]


async def test_a_replayed_older_revision_does_not_change_the_pending_retry(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session(revision=1, last_record_at=instant(5)))
    provider.up = True
    await send(flow, session(revision=0))
    await advance(flow)
    assert published_attempts(flow) == [(1, 0, None), (0, 0, 1.0), (1, 1, 1.0)]


async def test_a_retry_of_a_replayed_revision_never_reuses_an_attempt_number(
    provider: Provider,
) -> None:
    events = [answer_event(number) | {"invocation_id": f"i{number}", "event_id": str(number)} for number in (1, 2)]
    provider.server.default = lambda body: Say(text="yes") if "Number 1." in str(body) and up else busy(None, 500)
    up = False
    flow = retry_flow(provider, retry_plan())
    await send(flow, session(events=events))
    up = True
    await advance(flow)
    await send(flow, session(events=events))
    provider.server.default = lambda body: Say(text="yes")
    await advance(flow)
    assert [attempt for _, attempt, _ in published_attempts(flow)] == [0, 1, 0, 2]
    assert published_attempts(flow)[-1] == (0, 2, 1.0)


async def test_the_highest_revision_and_attempt_of_a_segment_have_the_latest_score(
    provider: Provider,
) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    provider.up = True
    await advance(flow)
    provider.up = False
    await send(flow, session(revision=2, events=[answer_event(7)], last_record_at=instant(9)))
    provider.up = True
    await advance(flow)
    await send(flow, session(revision=1, last_record_at=instant(5)))  # A replayed dead letter.
    assert [(revision, attempt) for revision, attempt, _ in published_attempts(flow)] == [
        (0, 0),
        (0, 1),
        (2, 0),
        (2, 1),
        (1, 0),
    ]
    assert max(published_attempts(flow)) == (2, 1, 1.0)


async def test_no_version_number_is_used_twice_even_with_max_sessions_1(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan(max_sessions=1))
    for name in "abc":
        provider.up = False
        await send(flow, session(name, events=[event("invocation.completed", name, event_id=name)]))
        provider.up = True
        await advance(flow)
    for name in "abc":
        await send(flow, session(name, revision=1))
    versions = [(each["result_id"], each["revision"], each["attempt"]) for each in flow.results("asks")]
    assert len(versions) == len(set(versions))


async def test_a_new_session_with_a_used_id_starts_at_attempt_0(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    await send(flow, session(first_record_at=instant(9_000), last_record_at=instant(9_001), events=[answer_event(9)]))
    provider.up = True
    await advance(flow)
    assert published_attempts(flow) == [(0, 0, None), (0, 0, None), (0, 1, 1.0)]
    assert "Number 9." in provider.server.asked[-1]["messages"][-1]["content"]


async def test_the_revision_number_decides_the_order_and_not_the_timestamp(
    provider: Provider,
) -> None:
    flow = retry_flow(provider, retry_plan())
    completed = event("invocation.completed", "s", final_response={"parts": [{"text": "Later."}]}, event_id="2")
    clocks: dict[str, Any] = {"last_record_at": instant(100)}  # The clocks of both workers that closed it agree.
    for at, each in ((60, session(**clocks)), (50, session(revision=1, events=[completed], **clocks))):
        flow.send(TOPICS.sessions, each, b"s", at=at)
        await settle(flow)
    assert published_attempts(flow) == [(0, 0, None), (1, 0, None)]

    provider.up = True
    await advance(flow)

    assert published_attempts(flow) == [(0, 0, None), (1, 0, None), (1, 1, 1.0)]
    assert "Later." in provider.server.prompts[-1]
