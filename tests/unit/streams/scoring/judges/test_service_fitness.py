"""Tests that the judge of a criterion is asked about known cases before its verdicts count."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.judged import Clock, judge_section
from tests.support.judged_criteria import ANSWERED, EXPECTED
from tests.support.known_judges import BAD, GOOD, case_of, judging_rightly
from tests.support.openai_server import OpenAiServer, Say, busy, openai_server
from tests.support.scoring import scores_of

from traceweir.schemas.base import JsonObject
from traceweir.schemas.score import Score
from traceweir.schemas.turns import Turn
from traceweir.scorers import Plan, read_plan
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.models import scorers_of
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.scoring.judges.session_judge import SessionJudge

# Loading litellm takes seconds, so one process runs these tests.
pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]

METRIC = "final_response_match_v2"


def plan_of(check: str, **judge: Any) -> Plan:
    options: JsonObject = {"judge_model": "openai/stub", "num_samples": 1}
    section = judge_section(check=check, repairs=0, **judge)
    return read_plan({"criteria": {METRIC: {"threshold": 0.5, "judge_model_options": options}}, "judge": section})


def judging_of(server: OpenAiServer, plan: Plan, **options: Any) -> Judging:
    return Judging(plan.judge, Access(server.url), Clock(), criteria=scorers_of(plan), **options)


async def score(plan: Plan, session: SessionJudge) -> Score:
    first, _ = await scores_of(plan, [Turn(ANSWERED, EXPECTED)], judge=session)
    await session.settle(None)
    return first


def about_sessions(server: OpenAiServer) -> list[str]:
    """Returns the models that were asked about a session, in order."""
    return [asked["model"] for asked in server.asked if case_of(asked) is None]


async def test_a_fit_judge_is_asked_about_each_known_case_once() -> None:
    plan = plan_of("require")
    async with openai_server(default=judging_rightly()) as server:
        judging = judging_of(server, plan)
        found = [await score(plan, judging.session()) for _ in range(2)]
    assert [each.value for each in found] == [1.0, 1.0]
    assert [case_of(asked) for asked in server.asked].count(None) == 1
    assert len(server.asked) == 5
    assert judging.unfit() == {METRIC: {"openai/stub": False}}


@pytest.mark.parametrize("wrong", [BAD[:1], BAD[1:2], GOOD[:2]])
async def test_no_session_is_sent_to_an_unfit_judge(wrong: tuple[str, ...], caplog: pytest.LogCaptureFixture) -> None:
    plan = plan_of("require")
    async with openai_server(default=judging_rightly(*wrong)) as server:
        judging = judging_of(server, plan)
        found = [await score(plan, judging.session()) for _ in range(2)]
    assert {(each.status, each.not_evaluated_because, each.cause) for each in found} == {
        ("NOT_EVALUATED", "error", "judge_unfit")
    }
    assert "is unfit to judge final_response_match_v2: of 4 known cases" in (found[0].rationale or "")
    assert about_sessions(server) == []
    assert judging.unfit() == {METRIC: {"openai/stub": True}}
    assert sum("is unfit for final_response_match_v2" in each.getMessage() for each in caplog.records) == 1


async def test_a_judge_that_fails_one_good_case_is_fit() -> None:
    plan = plan_of("require")
    async with openai_server(default=judging_rightly(GOOD[0])) as server:
        assert (await score(plan, judging_of(server, plan).session())).value == 1.0


async def test_an_answer_without_a_verdict_is_not_right() -> None:
    plan = plan_of("require")
    rightly = judging_rightly()
    async with openai_server(
        default=lambda asked: Say(text="Perhaps.") if case_of(asked) in GOOD[:2] else rightly(asked)
    ) as server:
        assert (await score(plan, judging_of(server, plan).session())).cause == "judge_unfit"


async def test_with_warn_an_unfit_judge_counts_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    plan = plan_of("warn")
    async with openai_server(default=judging_rightly(*BAD)) as server:
        judging = judging_of(server, plan)
        assert (await score(plan, judging.session())).value == 1.0
    assert judging.unfit() == {METRIC: {"openai/stub": True}}
    assert any("is unfit for final_response_match_v2" in each.getMessage() for each in caplog.records)


async def test_with_warn_a_question_does_not_wait_for_the_check() -> None:
    plan = plan_of("warn")
    async with openai_server(default=judging_rightly()) as server, asyncio.timeout(60):
        server.gate = asyncio.Event()
        scoring = asyncio.create_task(score(plan, judging_of(server, plan).session()))
        # The known cases, none of which is answered yet, and the session.
        await server.has_requests(5)
        server.gate.set()
        assert (await scoring).value == 1.0
    assert len(about_sessions(server)) == 1


async def test_without_a_check_nothing_else_is_asked() -> None:
    plan = plan_of("off")
    async with openai_server(default=judging_rightly(*BAD)) as server:
        judging = judging_of(server, plan)
        assert (await score(plan, judging.session())).value == 1.0
    assert (len(server.asked), judging.unfit()) == (1, {})


async def test_a_check_without_an_answer_decides_nothing_and_is_made_again() -> None:
    plan = plan_of("require", retries={"attempts": 1}, breaker={"failures": 100})
    async with openai_server(default=lambda asked: busy(None, 500)) as server:
        judging = judging_of(server, plan)
        first = await score(plan, judging.session())
        server.default = judging_rightly()
        second = await score(plan, judging.session())
    assert (first.cause, first.cost.usd if first.cost else 0) == ("judge_unavailable", 0)
    assert second.value == 1.0


async def test_a_spent_budget_decides_nothing() -> None:
    plan = plan_of("require", budget={"tokens_per_day": 120})
    async with openai_server(default=judging_rightly()) as server:
        judging = judging_of(server, plan)
        assert (await score(plan, judging.session())).not_evaluated_because == "budget"
    assert judging.unfit() == {}


async def test_each_model_of_the_fallback_is_checked_for_itself() -> None:
    plan = plan_of("require", fallback={"openai/stub": ["openai/second"]}, retries={"attempts": 1})
    rightly = judging_rightly()
    wrongly = judging_rightly(*BAD)
    async with openai_server() as server:
        server.default = lambda asked: busy(None, 401) if asked["model"] == "stub" else rightly(asked)
        found = await score(plan, judging_of(server, plan).session())
        assert (found.value, found.judge) == (1.0, "openai/second")
        server.default = lambda asked: busy(None, 401) if asked["model"] == "stub" else wrongly(asked)
        assert (await score(plan, judging_of(server, plan).session())).cause == "judge_unfit"


async def test_what_a_check_costs_is_paid_once_and_its_verdicts_are_given_to_each_session_without_them() -> None:
    plan = plan_of("require", prices={"openai/stub": {"input": 1e4, "output": 1e5}})
    async with openai_server(default=judging_rightly()) as server:
        judging = judging_of(server, plan)
        first = judging.session()
        second = judging.session()
        scored = await asyncio.gather(score(plan, first), score(plan, second))
        judged = first.judged, second.judged
        again = judging_of(server, plan).session([*judged[0].verdicts, *judged[0].known_cases])
        assert (await score(plan, again)).value == 1.0
    assert [len(each.known_cases) for each in judged] == [4, 4]
    assert sum(len(each.paid) for each in judged) == len(server.asked) == 5
    # A score costs what its own questions cost.
    assert sum((each.cost.usd for each in scored if each.cost), 0.0) == pytest.approx(0.3)
    assert (again.judged.known_cases, again.judged.paid) == ([], [])
