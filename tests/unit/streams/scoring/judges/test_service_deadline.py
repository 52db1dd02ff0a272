"""Tests that all attempts for a score and their pauses fit the time of the score, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.fake_scorers import plan_of
from tests.support.judged import Asks, judging
from tests.support.scoring import NOW, make_session, make_turn
from tests.support.slow_model import ModelError, SlowModel
from tests.support.virtual_time import run_in_virtual_time

from traceweir.schemas.judge_config import JudgeConfig
from traceweir.schemas.score import Score
from traceweir.scorers import evaluate

# Loading litellm takes seconds, so one process runs these tests.
pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]

RETRIES = JudgeConfig().retries.model_dump() | {"jitter_s": 0}


def score_in_virtual_time(timeout_s: float, samples: int = 1, **config: Any) -> tuple[Score, float]:
    """Returns the score of an invocation, and the seconds that it has taken."""

    async def score() -> tuple[Score, float]:
        plan = plan_of(Asks(samples=samples))
        judge = judging("http://127.0.0.1:1/v1", config={"retries": RETRIES, **config}).session()
        began = asyncio.get_running_loop().time()
        first, *_ = await evaluate(
            plan, make_session(), [make_turn()], now=lambda: NOW, timeout_s=60, judge=judge, judge_timeout_s=timeout_s
        )
        return first, asyncio.get_running_loop().time() - began

    return run_in_virtual_time(score())


@pytest.mark.parametrize("timeout_s", [61, 100, 300, 600])
def test_a_silent_model_ends_its_attempts_before_the_score_times_out(
    timeout_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    SlowModel(10_000).install(monkeypatch)
    score, seconds = score_in_virtual_time(timeout_s)
    assert score.not_evaluated_because == "error"
    assert "sent no complete answer within 60 s" in score.rationale
    assert seconds < timeout_s


def test_failures_have_all_attempts_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SlowModel(1)
    model.error = lambda: ModelError(500)
    model.install(monkeypatch)
    score, seconds = score_in_virtual_time(100)
    assert score.not_evaluated_because == "error"
    # After 0, 5 and 15 s; the next attempt would begin after 35 s, and the one after it after 75 s: too late.
    assert (model.asked, round(seconds)) == (4, 35)


def test_later_questions_of_a_score_share_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SlowModel(50)
    model.error = lambda: ModelError(500) if model.asked > 2 else None
    model.install(monkeypatch)
    score, _ = score_in_virtual_time(170, samples=3)
    assert score.not_evaluated_because == "error"
    assert model.asked == 4


def test_a_retry_that_has_waited_for_its_place_too_long_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    model = SlowModel(1)
    model.error = lambda: ModelError(500)
    model.install(monkeypatch)
    score, seconds = score_in_virtual_time(100, requests_per_minute=1)
    assert score.not_evaluated_because == "error"
    assert (model.asked, round(seconds)) == (1, 60)


def test_the_first_attempt_begins_even_if_the_score_has_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    SlowModel(1).install(monkeypatch)
    score, _ = score_in_virtual_time(30)
    assert score.value == 1
