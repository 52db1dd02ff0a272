"""Tests that the questions in flight adapt to what a model can answer, in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.judged import judging, question
from tests.support.slow_model import ModelError, SlowModel
from tests.support.virtual_time import run_in_virtual_time

from traceweir.schemas.judge_config import JudgeConfig
from traceweir.scorers.judge import JudgeFailed

# Loading litellm takes seconds, so one process runs these tests.
pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]

RETRIES = JudgeConfig().retries.model_dump()
ADDRESS = "http://127.0.0.1:1/v1"


async def failures(count: int, **config: object) -> list[str]:
    """Asks questions at once, and returns why some have failed."""
    judge = judging(ADDRESS, config={"retries": RETRIES, **config}).session()
    found = await asyncio.gather(*(judge.ask(question(str(at))) for at in range(count)), return_exceptions=True)
    failed = [each for each in found if isinstance(each, BaseException)]
    assert all(isinstance(each, JudgeFailed) for each in failed)
    return [str(each) for each in failed]


@pytest.mark.parametrize("finishes", [False, True], ids=["drops abandoned questions", "answers abandoned questions"])
@pytest.mark.parametrize("timeout_s", [2.5, 5, 60])
@pytest.mark.parametrize("count", [30, 200])
def test_a_model_that_answers_one_question_a_second_answers_all(
    count: int, timeout_s: float, finishes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SlowModel(1, finishes=finishes)
    model.install(monkeypatch)
    assert run_in_virtual_time(failures(count, timeout_s=timeout_s)) == []


def test_the_wait_for_a_place_is_no_part_of_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SlowModel(1)
    model.install(monkeypatch)
    assert run_in_virtual_time(failures(30, timeout_s=1.5, concurrency=1, retries={"attempts": 1})) == []
    assert (model.asked, model.most_at_once) == (30, 1)


def test_a_model_that_refuses_what_is_too_much_answers_all(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SlowModel(1, at_once=2, busy_above=2)
    model.install(monkeypatch)
    assert run_in_virtual_time(failures(60)) == []


def test_a_fast_model_is_asked_as_much_as_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SlowModel(1, at_once=100)
    model.install(monkeypatch)
    assert run_in_virtual_time(failures(500, concurrency=40)) == []
    assert model.most_at_once == 40


def test_a_silent_model_opens_the_breaker(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SlowModel(1_000, at_once=100)
    model.install(monkeypatch)
    found = run_in_virtual_time(failures(100, breaker={"failures": 10}))
    assert len(found) == 100
    assert model.asked < 20


def test_a_model_that_fails_half_of_its_questions_is_not_taken_for_down(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SlowModel(1, at_once=100)
    model.error = lambda: ModelError(500) if model.asked % 2 else None
    model.install(monkeypatch)
    found = run_in_virtual_time(failures(100))
    assert not any("not asked" in each for each in found)
