"""What a config can never measure is said before, with the way out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.scoring import make_turn, scores_of

from traceweir.schemas.invocation import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    RetrievedChunk,
    Rubric,
    TokenUsage,
)
from traceweir.schemas.reference import Reference
from traceweir.schemas.turns import Turn
from traceweir.scorers import read_plan
from traceweir.scorers.databricks_names import short_name
from traceweir.scorers.evaluation.registry import BUILT_IN
from traceweir.scorers.evaluation.unmeasured import needing_references, never_measured
from traceweir.scorers.testing import AgreeableJudge

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


@pytest.mark.parametrize(
    ("condition", "because"),
    [
        ({"metric": "answered", "below": 0}, "answered < 0, and its values are from 0 to 1"),
        ({"metric": "answered", "below": 0.0}, "answered < 0, and its values are from 0 to 1"),
        ({"metric": "answered", "above": 1}, "answered > 1, and its values are from 0 to 1"),
        ({"metric": "max_tool_calls", "below": 0}, "max_tool_calls < 0, and its values are at least 0"),
        ({"metric": "mine", "below": 1}, "mine < 1, and its values are from 1 to 5"),
        ({"metric": "mine", "above": 5}, "mine > 5, and its values are from 1 to 5"),
        ({"metric": "latency", "status": "FAILED"}, "latency_seconds is FAILED, and it has no threshold"),
        ({"metric": "no_tool_errors", "status": "FAILED"}, "no_tool_errors is FAILED, and every value passes >= 0"),
        ({"metric": "tool_error_rate", "status": "FAILED"}, "tool_error_rate is FAILED, and every value passes <= 1"),
        (
            {"metric": "response_evaluation_score", "status": "PASSED"},
            "response_evaluation_score is PASSED, and it is never measured",
        ),
    ],
)
def test_a_criterion_whose_condition_never_holds_is_named(condition: Any, because: str) -> None:
    scale = {"lowest": 1, "lowest_means": "bad", "highest": 5, "highest_means": "good"}
    criteria: Any = {
        "answered": 1,
        "max_tool_calls": 3,
        "latency": {},
        "no_tool_errors": 0,
        "tool_error_rate": 1,
        "response_evaluation_score": 3,
        "mine": {"prompt": "Judge {answer}", "scale": scale, "threshold": 3},
        "user_frustration": {"threshold": 1, "when": {"any": [condition]}},
    }
    found = never_measured(read_plan({"criteria": criteria}))[-1]
    assert found == (
        f"user_frustration is never measured: no condition of `when` can hold ({because}); correct or remove `when`, or set "
        "`else`"
    )


@pytest.mark.parametrize(
    "condition",
    [
        {"metric": "answered", "below": 0.1},
        {"metric": "answered", "below": 1},
        {"metric": "answered", "above": 0},
        {"metric": "max_tool_calls", "above": 10**9},
        {"metric": "answered", "status": "FAILED"},
        {"metric": "latency", "status": "PASSED"},
        {"metric": "no_tool_errors", "status": "NOT_EVALUATED"},
    ],
)
def test_a_criterion_with_a_condition_that_can_hold_is_not_named(condition: Any) -> None:
    never = {"metric": "answered", "below": 0}
    criteria: Any = {
        "answered": 1,
        "max_tool_calls": 3,
        "latency": {},
        "no_tool_errors": 0,
        "user_frustration": {"threshold": 1, "when": {"any": [never, condition]}},
    }
    assert never_measured(read_plan({"criteria": criteria})) == []


async def test_a_condition_on_a_criterion_without_a_value_holds_where_it_asks_for_no_value() -> None:
    when: Any = {"any": [{"metric": "response_evaluation_score", "status": "NOT_EVALUATED"}]}
    plan = read_plan({"criteria": {"response_evaluation_score": 3, "answered": {"threshold": 1, "when": when}}})
    assert [sentence.split(" ")[0] for sentence in never_measured(plan)] == ["response_evaluation_score"]
    scores = await scores_of(plan, [make_turn("1", answer="yes")])
    assert "sampled_out" not in {score.not_evaluated_because for score in scores}


def test_all_conditions_that_never_hold_are_named() -> None:
    never = {"metric": "response_evaluation_score", "below": 3}
    when = {"any": [never, {"metric": "no_tool_errors", "above": 1}]}
    criteria: Any = {"response_evaluation_score": 3, "no_tool_errors": 1, "answered": {"threshold": 1, "when": when}}
    found = never_measured(read_plan({"criteria": criteria}))[1]
    assert "(response_evaluation_score < 3, and it is never measured; no_tool_errors > 1, and its values are" in found


def test_a_fallback_with_a_key_can_measure() -> None:
    config: Any = {"criteria": {"safety_v1": 1}, "judge": {"fallback": {"gemini-2.5-flash": ["openai/a"]}}}
    assert never_measured(read_plan(config), NO_KEY) == []
    assert len(never_measured(read_plan(config), {**NO_KEY, "openai/a": "OPENAI_API_KEY"})) == 1


def test_nothing_is_said_of_what_can_be_measured() -> None:
    plan = read_plan({"criteria": {"answered": 1, "safety_v1": 1, "response_match_score": 0.5}})
    assert never_measured(plan) == []
    assert never_measured(read_plan(None)) == []
    assert needing_references(read_plan(None)) == []


SHORT: Any = {"rubric_id": "short", "rubric_content": {"text_property": "The answer is one sentence."}}
REFERENCE = "references on the topic `references` (docs/input-formats.md)"


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        (
            "guidelines",
            {},
            (
                "guideline_adherence is measured only where a reference has guidelines: set "
                f"criteria.guidelines.guidelines, or put `guidelines` into {REFERENCE}"
            ),
        ),
        (
            "conversational_guidelines",
            {"guidelines": []},
            (
                "conversational_guidelines is measured only where a reference has guidelines: set "
                f"criteria.conversational_guidelines.guidelines, or put `guidelines` into {REFERENCE}"
            ),
        ),
        (
            "rubric_based_final_response_quality_v1",
            {},
            (
                "rubric_based_final_response_quality_v1 is measured only where an invocation or a reference has rubrics of the "
                "type FINAL_RESPONSE_QUALITY: set criteria.rubric_based_final_response_quality_v1.rubrics, or put `rubrics` "
                f"into {REFERENCE}"
            ),
        ),
        (
            "rubric_based_multi_turn_trajectory_quality_v1",
            {"rubrics": []},
            (
                "rubric_based_multi_turn_trajectory_quality_v1 is measured only where an invocation or a reference has rubrics "
                "of the type TRAJECTORY_QUALITY: set criteria.rubric_based_multi_turn_trajectory_quality_v1.rubrics, or put "
                f"`rubrics` into {REFERENCE}"
            ),
        ),
        (
            "mine",
            {"prompt": "Compare {answer} with {reference}."},
            (
                "mine is measured only where a reference has final_response, expected_facts, task or expected_outcome: leave "
                "{reference} out of criteria.mine.prompt, or put `final_response`, `expected_facts`, `task` or "
                f"`expected_outcome` into {REFERENCE}"
            ),
        ),
        (
            "mine",
            {"prompt": "Compare {dialogue} with {reference}.", "level": "session"},
            (
                "mine is measured only where a reference has task or expected_outcome: leave {reference} out of "
                f"criteria.mine.prompt, or put `task` or `expected_outcome` into {REFERENCE}"
            ),
        ),
    ],
)
def test_a_criterion_that_leaves_to_references_what_its_options_can_state_is_named(
    name: str, options: Any, sentence: str
) -> None:
    assert needing_references(read_plan({"criteria": {name: {"threshold": 1, **options}}})) == [sentence]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("guideline_adherence", {"guidelines": "The answer is polite."}),
        ("conversational_guidelines", {"guidelines": ["The answer is polite."]}),
        ("rubric_based_tool_use_quality_v1", {"rubrics": [SHORT]}),
        ("mine", {"prompt": "Judge {answer} with {context}, {instructions} and {tools}."}),
        ("answered", {"when": {"any": [{"metric": "other", "below": 1}]}}),
    ],
)
def test_a_criterion_that_has_what_it_needs_is_not_named(name: str, options: Any) -> None:
    criteria: Any = {name: {"threshold": 1, **options}, "other": {"prompt": "Judge {answer}.", "threshold": 1}}
    assert needing_references(read_plan({"criteria": criteria})) == []


def test_criteria_that_compare_with_a_reference_share_a_sentence() -> None:
    names = ["response_match_score", "trajectory_recall", "document_recall", "no_tool_errors"]
    [sentence] = needing_references(read_plan({"criteria": dict.fromkeys(names, 1.0)}))
    assert sentence.startswith(
        "measured only where a reference says what was expected: response_match_score, trajectory_recall, document_recall;"
    )


async def test_exactly_the_criteria_that_have_no_value_without_a_reference_are_named() -> None:
    options: dict[str, Any] = {
        "trajectory_single_tool_use": {"tool_name": "find"},
        "tool_call_accuracy": {"expected_tool": "find"},
        "forbidden_tools": {"tools": ["find"]},
        "response_contains": {"texts": ["a"]},
        "response_excludes": {"texts": ["a"]},
        "response_matches": {"pattern": "a"},
        "response_length": {"max_chars": 9},
    }
    criteria: Any = {
        name: {} if kind.informational else {"threshold": 1, **options.get(name, {})} for name, kind in BUILT_IN.items()
    }
    for name in ("reference", "answer"):
        criteria[f"own_{name}"] = {"prompt": f"Is it good? {{{name}}}", "threshold": 1}
    plan = read_plan({"criteria": criteria})
    needing = {metric.name for metric in plan.metrics if metric.scorer is not None and metric.scorer.needed_reference}
    for reference in (None, WHOLE_REFERENCE):
        scores = await scores_of(plan, [Turn(WHOLE_INVOCATION, reference)], judge=AgreeableJudge())
        missing = {score.metric for score in scores if score.not_evaluated_because == "missing_input"}
        assert missing == (needing if reference is None else set())
    named = " ".join(needing_references(plan))
    assert all(short_name(name) in named for name in needing)


WHOLE_INVOCATION = Invocation(
    invocation_id="1",
    user_content=Content.of("Is there a train to Seoul?"),
    final_response=Content.of("There is a train every hour."),
    intermediate_data=IntermediateData(
        tool_uses=[FunctionCall(id="1", name="find", args={"city": "Seoul"})],
        tool_responses=[FunctionResponse(id="1", name="find", response={"trains": 24})],
    ),
    retrieved_context=[RetrievedChunk(doc_uri="timetable", content="Every hour.")],
    token_usage=TokenUsage(input_tokens=900, output_tokens=30, total_tokens=930),
    latency_seconds=1.25,
    inference_call_count=2,
    app_details={"agent_details": {"clerk": {"instructions": "You book trains.", "tool_declarations": []}}},
)
WHOLE_REFERENCE = Reference(
    final_response=Content.of("Every hour."),
    tool_uses=[FunctionCall(name="find", args={"city": "Seoul"})],
    retrieved_context=[RetrievedChunk(doc_uri="timetable", content="Every hour.")],
    guidelines=["The answer is polite."],
    rubrics=[
        Rubric(rubric_id=kind, rubric_content={"text_property": "It is short."}, type=kind)
        for kind in ("FINAL_RESPONSE_QUALITY", "TOOL_USE_QUALITY", "TRAJECTORY_QUALITY")
    ],
)
