"""Reasoning in messages is no text, and with `compat: "adk"` it is text, as Google ADK 2.13 joins all texts of the parts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.judged_criteria import one_sample, scores

from traceweir.schemas.invocation import Invocation
from traceweir.schemas.reference import Reference
from traceweir.schemas.turns import Turn
from traceweir.scorers import read_plan
from traceweir.scorers.base import Subject
from traceweir.scorers.metrics.response_match import ResponseMatch
from traceweir.scorers.scripted_judge import ScriptedJudge

PARTS = [{"text": "SECRET-THOUGHT", "thought": True}, {"text": "Oslo."}]
RUBRIC = {"rubric_id": "brief", "rubric_content": {"text_property": "The answer is brief."}}
INVOCATION = {
    "user_content": {"parts": [{"text": "Capital?"}]},
    "final_response": {"role": "model", "parts": PARTS},
    "intermediate_data": {"intermediate_responses": [["geo", PARTS]], "tool_uses": [], "tool_responses": []},
}
TURN = Turn(
    Invocation.model_validate_json(json.dumps(INVOCATION)),
    Reference.model_validate_json(json.dumps({"final_response": {"parts": [{"text": "Oslo"}]}})),
)


def score_of(**options: Any) -> float:
    return ResponseMatch(**options).score(Subject(invocation=TURN.invocation, reference=TURN.reference)).value


def test_reasoning_counts_as_words_of_the_answer_with_compat_alone() -> None:
    # Of three words of the answer, `secret`, `thought` and `oslo`, one is expected: 2 * (1/3 * 1) / (1/3 + 1).
    assert (score_of(), score_of(compat="adk")) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("final_response_match_v2", {}),
        ("rubric_based_final_response_quality_v1", {"rubrics": [RUBRIC]}),
        ("hallucinations_v1", {"evaluate_intermediate_nl_responses": True}),
    ],
)
async def test_a_judge_reads_reasoning_with_compat_alone(metric: str, options: dict[str, Any]) -> None:
    for compat, is_read in ((None, False), ("adk", True)):
        judge = ScriptedJudge(*["no verdict"] * 40)
        samples = {} if metric == "hallucinations_v1" else one_sample()
        await scores(metric, judge, TURN, compat=compat, **options, **samples)
        asked = "\n".join(question.prompt for question in judge.asked)
        assert "Oslo." in asked
        assert ("SECRET-THOUGHT" in asked) == is_read


@pytest.mark.parametrize("metric", ["response_match_score", "final_response_match_v2"])
def test_the_option_changes_no_id_of_results_without_it(metric: str) -> None:
    digests = [
        read_plan({"criteria": {metric: {"threshold": 0.5, **options}}}).digest for options in ({}, {"compat": None})
    ]
    assert digests[0] == digests[1] != read_plan({"criteria": {metric: {"threshold": 0.5, "compat": "adk"}}}).digest


def test_reasoning_is_written_nowhere() -> None:
    assert "SECRET" not in TURN.invocation.model_dump_json()
