"""Verdicts of judges and their cost are part of the checkpoint: a replay costs nothing, and a restart keeps them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from pydantic import SecretStr
from tests.support.flow import TOPICS
from tests.support.judged import KEY, judged_plan
from tests.support.openai_server import Say, busy, openai_server

from traceweir.schemas.judge_config import Budget, VerdictCache
from traceweir.scorers import Plan
from traceweir.streams.pipeline.score.judge_rows import JudgeRows
from traceweir.streams.scoring.judges.budget import JudgeBudget, Paid
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.scoring.judges.verdicts import JudgeUsage, JudgeVerdict
from traceweir.streams.testing import Flow, event, instant

# Importing litellm takes seconds; the group keeps it to one process.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]


def session(name: str, answer: str = "It ships today.", revision: int = 0) -> dict[str, Any]:
    completed = event("invocation.completed", name, final_response={"parts": [{"text": answer}]}, event_id="1")
    return {
        "session_id": name,
        "segment": 0,
        "revision": revision,
        "closed_because": "idle",
        "first_record_at": instant(0),
        "last_record_at": instant(1),
        "events": [completed],
        "traces": [],
    }


def flow_of(plan: Plan, url: str) -> Flow:
    flow = Flow(stages=("score",), plan=plan)
    return restarted(flow, plan, url)


def restarted(flow: Flow, plan: Plan, url: str) -> Flow:
    """Returns a flow with the same topics and rows, and with a new judge service as in a new process."""
    logs, table = flow.logs, flow.table
    fresh = Flow(
        stages=("score",), plan=plan, judging=lambda clock: Judging(plan.judge, Access(url, SecretStr(KEY)), clock)
    )
    fresh.logs, fresh.table = logs, table
    fresh.crash()
    return fresh


async def score(flow: Flow, *sessions: dict[str, Any]) -> list[Any]:
    before = len(flow.results("asks"))
    for each in sessions:
        flow.send(TOPICS.sessions, each)
    flow.lanes[0].drop()
    await settle(flow)
    return flow.results("asks")[before:]


async def settle(flow: Flow) -> None:
    flow.crash()
    lane = flow.lanes[0]
    while flow.logs[TOPICS.sessions, 0][lane.position[TOPICS.sessions] :]:
        await flow.take(TOPICS.sessions)
    pool = [task for task in asyncio.all_tasks() if "Pool._run" in str(task.get_coro())]
    if pool:
        await asyncio.wait(pool, timeout=60)
    flow.checkpoint()


async def test_a_session_that_another_process_scores_again_costs_no_tokens() -> None:
    plan = judged_plan(samples=3)
    async with openai_server(default=lambda body: Say(text="yes")) as server:
        flow = flow_of(plan, server.url)
        first = await score(flow, session("s"))
        assert [(each["value"], each["cost"]["cached"]) for each in first] == [(1.0, False), (1.0, False)]
        assert len(server.asked) == 3

        flow = restarted(flow, plan, server.url)
        again = await score(flow, session("s", revision=1))
        assert again[0]["cost"] == {"input_tokens": 0, "output_tokens": 0, "usd": 0.0, "cached": True}
        assert again[0]["value"] == 1.0
        assert len(server.asked) == 3

        other = await score(flow, session("s", "It never ships.", revision=2))
        assert not other[0]["cost"]["cached"]
    assert len(server.asked) == 6
    assert len(flow.rows(b"score/j")) == 6


async def test_stored_verdicts_are_not_used_after_the_cache_was_disabled() -> None:
    async with openai_server() as server:
        flow = flow_of(judged_plan(), server.url)
        await score(flow, session("s"))
        assert len(flow.rows(b"score/j")) == 1

        flow = restarted(flow, judged_plan(cache={"max_verdicts": 0}), server.url)
        again = await score(flow, session("s", revision=1))
    assert not again[0]["cost"]["cached"]
    assert len(server.asked) == 2
    assert flow.rows(b"score/j") == {}


async def test_the_tokens_of_today_count_against_the_budget_after_a_restart() -> None:
    plan = judged_plan(budget={"tokens_per_day": 160})
    async with openai_server() as server:
        flow = flow_of(plan, server.url)
        first = await score(flow, session("a"), session("b", "Another."), session("c", "A third."))
        evaluated = [each for each in first if each["level"] == "invocation" and each["status"] != "NOT_EVALUATED"]
        asked = len(server.asked)
        assert asked == len(evaluated) > 0
        flow = restarted(flow, plan, server.url)
        more = await score(flow, *(session(f"d{number}", f"Number {number}.") for number in range(20)))
    assert len(server.asked) * 12 <= 160
    refused = [each for each in more if each["level"] == "invocation" and each["not_evaluated_because"] == "budget"]
    assert refused
    assert len(more) == 40
    assert "the budget resets at " in refused[0]["rationale"]


async def test_an_unavailable_provider_leaves_scores_unevaluated_and_does_not_stop_the_stream() -> None:
    plan = judged_plan(breaker={"failures": 2})
    async with openai_server(default=lambda body: busy(None, 500)) as server:
        flow = flow_of(plan, server.url)
        found = await score(flow, *(session(f"s{number}", f"{number}") for number in range(10)))
    assert {each["not_evaluated_because"] for each in found} == {"error"}
    assert len(found) == 20
    assert len(server.asked) < 70  # The circuit breaker prevents 7 requests per session.
    assert flow.counters("score")["scored"] == 10


def verdict(number: int, at: int = 0) -> JudgeVerdict:
    return JudgeVerdict(number.to_bytes(16), at, f"said {number}")


def written_rows(rows: JudgeRows, table: dict[bytes, bytes]) -> dict[bytes, bytes]:
    for key, row in rows.rows():
        if row is None:
            table.pop(key, None)
        else:
            table[key] = row
    return table


def test_verdicts_beyond_the_limits_of_number_and_age_are_deleted() -> None:
    table: dict[bytes, bytes] = {}
    rows = JudgeRows(VerdictCache(max_verdicts=3, max_age_s=100))
    for number in range(5):
        rows.learn(b"s", JudgeUsage([verdict(number, at=number * 10_000)]))
    assert rows.known(b"s") == [verdict(number, at=number * 10_000) for number in (2, 3, 4)]
    assert rows.known(b"t") == []
    assert len(written_rows(rows, table)) == 3

    fresh = JudgeRows(VerdictCache(max_verdicts=3, max_age_s=100))
    fresh.load(table)
    assert fresh.known(b"s") == rows.known(b"s")
    fresh.tick(131)
    assert fresh.known(b"s") == [verdict(4, at=40_000)]
    assert len(written_rows(fresh, table)) == 1


def test_the_cost_of_a_partition_today_moves_with_the_partition() -> None:
    charged: list[Paid] = []
    table: dict[bytes, bytes] = {}
    rows = JudgeRows(VerdictCache(), charged.append)
    yesterday, today = 1_440 * 20_000 - 1, 1_440 * 20_000 + 5
    for minute, tokens, usd in ((yesterday, 7, 0.7), (today - 1, 10, 1.0), (today, 5, 0.5), (today, 1, 0.25)):
        rows.learn(b"s", JudgeUsage((), [Paid(minute, tokens, usd)]))
    assert charged == []  # The process that paid has already counted these tokens.
    written_rows(rows, table)
    rows.drop()
    assert sum(paid.tokens for paid in charged if paid.minute >= 1_440 * 20_000) == -16

    charged.clear()
    JudgeRows(VerdictCache(), charged.append).load(table)
    today_only = [paid for paid in charged if paid.minute >= 1_440 * 20_000]
    assert (sum(paid.tokens for paid in today_only), sum(paid.usd for paid in today_only)) == (16, 1.75)
    assert [paid.tokens for paid in charged if paid.minute == today] == [6]


def test_the_cost_of_an_app_moves_with_the_partition_in_a_row_of_its_own() -> None:
    table: dict[bytes, bytes] = {}
    rows = JudgeRows(VerdictCache())
    rows.learn(b"s", JudgeUsage((), [Paid(20, 7, 0.5, "apps.rail"), Paid(20, 7, 0.5), Paid(21, 2, 0.0, "metrics.m")]))
    written_rows(rows, table)
    without_accounts: dict[bytes, bytes] = {}
    plain = JudgeRows(VerdictCache())
    plain.learn(b"s", JudgeUsage((), [Paid(20, 7, 0.5)]))
    written_rows(plain, without_accounts)

    charged: list[Paid] = []
    fresh = JudgeRows(VerdictCache(), charged.append)
    fresh.load(table)

    assert sorted(charged) == [Paid(20, 7, 0.5), Paid(20, 7, 0.5, "apps.rail"), Paid(21, 2, 0.0, "metrics.m")]
    # The row of all questions is that of earlier versions, which leave the others alone.
    assert table[b"$"] == without_accounts[b"$"] == b"\x01" + msgspec.msgpack.encode([(20, 7, 0.5)])
    charged.clear()
    fresh.drop()
    assert sorted(charged) == [Paid(20, -7, -0.5), Paid(20, -7, -0.5, "apps.rail"), Paid(21, -2, 0.0, "metrics.m")]


def test_the_cost_of_all_days_moves_with_the_partition_for_a_budget_in_all() -> None:
    charged: list[Paid] = []
    table: dict[bytes, bytes] = {}
    rows = JudgeRows(VerdictCache())
    for day, usd in ((20_000, 0.5), (20_001, 0.25), (20_002, 0.125)):
        rows.learn(b"s", JudgeUsage((), [Paid(1_440 * day, 1, usd)]))
    written_rows(rows, table)

    JudgeRows(VerdictCache(), charged.append).load(table)

    budget = JudgeBudget(Budget(usd=1.0), lambda: datetime.fromtimestamp(86_400 * 20_003, UTC))
    for paid in charged:
        budget.record_spend(paid)
    assert budget.left() == {"usd": 0.125}
