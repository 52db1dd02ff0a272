"""Tests the cache of verdicts of the judge service."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.judged import Clock, judging, question
from tests.support.judged_criteria import ANSWERED
from tests.support.openai_server import Say, openai_server
from tests.support.scoring import make_session, scores_of

from traceweir.schemas.base import JsonObject
from traceweir.schemas.judge_config import VerdictCache
from traceweir.schemas.score import Cost
from traceweir.schemas.turns import Turn
from traceweir.scorers import read_plan
from traceweir.scorers.databricks_names import SAFETY
from traceweir.streams.scoring.judges.verdict_file import JudgeFile

pytestmark = [
    pytest.mark.xdist_group("litellm"),
    pytest.mark.slow,
]  # loading litellm takes seconds, so one process runs these tests


async def test_an_equal_question_is_answered_from_the_cache() -> None:
    async with openai_server(default=lambda body: Say(text=body["messages"][0]["content"])) as server:
        judges = judging(server.url)
        first = await judges.session().ask(question())
        again = judges.session()
        second = await again.ask(question())
        differences: list[dict[str, Any]] = [
            {"sample": 1},
            {"version": "2"},
            {"metric": "n"},
            {"model": "openai/b"},
            {"answer": {}},
        ]
        for changes in differences:
            assert not (await judges.session().ask(question(**changes))).cost.cached
    assert (second.text, second.cost, first.cost.cached) == (first.text, Cost(cached=True), False)
    assert len(server.asked) == 6
    assert again.judged.paid == []
    assert len(again.judged.verdicts) == 1  # the session stores the verdict in its own rows


async def test_concurrent_equal_questions_result_in_one_request() -> None:
    async with openai_server(default=lambda body: Say(after_s=0.05)) as server:
        judges = judging(server.url)
        replies = await asyncio.gather(*(judges.session().ask(question()) for _ in range(20)))
    assert len(server.asked) == 1
    assert sorted(reply.cost.cached for reply in replies) == [False, *[True] * 19]


async def test_when_the_asking_task_is_cancelled_a_waiting_task_asks() -> None:
    async with openai_server() as server:
        server.gate = asyncio.Event()
        judges = judging(server.url)
        first, second = (asyncio.create_task(judges.session().ask(question())) for _ in range(2))
        await server.was_asked.wait()
        first.cancel()
        server.gate.set()
        assert (await second).text == "yes"
    assert first.cancelled()


async def test_a_verdict_beyond_its_maximum_age_is_requested_again() -> None:
    clock = Clock()
    async with openai_server() as server:
        judge = judging(server.url, clock=clock, config={"cache": {"max_age_s": 60}}).session()
        await judge.ask(question())
        clock.go(seconds=59)
        assert (await judge.ask(question())).cost.cached
        clock.go(seconds=2)
        assert not (await judge.ask(question())).cost.cached


async def test_a_new_verdict_replaces_an_outdated_verdict_for_other_sessions() -> None:
    clock = Clock()
    async with openai_server() as server:
        judges = judging(server.url, clock=clock, config={"cache": {"max_age_s": 60}})
        first = judges.session()
        await first.ask(question())
        known = list(first.judged.verdicts)
        clock.go(seconds=61)
        second = judges.session(known)
        assert not (await second.ask(question())).cost.cached
        third = judges.session(known)  # the judge of another session, which knows only the outdated verdict
        assert (await third.ask(question())).cost.cached
    [new] = second.judged.verdicts
    assert new.at == known[0].at + 61_000
    assert third.judged.verdicts == [new]
    assert len(server.asked) == 2


async def test_verdicts_that_a_session_knows_are_used_after_the_cache_has_evicted_them() -> None:
    clock = Clock()
    async with openai_server() as server:
        earlier = judging(server.url, clock=clock).session()
        for number in range(3):
            await earlier.ask(question(str(number)))
        judge = judging(server.url, clock=clock, config={"cache": {"max_verdicts": 1}}).session(earlier.judged.verdicts)
        for number in range(3):
            assert (await judge.ask(question(str(number)))).cost.cached
    assert (judge.judged.verdicts, judge.judged.paid) == ([], [])
    assert len(server.asked) == 3


async def test_without_a_cache_every_question_is_a_request() -> None:
    async with openai_server() as server:
        judge = judging(server.url, config={"cache": {"max_verdicts": 0}}).session()
        for _ in range(3):
            assert not (await judge.ask(question())).cost.cached


async def test_verdicts_in_a_file_are_used_by_the_next_run(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "new" / "verdicts.sqlite3"
    async with openai_server() as server:
        for run in range(2):
            with JudgeFile(path, VerdictCache()) as file:
                judges = judging(server.url, clock=clock, store=file, note=file.pay)
                reply = await judges.session().ask(question())
                assert reply.cost.cached == bool(run)
                assert [paid.tokens for paid in file.paid()] == [12]
    assert len(server.asked) == 1
    assert path.stat().st_mode & 0o077 == 0


async def test_the_spending_of_an_app_is_known_to_the_next_run_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite3"
    limits = {"budget": {"apps": {"rail": {"tokens_per_day": 1_000}}}}
    async with openai_server() as server:
        for run in range(2):
            with JudgeFile(path, VerdictCache()) as file:
                judges = judging(server.url, store=file, note=file.pay, config=limits)
                await judges.session().ask(question(str(run), app_name="rail"))
    with JudgeFile(path, VerdictCache()) as file:
        assert sorted((paid.account, paid.tokens) for paid in file.paid()) == [("", 24), ("apps.rail", 24)]


async def test_two_criteria_with_the_same_question_pay_once_for_an_invocation() -> None:
    once: JsonObject = {"threshold": 0.5, "judge_model_options": {"judge_model": "openai/stub", "num_samples": 1}}
    plan = read_plan({"criteria": {"safety_v1": once, "safety": once}})
    async with openai_server(default=lambda body: Say(text="It is kind.\nVerdict: yes")) as server:
        judge = judging(server.url).session()
        found = await scores_of(plan, [Turn(ANSWERED)], make_session(), judge=judge)
        assert len(server.asked) == 1
    assert {(score.metric, score.value) for score in found} == {("safety_v1", 1.0), (SAFETY, 1.0)}
    assert len(judge.judged.paid) == 1
