"""The queue of judge retries: its limits, missing records, unavailable brokers and invalid records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.flow import TOPICS
from tests.support.judge_retries import (
    AFTER_S,
    Provider,
    advance,
    published_attempts,
    retry_flow,
    retry_plan,
    send,
    session,
    settle,
)

from traceweir.schemas.judge_config import RetryLater
from traceweir.streams.pipeline.score.judge_retries import AT_ONCE, PAUSE_S, JudgeRetries
from traceweir.streams.scoring.sessions.result import ScoringResult

# Importing litellm takes seconds; the group keeps it to one process.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]


def with_key(message: Any, key: bytes) -> Any:
    return message._replace(key=key) if hasattr(message, "_replace") else replace(message, key=key)


async def test_a_retry_expires_if_the_session_was_deleted_from_its_topic(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    provider.up, flow.first_offset = True, 1
    await advance(flow)
    assert (published_attempts(flow), flow.counters("score")["retries.expired"], flow.rows(b"score/r")) == (
        [(0, 0, None)],
        1,
        {},
    )


async def test_a_retry_waits_while_the_brokers_are_unavailable(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    provider.up = flow.brokers_fail = True
    for _ in range(5):
        await advance(flow)
    assert len(flow.read_again) == 5  # One read per wait, although the stage checks its queue more often.
    flow.brokers_fail = False
    await advance(flow, PAUSE_S + 1)
    assert published_attempts(flow) == [(0, 0, None), (0, 1, 1.0)]


async def test_beyond_max_sessions_the_oldest_pending_retries_are_dropped(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan(max_sessions=2))
    for name in "abc":
        await send(flow, session(name))
    provider.up = True
    await advance(flow)
    assert {each["session_id"] for each in flow.results("asks") if each["value"] == 1.0} == {"b", "c"}


async def test_due_retries_are_started_in_bounded_groups(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, *(session(f"s{number}") for number in range(3 * AT_ONCE)))
    provider.up = True
    counts: list[int] = []
    for _ in range(3):
        await advance(flow, AFTER_S if not counts else 1)
        counts.append(flow.counters("score")["retried"])
    assert counts == [AT_ONCE, 2 * AT_ONCE, 3 * AT_ONCE]


async def test_pending_retries_are_deleted_if_the_config_no_longer_has_retry_later(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session("a"))
    assert len(flow.rows(b"score/r")) == 1
    flow.plan = replace(flow.plan, judge=flow.plan.judge.model_copy(update={"retry_later": None}))
    flow.crash()
    provider.up = True
    await advance(flow)
    assert (published_attempts(flow), flow.rows(b"score/r")) == ([(0, 0, None)], {})


@pytest.mark.parametrize(
    "value",
    [
        b'{"segment": -1, "revision": 0}',
        b'{"session_id": "s", "segment": 4294967296, "revision": 0}',
        b'{"segment": 0}',
        b'{"segment": 0, "revision": "1", "first_record_at": "x"}',
        b"[" * 100_000,
        b"\xff",
    ],
)
async def test_an_unreadable_session_is_a_dead_letter_while_retries_are_pending(
    provider: Provider, value: bytes
) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session())
    provider.up = True
    await advance(flow)
    flow.send(TOPICS.sessions, value, b"s")
    await settle(flow)
    assert (flow.failures, [letter.reason for letter in flow.dead_letters()]) == ([], ["unreadable_session"])


async def test_a_session_with_a_revision_of_2_to_the_32_is_a_dead_letter(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    provider.up = True
    await send(flow, session("a", revision=2**32 - 1), session("b", revision=2**32))
    assert (flow.failures, published_attempts(flow)) == ([], [(2**32 - 1, 0, 1.0)])
    assert [letter.reason for letter in flow.dead_letters()] == ["unreadable_session"]


async def test_a_retry_expires_if_its_offset_holds_another_session(provider: Provider) -> None:
    flow = retry_flow(provider, retry_plan())
    await send(flow, session("a"))
    flow.logs[TOPICS.sessions, 0][0] = with_key(flow.logs[TOPICS.sessions, 0][0], b"b")
    provider.up = True
    await advance(flow)
    assert (published_attempts(flow), flow.counters("score")["retries.expired"]) == ([(0, 0, None)], 1)


def test_the_first_offset_is_the_lowest_although_sessions_begin_to_wait_in_any_order() -> None:
    retries = JudgeRetries(RetryLater())
    for name, offset in ((b"b", 8), (b"a", 5), (b"c", 9)):
        retries.note(name, offset, 1_000, ScoringResult(0, 0, 0, 1_000, [], [], {}, unanswered=1))
    assert retries.first_offset == 5
