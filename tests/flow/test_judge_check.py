"""A worker checks the judge of a criterion by known cases: with stored verdicts, and without retries of an unfit one."""

from __future__ import annotations

import json

import pytest
from pydantic import SecretStr
from tests.support.flow import RereadFlow
from tests.support.judge_retries import AFTER_S, advance, published_attempts, send, session
from tests.support.judged import KEY
from tests.support.known_judges import BAD, case_of, judging_rightly
from tests.support.openai_server import OpenAiServer, openai_server

from traceweir.schemas.base import JsonObject
from traceweir.schemas.session import Session
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.pipeline.score.judge_rows import JudgeRows
from traceweir.streams.scoring.judges.client import Access
from traceweir.streams.scoring.judges.models import scorers_of
from traceweir.streams.scoring.judges.service import Judging
from traceweir.streams.scoring.sessions.options import ScoringOptions
from traceweir.streams.scoring.sessions.session_scoring import SessionScoring

# Importing litellm takes seconds; the group keeps it to one process.
pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]

MODEL: JsonObject = {"judge_model_options": {"judge_model": "openai/stub", "num_samples": 1}}
PLAN = read_plan(
    {
        "criteria": {"safety_v1": {"threshold": 0.5, **MODEL}},
        "judge": {"check": "require", "repairs": 0, "retries": {"attempts": 1}, "retry_later": {"after_s": AFTER_S}},
    }
)


def flow_of(server: OpenAiServer) -> RereadFlow:
    access = Access(server.url, SecretStr(KEY))
    return RereadFlow(
        PLAN,
        stages=("score",),
        judging=lambda clock: Judging(PLAN.judge, access, clock, criteria=scorers_of(PLAN)),
    )


async def test_a_process_that_starts_with_the_rows_of_a_partition_asks_no_known_case_again() -> None:
    async with openai_server(default=judging_rightly()) as server:
        flow = flow_of(server)
        await send(flow, session("a"))
        await send(flow, session("b"))
        restored = JudgeRows(PLAN.judge.cache)
        restored.load({key.removeprefix(b"score/"): row for key, row in flow.rows(b"score/j").items()})
        known = restored.known(b"c")
        asked = len(server.asked)
        judging = Judging(PLAN.judge, Access(server.url), flow.clock, criteria=scorers_of(PLAN))
        measure = SessionScoring(PLAN, None, flow.clock, ScoringOptions(5), judging=judging)
        result = await measure(Session.model_validate_json(json.dumps(session("c"))), known)
    assert published_attempts(flow, metric="safety_v1") == [(0, 0, 1.0)] * 2
    assert (asked, len(known)) == (5, 4)
    assert [case_of(each) for each in server.asked[asked:]] == [None]
    assert result.judged.known_cases == []


async def test_a_session_of_an_unfit_judge_is_not_scored_again() -> None:
    async with openai_server(default=judging_rightly(*BAD)) as server:
        flow = flow_of(server)
        await send(flow, session())
        await advance(flow)
        assert [each["cause"] for each in flow.results("safety_v1")] == ["judge_unfit"] * 2
        assert flow.rows(b"score/r") == {}
    assert len(server.asked) == 4
