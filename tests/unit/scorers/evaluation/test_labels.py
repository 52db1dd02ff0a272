"""Tests that feedback in an MLflow trace stands beside the score of the same metric, and changes no value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.mlflow import mlflow_run
from tests.support.scoring import make_session, scores_of

from traceweir.schemas.events import EVENT
from traceweir.schemas.score import Score
from traceweir.schemas.turns import turns_of
from traceweir.scorers import read_plan
from traceweir.scorers.scripted_judge import ScriptedJudge

NO = '{"rationale": "it is not", "result": "no"}'
CONFIG: Any = {"criteria": {"relevance_to_query": 0.5, "latency": {}}}


def feedback(name: str, value: Any, **changes: Any) -> dict[str, Any]:
    source = {"source_type": "HUMAN", "source_id": "kim@example.com"}
    return {"assessment_name": name, "source": source, "feedback": {"value": value}, "rationale": "r"} | changes


async def scored(*assessments: Any) -> dict[tuple[str, str], Score]:
    """Returns the scores of a trace with these assessments, by level and metric."""
    row = {"trace": mlflow_run(execution_duration_ms=51, assessments=list(assessments))}
    recorded = {"type": "invocation.recorded", "session_id": "s", "occurred_at": "2026-01-31T12:00:00Z", "row": row}
    session = make_session("s", events=[EVENT.validate_json(json.dumps(recorded))])
    found = await scores_of(read_plan(CONFIG), turns_of(session), session, judge=ScriptedJudge(NO))
    return {(each.level, each.metric): each for each in found}


RELEVANCE = "response/llm_judged/relevance_to_query/rating"


@pytest.mark.parametrize("name", ["relevance_to_query", RELEVANCE])
@pytest.mark.parametrize("value", ["yes", True, 0.5])
async def test_feedback_is_a_label_of_the_score_of_the_same_metric(name: str, value: Any) -> None:
    found = await scored(feedback(name, value), feedback("tone", "kind"))
    labels = {key: each.details["labels"] for key, each in found.items() if "labels" in each.details}
    assert labels == {("invocation", RELEVANCE): [{"value": value, "source_type": "HUMAN", "rationale": "r"}]}


async def test_a_label_changes_neither_value_nor_id() -> None:
    without, labelled = await scored(), await scored(feedback("relevance_to_query", "yes"))
    for key, score in labelled.items():
        details = {name: value for name, value in score.details.items() if name != "labels"}
        assert score.model_copy(update={"details": details}) == without[key]


@pytest.mark.parametrize(
    "assessment",
    [
        feedback("relevance_to_query", "yes", valid=False),
        feedback("relevance_to_query", None, feedback={"value": None, "error": {"error_code": "E"}}),
        feedback("relevance_to_query", ["yes"]),
        feedback("relevance_to_query", 10**400),
        {"assessment_name": "relevance_to_query", "expectation": {"value": "yes"}},
        feedback("relevance_to_query", "yes", assessment_name=7),
    ],
)
async def test_feedback_without_a_comparable_value_is_no_label(assessment: dict[str, Any]) -> None:
    assert all("labels" not in each.details for each in (await scored(assessment)).values())


async def test_the_texts_and_the_number_of_labels_are_bounded() -> None:
    hostile = "x\x1b[2J" + "y" * 1_000
    many = [feedback("relevance_to_query", hostile, rationale=hostile, source={"source_type": hostile})] * 50
    labels: Any = (await scored(*many))["invocation", RELEVANCE].details["labels"]
    assert len(labels) == 10
    assert all(len(text) <= 301 and "\x1b" not in text for label in labels for text in label.values())
