"""Compares the judged criteria with the results of google-adk 2.13.0 for the same replies.

`record_adk.py` records ADK's results. ADK requests every sample; here a vote ends when it is decided, so that only the
number of questions differs. Where ADK raises because there are no rubrics, or two with the same id, the metric is
NOT_EVALUATED and the session continues. For a verdict without a value ADK omits the rubric or writes null; here the
value is null.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.scoring import make_session, scores_of

from traceweir.schemas.invocation import Invocation, Rubric
from traceweir.schemas.reference import Reference
from traceweir.schemas.score import Cost, Score
from traceweir.schemas.turns import Turn
from traceweir.scorers import read_plan
from traceweir.scorers.judge import Judge, JudgeFailed, Question, Reply
from traceweir.scorers.judged.evidence import agent_of, context_of, steps_of
from traceweir.scorers.judged.hallucination_replies import read_labels, read_sentences
from traceweir.scorers.judged.replies import read_match
from traceweir.scorers.judged.rubric_replies import normalised, read_rubrics

ORACLE: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "adk_judge_oracle.json").read_text("utf-8"))
CASES: list[dict[str, Any]] = ORACLE["cases"]
TRAJECTORY = "rubric_based_multi_turn_trajectory_quality_v1"
R1 = Rubric(rubric_id="r1", rubric_content={"text_property": "Is concise."})
R2 = Rubric(rubric_id="r2", rubric_content={"text_property": "Uses “smart” quotes"})


def test_the_rows_are_of_this_version_and_of_every_kind() -> None:
    assert ORACLE["google-adk"] == "2.13.0"
    assert {case["metric"] for case in CASES} == {
        "final_response_match_v2",
        "rubric_based_final_response_quality_v1",
        "rubric_based_tool_use_quality_v1",
        "rubric_based_multi_turn_trajectory_quality_v1",
        "hallucinations_v1",
    }
    counts = {kind: len(rows) for kind, rows in ORACLE.items() if isinstance(rows, list)}
    assert counts == {
        "critiques": 27,
        "rubric_replies": 15,
        "normalised": 5,
        "sentences": 6,
        "labels": 9,
        "cases": 58,
    }


@pytest.mark.parametrize(("reply", "label"), ORACLE["critiques"])
def test_verdicts_on_responses_are_read_alike(reply: str, label: str) -> None:
    assert read_match(reply)["answer"].verdict is {"VALID": True, "INVALID": False, "NOT_FOUND": None}[label]


@pytest.mark.parametrize(("reply", "blocks"), ORACLE["rubric_replies"])
def test_verdicts_on_rubrics_are_read_alike(reply: str, blocks: list[list[Any]]) -> None:
    texts = {"is concise.": "r1", 'uses "smart" quotes': "r2"}
    named = [(name if name in ("r1", "r2") else texts.get(normalised(text)), score) for name, text, score in blocks]
    found = {
        name: None if vote.verdict is None else float(vote.verdict)
        for name, vote in read_rubrics(reply, [R1, R2], as_adk=True).items()
    }
    assert found == {name: score for name, score in named if name}


@pytest.mark.parametrize(("text", "normal"), ORACLE["normalised"])
def test_properties_are_normalised_alike(text: str, normal: str) -> None:
    assert normalised(text) == normal


@pytest.mark.parametrize(("reply", "sentences"), ORACLE["sentences"])
def test_sentences_are_read_alike(reply: str, sentences: list[str]) -> None:
    assert read_sentences(reply) == sentences


@pytest.mark.parametrize(("reply", "blocks"), ORACLE["labels"])
def test_labels_are_read_alike(reply: str, blocks: list[dict[str, str]]) -> None:
    found = [labelled.details(1_000) for labelled in read_labels(reply, ["s"] * 9)]
    assert found == [block | {"label": block["label"].lower()} for block in blocks]


class Recorded(Judge):
    """Returns the replies of the recorded judge, by the mark of the invocation and the number of the question."""

    def __init__(self, replies: list[list[Any]]) -> None:
        self.left = [list(lines) for lines in replies]
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> Reply:
        self.asked.append(question)
        marks = set(re.findall(r"\[inv-(\d)\]", question.prompt)) or {"0"}
        assert len(marks) == 1 or question.metric == TRAJECTORY
        line = self.left[int(max(marks))].pop(0)
        if isinstance(line, dict):
            raise JudgeFailed(line["raises"])
        return Reply(text=line or "", cost=Cost())


def turns_of(case: dict[str, Any]) -> list[Turn]:
    actual = [Invocation.model_validate(one) for one in case["actual"]]
    return [Turn(one, Reference(final_response=one.final_response) if case["expected"] else None) for one in actual]


async def measured(case: dict[str, Any], judge: Recorded) -> list[Score]:
    plan = read_plan({"criteria": {case["metric"]: case["criterion"] | {"compat": "adk"}}})
    return await scores_of(plan, turns_of(case), make_session(), judge=judge)


def rubrics_in(score: Score) -> dict[str, float]:
    found = score.details.get("rubrics", {})
    assert isinstance(found, dict)
    values = {name: entry["value"] if isinstance(entry, dict) else entry for name, entry in found.items()}
    return {name: value for name, value in values.items() if value is not None}  # type: ignore[misc]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
async def test_the_numbers_agree(case: dict[str, Any]) -> None:
    judge = Recorded(case["replies"])
    scores = await measured(case, judge)
    session = scores[-1]
    # A criterion of level `session` has one score, which ADK has at the last invocation.
    invocations = scores if case["metric"] == TRAJECTORY else scores[:-1]
    outcome = case["outcome"]
    if "raises" in outcome:
        because = "error" if "dup rubric id" in case["name"] else "missing_input"
        assert {(score.status, score.not_evaluated_because) for score in invocations} == {("NOT_EVALUATED", because)}
        assert judge.asked == []
        return
    assert [session.value, session.status] == [outcome["value"], outcome["status"]]
    if case["metric"] == TRAJECTORY:
        *earlier, last = outcome["invocations"]
        assert {status for _, status, _ in earlier} <= {"NOT_EVALUATED"}
        outcome = outcome | {"invocations": [last]}
    assert [[score.value, score.status] for score in invocations] == [row[:2] for row in outcome["invocations"]]
    for score, (_, _, rubrics) in zip(invocations, outcome["invocations"], strict=True):
        assert rubrics_in(score) == {name: value for name, value in rubrics if value is not None}
    assert rubrics_in(session) == {name: value for name, value in outcome["rubrics"] if value is not None}
    assert len(judge.asked) <= outcome["questions"]
    if case["metric"] == "hallucinations_v1":
        assert len(judge.asked) == outcome["questions"]
    lines = judge.asked[0].prompt.splitlines() if judge.asked else []
    assert [line for line in lines if line.startswith("*  [id: ")] == case["listed"]


@pytest.mark.parametrize(("invocation", "context"), ORACLE["context"]["of_final"])
def test_the_context_of_a_response_is_laid_out_alike(invocation: dict[str, Any], context: str) -> None:
    actual = Invocation.model_validate(invocation)
    instructions, tools = re.split(r"(?=^Tool definitions:)", agent_of(actual), flags=re.MULTILINE)
    question, steps = re.split(r"(?=^Grounding metadata:)", context_of(actual, steps_of(actual)), flags=re.MULTILINE)
    assert f"{instructions}{question}{tools}\n{steps}" == context.replace(r"\uc11c\uc6b8", "서울")
