"""A judged criterion can wait for a later revision of the session, and criteria with a condition on it wait too."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import JsonValue
from tests.support.scoring import NOW, make_session

from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.judge_config import VerdictCache
from traceweir.schemas.reference import Reference
from traceweir.schemas.score import Score
from traceweir.schemas.turns import Turn
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.limited_plan import limited
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.scorers.evaluation.runner import evaluate
from traceweir.scorers.evaluation.settling import asked_twice
from traceweir.scorers.scripted_judge import AgreeableJudge

SETTLING = [("invocation", "missing_input", "settling"), ("session", "missing_input", "settling")]
REFERENCE = Reference(final_response=Content.of("blue sky"))


def _plan(*, when: JsonValue = None, **sections: JsonValue) -> Plan:
    condition: dict[str, JsonValue] = {} if when is None else {"when": when}
    criteria: JsonValue = {
        "response_match_score": 0.8,
        "safety_v1": {"threshold": 1, "settle_s": 60, **condition},
        "hallucinations_v1": {"threshold": 1, "when": {"any": [{"metric": "safety_v1", "status": "FAILED"}]}},
    }
    return read_plan({"criteria": criteria, **sections})


def _scores(plan: Plan, answer: str = "green grass", *, settling: bool = True) -> list[Score]:
    said = Invocation(invocation_id="i", user_content=Content.of("?"), final_response=Content.of(answer))
    session = make_session("s")
    judge = AgreeableJudge()
    turns = [Turn(said, REFERENCE)]
    return asyncio.run(evaluate(plan, session, turns, now=lambda: NOW, timeout_s=5, judge=judge, settling=settling))


def _found(scores: Sequence[Score], metric: str) -> list[tuple[str, Any, Any]]:
    return [(score.level, score.not_evaluated_because, score.cause) for score in scores if score.metric == metric]


def test_criteria_that_do_not_wait_are_measured_at_once() -> None:
    scores = _scores(_plan())

    assert _found(scores, "response_match_score") == [("invocation", None, None), ("session", None, None)]
    assert _found(scores, "safety_v1") == SETTLING


def test_a_criterion_with_a_condition_on_one_that_waits_waits_too() -> None:
    scores = _scores(_plan())

    assert _found(scores, "hallucinations_v1") == SETTLING
    assert _found(_scores(_plan(), settling=False), "hallucinations_v1") == [("session", "sampled_out", "cascade")]


def test_a_session_that_is_left_out_anyway_does_not_wait() -> None:
    when: JsonValue = {"any": [{"metric": "response_match_score", "below": 0.5}]}
    assert _found(_scores(_plan(when=when), "blue sky"), "safety_v1") == [("session", "sampled_out", "cascade")]
    assert _found(_scores(_plan(when=when), "green"), "safety_v1") == SETTLING
    plan = read_plan({"criteria": {"safety_v1": {"threshold": 1, "settle_s": 60}}, "sampling": 0.0})
    assert _found(_scores(plan), "safety_v1") == [("session", "sampled_out", None)]


def test_without_another_attempt_to_come_nothing_waits() -> None:
    assert _found(_scores(_plan(), settling=False), "safety_v1")[-1] == ("session", None, None)
    assert {metric.settle_s for metric in limited(_plan(), None).metrics} == {0.0}


def test_the_wait_changes_neither_the_digest_of_the_config_nor_the_ids_of_results() -> None:
    with_wait, without = (
        read_plan({"criteria": {"safety_v1": {"threshold": 1, "settle_s": seconds}}}) for seconds in (60, 0)
    )
    assert (with_wait.digest, with_wait.metrics[0].digest) == (without.digest, without.metrics[0].digest)


@pytest.mark.parametrize("value", [-1, True, "60", None, [60], 604_801, 10**400])
def test_a_wait_that_is_no_number_of_seconds_in_range_is_a_problem(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"criteria.safety_v1.settle_s: must be a number of seconds from 0 to 604800"):
        read_plan({"criteria": {"safety_v1": {"threshold": 1, "settle_s": value}}})


def test_a_criterion_of_ones_own_can_wait() -> None:
    own: JsonValue = {
        "prompt": "Is it polite? {dialogue}",
        "threshold": 1,
        "level": "session",
        "scale": "yes_no",
        "settle_s": 90,
    }
    assert read_plan({"criteria": {"polite": own}}).metrics[0].settle_s == 90


def test_a_wait_before_a_criterion_that_asks_no_judge_is_a_problem() -> None:
    with pytest.raises(ConfigError, match=r"response_length.settle_s: response_length asks no judge"):
        read_plan({"criteria": {"response_length": {"max_chars": 9, "settle_s": 60}}})


AT_ONCE = "hallucinations_v1 does not wait, and is asked and paid twice: "


@pytest.mark.parametrize(
    ("cache", "cause"),
    [
        ({"max_verdicts": 0}, "judge.cache.max_verdicts is 0, so that no verdict is stored; raise it"),
        ({"max_age_s": 59}, "judge.cache.max_age_s is 59, and safety_v1 waits 60 s; raise it"),
    ],
)
def test_a_criterion_whose_verdict_is_not_kept_during_the_wait_of_another_one_is_named(
    cache: JsonValue, cause: str
) -> None:
    criteria: dict[str, JsonValue] = {"safety_v1": {"threshold": 1, "settle_s": 60}, "response_match_score": 0.8}
    assert _asked_twice(criteria, cache) == []
    found = _asked_twice({**criteria, "hallucinations_v1": 1}, cache)
    assert found == [f"{AT_ONCE}{cause}, or give hallucinations_v1 a settle_s"]


def test_without_a_wait_or_with_a_store_that_keeps_the_verdicts_no_criterion_is_asked_twice() -> None:
    waits: JsonValue = {"threshold": 1, "settle_s": 60}
    assert _asked_twice({"safety_v1": waits, "hallucinations_v1": 1}, {"max_age_s": 60}) == []
    assert _asked_twice({"safety_v1": 1, "hallucinations_v1": 1}, {"max_verdicts": 0}) == []
    assert asked_twice(_plan().rounds, VerdictCache(max_verdicts=0)) == []


def _asked_twice(criteria: JsonValue, cache: JsonValue) -> list[str]:
    plan = read_plan({"criteria": criteria, "judge": {"cache": cache}})
    return asked_twice(plan.rounds, plan.judge.cache)
