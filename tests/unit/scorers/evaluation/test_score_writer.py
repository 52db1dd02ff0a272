"""Tests the scores on the wire: their ids, their JSON, the trace value and the decision of the gate."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.support.fake_scorers import TURNS, Returns, plan_of
from tests.support.scoring import NOW, expecting, make_candidate, make_session, make_turn, scores_of

from traceweir.schemas.dimensions import UNKNOWN, Dimensions
from traceweir.schemas.invocation import FunctionCall
from traceweir.schemas.score import Score, result_id
from traceweir.schemas.turns import Turn
from traceweir.scorers import Measurement, read_plan
from traceweir.scorers.evaluation.score_writer import GateScores, ScoreWriter


async def test_the_result_id_depends_on_session_segment_and_options_but_not_on_the_threshold() -> None:
    async def ids(criterion: Any, session_id: str = "s", segment: int = 0) -> list[str]:
        plan = read_plan({"criteria": {"tool_trajectory_avg_score": criterion}})
        return [score.result_id for score in await scores_of(plan, TURNS, make_session(session_id, segment=segment))]

    again = await ids({"threshold": 0.1, "matchType": "exact"})
    assert await ids(1.0) == again
    everything = [again, await ids({"ignoreArgs": True}), await ids(1.0, "t"), await ids(1.0, "s", 1)]
    assert len({one for row in everything for one in row}) == 4 * 4


async def test_a_score_names_the_digest_that_its_result_id_is_made_of() -> None:
    plan = read_plan({"criteria": {"tool_trajectory_avg_score": 1.0}})
    found = [each for each in await scores_of(plan, TURNS) if each.metric == "tool_trajectory_avg_score"]
    assert {each.metric_digest for each in found} == {plan.metrics[0].digest}
    for each in found:
        subject = each.invocation_id or each.session_id
        made = result_id(each.session_id, each.segment, each.level, subject, each.metric, str(each.metric_digest))
        assert each.result_id == made


async def test_every_score_reads_back_from_its_json() -> None:
    tool = FunctionCall(name="도구", args={"a": [1, None, {"b": 0.1}]})
    turns: list[Turn] = [
        *TURNS,
        make_turn("#3", "예약했습니다 \u2028 🙂", [tool], expecting("예약했습니다", [])),
        make_turn("", "", [], expecting("", [tool])),
    ]
    plan = read_plan(
        {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8, "response_evaluation_score": 1}}
    )
    scores = await scores_of(plan, turns)
    assert len(scores) == 13
    assert [Score.model_validate_json(score.model_dump_json()) for score in scores] == scores


def test_the_trace_value_is_compared_with_the_gates_threshold() -> None:
    plan = read_plan({"gate": {"threshold": 0.5}})
    measured = [Measurement(value=value, rationale="so", details={"novelty": 0.1}) for value in (0.5, 0.49)]
    scores = [GateScores(plan, make_candidate(), NOW).trace_value(found) for found in measured]
    assert [(score.metric, score.level, score.value, score.threshold, score.status) for score in scores] == [
        ("trace_value", "trace", 0.5, 0.5, "PASSED"),
        ("trace_value", "trace", 0.49, 0.5, "FAILED"),
    ]
    assert (scores[0].trace_id, scores[0].invocation_id, scores[0].details) == ("kp:trace:1", None, {"novelty": 0.1})


def test_a_decision_is_a_score_with_its_reasons() -> None:
    scores = GateScores(read_plan({}), make_candidate(), NOW)
    yes = scores.decision(True, [], {"offset": 3})
    no = scores.decision(False, ["visibility", "privacy"], {})
    assert (yes.metric, yes.value, yes.threshold, yes.status) == ("gate", 1.0, 1.0, "PASSED")
    assert yes.details == {"offset": 3, "decision": "accepted", "reasons": []}
    assert (no.value, no.status, no.rationale) == (0.0, "FAILED", "rejected: visibility, privacy")
    assert no.details == {"decision": "rejected", "reasons": ["visibility", "privacy"]}
    assert yes.result_id == no.result_id


def test_the_scores_of_the_gate_have_the_dimensions_of_the_candidate() -> None:
    known: dict[str, Any] = {"agent_name": "travel", "labels": {"team": "search"}}
    built = GateScores(read_plan({}), make_candidate(**known), NOW)
    scores = [built.trace_value(Measurement(value=1.0)), built.decision(True, [], {})]
    assert [(each.agent_name, each.labels, each.source) for each in scores] == [(*known.values(), "code")] * 2


def test_a_score_has_the_dimensions_of_its_own_subject_only() -> None:
    plan = plan_of(Returns())
    writer = ScoreWriter(make_session(), NOW, NOW, plan, NOW)
    known = Dimensions(model="large", labels={"team": "search"})
    scores = [
        writer.score(plan.metrics[0], "invocation", "i", Measurement(value=1.0), NOW, dimensions)
        for dimensions in (known, UNKNOWN, known)
    ]
    assert [(each.model, each.labels) for each in scores] == [
        ("large", {"team": "search"}),
        (None, None),
        ("large", {"team": "search"}),
    ]


async def test_a_score_says_whether_code_or_a_model_measured_it() -> None:
    criteria: dict[str, Any] = {
        "response_match_score": 0.8,
        "safety_v1": 0.8,
        "per_turn_user_simulator_quality_v1": 0.5,
    }
    scores = await scores_of(read_plan({"criteria": criteria}), TURNS[:1])
    assert {score.metric: score.source for score in scores} == dict(zip(criteria, ("code", "model", None), strict=True))


@pytest.mark.parametrize("value", [True, 1, np.float32(1), np.float64(1)])
async def test_a_number_of_any_python_or_numpy_type_is_a_json_number_on_the_wire(value: Any) -> None:
    class This(Returns):
        returned = Measurement(value=value)

    for score in await scores_of(plan_of(This()), TURNS[:1]):
        assert score.wire() == Score.model_validate_json(score.wire()).wire()
        assert json.loads(score.wire())["value"] is not True


async def test_text_that_utf_8_cannot_encode_is_published_with_question_marks() -> None:
    class This(Returns):
        returned = Measurement(value=1.0, rationale="half \ud83d 🙂", details={"\ud83d": ["\ud83d", 10**30, "예"]})

    first, *_ = await scores_of(plan_of(This()), TURNS[:1])
    read = Score.model_validate_json(first.wire())
    assert read == first
    assert (read.rationale, read.details) == ("half ? 🙂", {"?": ["?", 10**30, "예"]})


async def test_the_schema_reads_the_scores_of_the_runner() -> None:
    for score in await scores_of(plan_of(Returns()), TURNS):
        assert Score.model_validate_json(score.wire()) == score
        assert Score.model_validate_json(score.model_dump_json()) == score
