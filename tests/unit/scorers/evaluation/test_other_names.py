"""The error for a metric of another tool says what is nearest here."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from traceweir.schemas.invocation import RetrievedChunk
from traceweir.scorers import ConfigError, read_plan
from traceweir.scorers.evaluation.other_names import nearest_here, other_names
from traceweir.scorers.evaluation.registry import known_metrics, scorer_class

TOOLS = {"MLflow", "DeepEval", "Ragas", "Mastra", "Phoenix", "openevals", "Azure AI Evaluation", "TruLens"}


def test_each_row_has_a_tool_a_known_metric_or_a_question_and_a_source() -> None:
    rows = other_names()
    assert {row.tool for row in rows} == TOOLS
    assert not {row.nearest for row in rows if row.nearest} - known_metrics()
    assert all(row.instead.endswith((".", "?")) and row.source.startswith("https://") for row in rows)
    assert max(Counter((row.tool, row.name) for row in rows).values()) == 1


@pytest.mark.parametrize("name", [row.name for row in other_names() if row.name not in known_metrics()])
def test_a_config_with_a_name_of_another_tool_is_refused_with_what_is_nearest(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_plan({"criteria": {name: 0.5}})
    [problem] = caught.value.problems
    [row, *_] = [row for row in other_names() if row.name == name]
    assert f"{name}: there is no such metric; it is a metric of " in problem
    assert row.tool in problem
    assert row.nearest in problem
    assert "docs/other-names.md" in problem


@pytest.mark.parametrize(
    "name", ["answer_relevancy", "AnswerRelevancyMetric", "answer-relevancy", "createAnswerRelevancyScorer"]
)
def test_the_spelling_of_a_name_does_not_count(name: str) -> None:
    found = nearest_here(name)
    assert found is not None
    assert "DeepEval, Ragas and Mastra" in found
    assert "'relevance_to_query'" in found


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("ragas.faithfulness", "hallucinations_v1"),
        ("deepeval.metrics.FaithfulnessMetric", "hallucinations_v1"),
        ("mlflow.genai.scorers.Safety", "safety"),
    ],
)
def test_the_module_of_a_name_does_not_count(name: str, nearest: str) -> None:
    assert repr(nearest) in str(nearest_here(name))


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("AnswerCorrectness", "correctness"),
        ("answer_relevance", "relevance_to_query"),
        ("LLMContextRecall", "context_sufficiency"),
        ("LLMContextPrecisionWithReference", "chunk_relevance_precision"),
        ("ContextEntitiesRecall", "context_sufficiency"),
        ("TopicAdherenceScore", "conversational_guidelines"),
        ("TurnFaithfulnessMetric", "hallucinations_v1"),
        ("ConversationalGEval", "rubric_based_multi_turn_trajectory_quality_v1"),
        ("MCPUseMetric", "tool_call_correctness"),
        ("QAEvaluator", "correctness"),
        ("RelevanceEvaluator", "relevance_to_query"),
        ("context_recall", "context_sufficiency"),
        ("toxicity_prompt", "safety"),
        ("IntentResolutionEvaluator", "conversation_completeness"),
        ("AGENT_TONE_PROMPT", "conversational_guidelines"),
        ("groundedness_measure_with_cot_reasons", "groundedness"),
    ],
)
def test_names_of_present_versions_are_in_the_table(name: str, nearest: str) -> None:
    assert repr(nearest) in str(nearest_here(name))


def test_names_that_tools_do_not_share_are_not_mixed_up() -> None:
    assert "Phoenix and Azure AI Evaluation, and the nearest here is 'chunk_relevance_precision' or " in str(
        nearest_here("RelevanceEvaluator")
    )
    assert "openevals, and the nearest here is 'correctness'" in str(nearest_here("CORRECTNESS_PROMPT"))


def test_advice_is_not_given_as_a_question_to_ask() -> None:
    found = str(nearest_here("AspectCritic"))
    assert "with a `prompt` (docs/judged-criteria.md). Put the definition of the aspect into the prompt;" in found
    assert "ask '" not in found


def test_a_metric_without_a_near_one_has_a_question_to_ask() -> None:
    assert "Is the answer correct in grammar" in str(nearest_here("fluency"))


@pytest.mark.parametrize("name", ["brevity", "", "metric", "a" * 10_000, "\x00"])
def test_a_name_that_no_tool_has_is_not_in_the_table(name: str) -> None:
    assert nearest_here(name) is None


def test_options_that_the_table_names_exist() -> None:
    own = {"prompt", "level"}
    named = [
        (row.nearest, option)
        for row in other_names()
        for option in re.findall(r'`"?([a-z_]+)', row.instead)
        if option not in known_metrics() | own | set(RetrievedChunk.model_fields)
    ]
    assert named
    assert not [each for each in named if each[1] not in scorer_class(each[0]).model_fields]
