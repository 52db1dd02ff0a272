"""Tests which sessions the sampling shares of a plan include."""

from __future__ import annotations

from typing import ClassVar

from tests.support.fake_scorers import TURNS, Raises, ScoresYes, plan_of, summary
from tests.support.scoring import scores_of

from traceweir.scorers import Measurement, Scorer, Subject, read_plan
from traceweir.scorers.evaluation.runner import sampling_point


async def test_a_session_outside_the_sample_has_one_score_per_metric() -> None:
    plan = plan_of(ScoresYes(), Raises(), share=0.0)
    assert [summary(score) for score in await scores_of(plan, TURNS)] == [
        ("session", None, "NOT_EVALUATED", "sampled_out", None)
    ] * 2


async def test_outside_the_sample_no_scorer_is_called() -> None:
    class Spends(Scorer):
        """Returns measurements with a cost."""

        calls: ClassVar[list[Subject]] = []

        def score(self, subject: Subject) -> Measurement:
            self.calls.append(subject)
            return Measurement(value=1.0)

    await scores_of(plan_of(Spends(), share=0.0), TURNS)
    assert Spends.calls == []
    await scores_of(plan_of(Spends()), TURNS)
    assert len(Spends.calls) == len(TURNS)


async def test_a_session_is_measured_by_every_metric_whose_share_includes_it() -> None:
    point = sampling_point("session-1")
    shares = {"response_match_score": point, "tool_trajectory_avg_score": min(1.0, point + 1e-9)}
    plan = read_plan({"criteria": dict.fromkeys(shares, 1.0), "sampling": dict(shares)})
    assert {score.metric: score.not_evaluated_because for score in await scores_of(plan, [])} == {
        "response_match_score": "sampled_out",
        "tool_trajectory_avg_score": "missing_input",
    }


def test_a_share_of_0_1_includes_a_tenth_of_the_sessions() -> None:
    taken = sum(sampling_point(f"session {number}") < 0.1 for number in range(10_000))
    assert 900 < taken < 1_100
