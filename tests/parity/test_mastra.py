"""Compares completeness, keyword coverage, content similarity and tool call accuracy with @mastra/evals 1.10.2.

`record_mastra.mjs` recorded the files. The texts of `mastra_texts.json` are among the training texts of the weights of
completeness. A person who knew neither the rules nor the weights wrote the texts of `mastra_unseen_texts.json`; they
were recorded and measured after the rules and weights were complete. Keywords, similarity and tool calls agree
exactly. Completeness agrees approximately, because it predicts how compromise reads English.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from tests.support.scoring import make_turn, scores_of

from traceweir.schemas.invocation import Content, FunctionCall, Invocation
from traceweir.scorers import Subject, read_plan
from traceweir.scorers.base import Measurement
from traceweir.scorers.metrics.completeness import ElementComparison, completeness
from traceweir.scorers.metrics.content_similarity import ContentSimilarity
from traceweir.scorers.metrics.keyword_coverage import KeywordCoverage

DATA = Path(__file__).parent / "data"


def recorded(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((DATA / name).read_text("utf-8"))
    return rows


ORACLE = recorded("mastra_completeness_oracle.json")
LEARNT = recorded("mastra_texts.json")
UNSEEN = recorded("mastra_unseen_texts.json")
TEXTS = [*LEARNT, *UNSEEN, *recorded("mastra_edge_texts.json")]
CALLS = recorded("mastra_tool_calls.json")


def compared(row: dict[str, Any]) -> ElementComparison:
    return completeness(row["input"], row["output"], compat="mastra")


def jaccard(ours: list[str], theirs: list[str]) -> float:
    return len({*ours} & {*theirs}) / len({*ours, *theirs}) if ours or theirs else 1.0


def measured(scorer: ContentSimilarity | KeywordCoverage, row: dict[str, Any]) -> Measurement:
    content, answer = Content.of(row["input"]), Content.of(row["output"])
    return scorer.score(Subject(invocation=Invocation(user_content=content, final_response=answer)))


@pytest.mark.parametrize("row", ORACLE, ids=lambda row: row["input"][:30])
def test_the_first_rows_have_the_recorded_score(row: dict[str, Any]) -> None:
    assert compared(row).score == row["score"]


def test_the_first_rows_have_the_recorded_elements_except_one_word() -> None:
    differ = [
        row["input"]
        for row in ORACLE
        if {*compared(row).input_elements} != {*row["inputElements"]}
        or {*compared(row).output_elements} != {*row["outputElements"]}
        or {*compared(row).missing_elements} != {*row["missingElements"]}
    ]
    assert differ == ["Version 2.0 costs $1,000"], '"costs" is a verb here and is none there'


ON_TEXTS = pytest.mark.parametrize("rows", [UNSEEN, LEARNT], ids=["unseen", "learnt"])


@ON_TEXTS
def test_the_score_differs_by_less_than_0_03_on_average(rows: list[dict[str, Any]]) -> None:
    assert len(rows) >= 100
    assert mean(abs(compared(row).score - row["completeness"]["score"]) for row in rows) <= 0.03


@ON_TEXTS
def test_the_elements_have_a_mean_jaccard_index_of_0_95(rows: list[dict[str, Any]]) -> None:
    sides = [
        jaccard(ours, theirs)
        for row in rows
        for ours, theirs in [
            (compared(row).input_elements, row["completeness"]["inputElements"]),
            (compared(row).output_elements, row["completeness"]["outputElements"]),
        ]
    ]
    assert mean(sides) >= 0.95


@pytest.mark.parametrize(
    ("scorer", "recorded_as"),
    [
        (KeywordCoverage(compat="mastra"), "keywordCoverage"),
        (ContentSimilarity(compat="mastra"), "contentSimilarity"),
        (ContentSimilarity(compat="mastra", ignore_case=False), "contentSimilarityWithCase"),
    ],
)
def test_the_value_of_each_text_agrees(scorer: ContentSimilarity | KeywordCoverage, recorded_as: str) -> None:
    assert len(TEXTS) > 400
    for row in TEXTS:
        assert measured(scorer, row).value == row[recorded_as], row["input"]


@pytest.mark.parametrize("row", CALLS, ids=lambda row: json.dumps([row["options"], row["called"]]))
async def test_tool_call_accuracy_agrees(row: dict[str, Any]) -> None:
    plan = read_plan({"criteria": {"tool_call_accuracy": {"threshold": 1.0, **row["options"]}}})
    turn = make_turn(tools=[FunctionCall(name=name) for name in row["called"]])
    assert [score.value for score in await scores_of(plan, [turn])] == [row["score"], row["score"]]
