"""Metrics that compare words say for which languages their thresholds hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.scoring import scores_of

from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.reference import Reference
from traceweir.schemas.turns import Turn
from traceweir.scorers import read_plan
from traceweir.scorers.evaluation.languages import language_values, language_warning, language_warnings, sentences
from traceweir.scorers.metrics.completeness import Completeness

LANGUAGES = ["English", "German", "Spanish", "Russian", "Arabic", "Hindi", "Thai", "Chinese", "Japanese", "Korean"]


def test_the_sentences_are_complete_in_ten_languages() -> None:
    assert list(sentences()) == LANGUAGES
    parts = {"script", "question", "full", "short", "unrelated", "expected", "same", "opposite"}
    assert all(texts.keys() == parts and all(texts.values()) for texts in sentences().values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_completeness_tells_a_right_answer_from_one_to_another_question(language: str) -> None:
    [found] = [each for each in language_values(Completeness()) if each.language == language]
    assert found.holds(0.5)


def test_a_threshold_that_does_not_hold_is_named_with_the_languages() -> None:
    plan = read_plan({"criteria": {"keyword_coverage": 0.6, "response_match_score": 0.8, "completeness": 0.5}})
    untold = "does not tell right answers from wrong ones in our sentences of"
    [coverage, match] = language_warnings(plan.metrics)
    assert coverage.startswith(f"keyword_coverage compares words, not meaning: >= 0.6 {untold} Russian, Hindi;")
    assert coverage.endswith("; see docs/languages.md, or use relevance_to_query")
    assert f">= 0.8 {untold} all 10 languages that were tried; see docs/languages.md" in match
    assert match.endswith("or use final_response_match_v2")


@pytest.mark.parametrize("criteria", [{"completeness": 0.7}, {"keyword_coverage": 0.4}, {"response_match_score": 0}])
def test_nothing_is_said_of_one_language_or_of_a_threshold_that_every_answer_reaches(criteria: Any) -> None:
    assert language_warnings(read_plan({"criteria": criteria}).metrics) == []


def test_the_options_of_the_config_count() -> None:
    [warning] = language_warnings(
        read_plan({"criteria": {"completeness": {"threshold": 0.5, "compat": "mastra"}}}).metrics
    )
    assert "Korean" in warning
    assert "English" not in warning


@pytest.mark.parametrize(
    ("metric", "threshold", "details", "language"),
    [
        ("response_match_score", 0.8, {"script": "Hangul"}, "Korean"),
        ("completeness", 0.5, {"script": "Japanese", "compat": "mastra"}, "Japanese"),
        ("completeness", 0.5, {"script": "Japanese"}, None),
        ("response_match_score", 0.8, {}, None),
        ("response_match_score", 0.8, {"script": "Latin"}, None),
        ("response_match_score", 0, {"script": "Hangul"}, None),
        ("response_match_score", None, {"script": "Hangul"}, None),
        ("safety", 1.0, {"script": "Hangul"}, None),
        ("response_match_score", 0.8, {"script": ["Hangul"]}, None),
        ("response_match_score", 0.8, {"script": "Klingon"}, None),
    ],
)
def test_a_score_has_a_warning_where_its_threshold_does_not_hold(
    metric: str, threshold: float | None, details: Mapping[str, object], language: str | None
) -> None:
    warning = language_warning(metric, threshold, details)
    assert warning is None if language is None else warning is not None and f"In {language}, " in warning


@pytest.mark.parametrize(
    ("question", "answer", "script"),
    [
        ("서울 weather 어때요?", "서울은 오늘 맑습니다.", "Hangul"),
        ("図書館はどこ？", "図書館は駅の前です。", "Japanese"),
        ("图书馆在哪里？", "图书馆在车站前面。", "Han"),
        ("Wo hält die Straßenbahn?", "Die Straßenbahn hält am Markt.", None),
    ],
)
async def test_a_score_names_the_script_of_its_texts(question: str, answer: str, script: str | None) -> None:
    turn = Turn(
        Invocation(user_content=Content.of(question), final_response=Content.of(answer)),
        Reference(final_response=Content.of(answer)),
    )
    names = ["completeness", "keyword_coverage", "content_similarity"]
    scores = await scores_of(read_plan({"criteria": dict.fromkeys(names, 0.5)}), [turn])
    found = {score.details.get("script") for score in scores if score.level == "invocation"}
    assert found == {script}
