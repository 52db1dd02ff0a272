"""A criterion is measured where cheaper ones point, and on a random share of the other sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from pydantic import JsonValue
from tests.support.scoring import NOW, make_session

from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.reference import Reference
from traceweir.schemas.score import Score
from traceweir.schemas.turns import Turn
from traceweir.scorers.evaluation.cascade import cascade_point, rounds_of
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.scorers.evaluation.runner import evaluate, sampling_point
from traceweir.scorers.scripted_judge import AgreeableJudge

REFERENCE = Reference(final_response=Content.of("blue sky"))
BELOW: JsonValue = {"any": [{"metric": "response_match_score", "below": 0.5}]}


def _plan(when: JsonValue = BELOW, **sections: JsonValue) -> Plan:
    # The dear criterion stands first: the order of a config is not that of the rounds.
    criteria: JsonValue = {"safety_v1": {"threshold": 1, "when": when}, "response_match_score": 0.8}
    return read_plan({"criteria": criteria, **sections})


def _scores(plan: Plan, answers: Sequence[str], session_id: str = "s", revision: int = 0) -> list[Score]:
    turns = [
        Turn(
            Invocation(invocation_id=f"i{n}", user_content=Content.of("?"), final_response=Content.of(answer)),
            REFERENCE,
        )
        for n, answer in enumerate(answers)
    ]
    session = make_session(session_id).model_copy(update={"revision": revision})
    return asyncio.run(evaluate(plan, session, turns, now=lambda: NOW, timeout_s=5, judge=AgreeableJudge()))


def _of(scores: Sequence[Score], metric: str = "safety_v1") -> list[Score]:
    return [score for score in scores if score.metric == metric]


def test_a_criterion_is_measured_if_its_condition_holds_and_the_scores_stay_in_the_order_of_the_config() -> None:
    scores = _scores(_plan(), ["green grass"])

    assert [score.metric for score in scores] == ["safety_v1"] * 2 + ["response_match_score"] * 2
    assert [(score.value, score.inclusion_probability) for score in _of(scores)] == [(1.0, None)] * 2


def test_a_criterion_whose_condition_does_not_hold_says_so() -> None:
    [score] = _of(_scores(_plan(), ["blue sky"]))

    assert (score.level, score.not_evaluated_because, score.cause) == ("session", "sampled_out", "cascade")
    assert score.rationale == "safety_v1 is measured if response_match_score < 0.5, else on 0% of the sessions"


def test_a_random_share_of_the_other_sessions_is_measured_and_its_scores_say_how_probable_that_was() -> None:
    plan = _plan({"any": [{"metric": "response_match_score", "status": "FAILED"}], "else": 0.25})
    names = [f"session-{n}" for n in range(200)]

    measured = {name: _of(_scores(plan, ["blue sky"], name))[-1] for name in names}

    chosen = {name for name, score in measured.items() if score.value is not None}
    assert chosen == {name for name in names if cascade_point(name) < 0.25}
    assert 20 < len(chosen) < 80
    assert {score.inclusion_probability for score in measured.values()} == {0.25}


def test_the_shares_of_sampling_and_of_a_cascade_are_drawn_apart_and_multiply() -> None:
    plan = _plan({"any": [{"metric": "response_match_score", "above": 1}], "else": 0.5}, sampling={"safety_v1": 0.5})
    names = [f"session-{n}" for n in range(200)]
    found = {name: _of(_scores(plan, ["blue sky"], name))[-1] for name in names}

    chosen = {name for name, score in found.items() if score.value is not None}
    assert chosen == {name for name in names if sampling_point(name) < 0.5 and cascade_point(name) < 0.5}
    assert {score.inclusion_probability for score in found.values()} == {0.25}
    causes = {score.cause for name, score in found.items() if sampling_point(name) >= 0.5}
    assert causes == {None}


def test_a_later_revision_that_is_left_out_takes_back_the_scores_of_the_former_one() -> None:
    before = _of(_scores(_plan(), ["green grass"]))
    after = _of(_scores(_plan(), ["blue sky"], revision=1))

    assert [score.result_id for score in after] == [score.result_id for score in before]
    assert {(score.status, score.cause) for score in after} == {("NOT_EVALUATED", "cascade")}


def test_criteria_are_measured_after_those_of_their_conditions() -> None:
    plan = _plan()
    assert [[metric.name for metric in metrics] for metrics in plan.rounds] == [["response_match_score"], ["safety_v1"]]
    assert [
        len(metrics) for metrics in read_plan({"criteria": {"response_match_score": 1, "completeness": 0.5}}).rounds
    ] == [2]
    assert rounds_of([]) == []


def test_the_condition_is_part_of_the_digest_of_the_config_and_of_no_result_id() -> None:
    one, other = _plan(), _plan({"any": [{"metric": "response_match_score", "below": 0.6}]})
    assert one.digest != other.digest
    assert one.metrics[0].digest == other.metrics[0].digest


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ("always", "criteria.safety_v1.when: must be an object"),
        ({"any": []}, "criteria.safety_v1.when.any"),
        ({"any": [{"metric": "response_match_score"}]}, "set one of status, below and above, not 0"),
        (
            {"any": [{"metric": "no_such", "below": 1}]},
            "'no_such' is not among the criteria; add it to criteria, or name another; known: ",
        ),
        ({"any": [{"metric": "response_match_scor", "below": 1}]}, "did you mean 'response_match_score'?"),
        ({"any": [{"metric": "safety_v1", "below": 1}]}, "criteria: safety_v1 waits for itself; remove its condition"),
        ({"any": [{"metric": "response_match_score", "below": 1}], "else": 2}, "criteria.safety_v1.when.else"),
        ({"any": [{"below": 1}]}, "criteria.safety_v1.when.any.0.metric: is missing"),
        (
            {"any": [{"metric": "response_match_score", "below": 1}], "or": 1},
            "there is no such option; known: any, else",
        ),
        (
            {"any": [{"metric": "response_match_score", "below": 7}]},
            (
                "criteria.safety_v1.when.any.0.below: must be a number from 0 to 1, as the values of response_match_score, not 7, "
                "with which it always holds"
            ),
        ),
        (
            {"any": [{"metric": "response_match_score", "below": -0.1}]},
            "as the values of response_match_score, not -0.1, with which it never holds",
        ),
        ({"any": [{"metric": "response_match_score", "above": 1.1}]}, "not 1.1, with which it never holds"),
        ({"any": [{"metric": "response_match_score", "above": -1}]}, "not -1, with which it always holds"),
    ],
)
def test_a_condition_that_cannot_be_used_is_refused(when: JsonValue, problem: str) -> None:
    with pytest.raises(ConfigError) as found:
        _plan(when)
    assert problem in str(found.value)


def test_a_circle_is_named_without_the_criteria_that_only_follow_it() -> None:
    def waiting_for(other: str) -> JsonValue:
        return {"threshold": 1, "prompt": "{answer}", "when": {"any": [{"metric": other, "below": 1}]}}

    criteria = {"one": waiting_for("two"), "two": waiting_for("one"), "third": waiting_for("one")}
    with pytest.raises(ConfigError) as found:
        read_plan({"criteria": criteria})
    assert found.value.problems == ["criteria: one, two wait for each other; remove one of their conditions"]


def test_a_criterion_that_the_gate_requires_has_no_condition() -> None:
    with pytest.raises(ConfigError, match=r"gate\.required: safety_v1 has the condition `when`"):
        _plan(gate={"required": ["safety_v1"]})


def test_a_criterion_behind_one_that_is_asked_by_chance_is_asked_by_chance() -> None:
    criteria: JsonValue = {
        "response_match_score": 0.8,
        "answered": {
            "threshold": 1,
            "when": {"any": [{"metric": "response_match_score", "status": "FAILED"}], "else": 0.25},
        },
        "safety_v1": {"threshold": 1, "when": {"any": [{"metric": "answered", "status": "PASSED"}]}},
    }
    plan = read_plan({"criteria": criteria})
    names = [f"session-{n}" for n in range(60)]

    found = {name: _of(_scores(plan, ["blue sky"], name))[-1] for name in names}

    assert {name for name, score in found.items() if score.value is not None} == {
        name for name in names if cascade_point(name) < 0.25
    }
    assert {score.inclusion_probability for score in found.values() if score.value is not None} == {0.25}


def test_a_turn_that_was_withdrawn_keeps_no_score_if_the_session_is_left_out_then() -> None:
    plan = _plan()
    session = make_session("s").model_copy(update={"revision": 1})
    left, gone = (
        Turn(Invocation(invocation_id=name, final_response=Content.of("blue sky")), REFERENCE) for name in ("i0", "i1")
    )
    scores = asyncio.run(
        evaluate(plan, session, [left], now=lambda: NOW, timeout_s=5, judge=AgreeableJudge(), withdrawn=[gone])
    )

    reasons = {score.invocation_id: score.not_evaluated_because for score in _of(scores)}
    assert reasons == {"i0": "sampled_out", "i1": "missing_input", None: "sampled_out"}


def test_a_condition_on_a_criterion_that_is_sampled_is_refused() -> None:
    with pytest.raises(ConfigError, match="is measured on a share of the sessions"):
        _plan(sampling={"response_match_score": 0.5})
