"""What a config can never measure is said before, with the way out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.scoring import make_turn, scores_of

from traceweir.scorers import read_plan
from traceweir.scorers.evaluation.unmeasured import NEEDS_REFERENCE, needing_references, never_measured

NO_KEY = {"gemini-2.5-flash": "GEMINI_API_KEY"}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"criteria": {"response_evaluation_score": 3}}, ["response_evaluation_score", "use final_response_match_v2"]),
        ({"criteria": {"answered": 1}, "sampling": 0}, ["answered", "raise sampling.answered"]),
        (
            {"criteria": {"mine": 1}, "customMetrics": {"mine": {"codeConfig": {"name": "a.b"}}}},
            ["mine", "which Traceweir does not run", "write a criterion with a `prompt`"],
        ),
        ({"criteria": {"safety_v1": 1}}, ["safety_v1", "gemini-2.5-flash has no key; set GEMINI_API_KEY"]),
    ],
)
def test_a_criterion_without_any_value_is_named_with_the_way_out(config: Any, said: list[str]) -> None:
    [sentence] = never_measured(read_plan(config), NO_KEY)
    assert sentence.startswith(f"{said[0]} is never measured: ")
    assert all(part in sentence for part in said)


def test_a_criterion_that_waits_only_for_such_criteria_is_named_too() -> None:
    when = {"any": [{"metric": "response_evaluation_score", "below": 3}]}
    criteria: Any = {
        "response_evaluation_score": 3,
        "answered": {"when": when},
        "response_length": {"when": {**when, "else": 0.5}, "maxChars": 9},
    }
    found = never_measured(read_plan({"criteria": criteria}))
    assert [sentence.split(" ")[0] for sentence in found] == ["response_evaluation_score", "answered"]
    assert "remove `when`, or set `else`" in found[1]


def test_a_fallback_with_a_key_can_measure() -> None:
    config: Any = {"criteria": {"safety_v1": 1}, "judge": {"fallback": {"gemini-2.5-flash": ["openai/a"]}}}
    assert never_measured(read_plan(config), NO_KEY) == []
    assert len(never_measured(read_plan(config), {**NO_KEY, "openai/a": "OPENAI_API_KEY"})) == 1


def test_nothing_is_said_of_what_can_be_measured() -> None:
    plan = read_plan({"criteria": {"answered": 1, "safety_v1": 1, "response_match_score": 0.5}})
    assert never_measured(plan) == []
    assert never_measured(read_plan(None)) == []
    assert needing_references(read_plan(None)) is None


async def test_criteria_that_need_a_reference_are_named_and_have_no_value_without_one() -> None:
    names = ["response_match_score", "trajectory_recall", "document_recall", "no_tool_errors"]
    criteria: Any = dict.fromkeys(names, 1.0)
    plan = read_plan({"criteria": criteria})
    assert str(needing_references(plan)).startswith(
        "measured only where a reference says what was expected: response_match_score, trajectory_recall, document_recall;"
    )
    scores = await scores_of(plan, [make_turn("1", tools=[], answer="yes")])
    unmeasured = {score.metric for score in scores if score.not_evaluated_because == "missing_input"}
    assert unmeasured == {metric.name for metric in plan.metrics} & NEEDS_REFERENCE
