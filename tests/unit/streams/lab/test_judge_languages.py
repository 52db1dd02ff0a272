"""Tests what each judged criterion asks about its Korean and Chinese cases, and that an answer about them is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.asked_text import answer_with, assert_asked_in_english, assert_shows
from tests.support.judged import judging
from tests.support.openai_server import Say, openai_server

from traceweir.scorers.evaluation.registry import BUILT_IN, PLACES
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.scorers.judged.labelled_cases import labelled_cases
from traceweir.streams.lab.judge_check import NotingJudge, judge_cases

pytestmark = [pytest.mark.xdist_group("litellm"), pytest.mark.slow]

CRITERIA = [name for name, place in PLACES.items() if place.startswith("judged.")]
MODEL = {"judge_model_options": {"judge_model": "openai/m"}}
REASONS = {"ko": "에이전트의 답은 규칙에 맞습니다.", "zh": "助手的回答符合规则。"}


def schema_of(body: dict[str, Any]) -> Any:
    return body["response_format"]["json_schema"]["schema"]


def text_of(body: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in body["messages"])


@pytest.mark.parametrize("language", ["ko", pytest.param("zh", marks=pytest.mark.large)])
@pytest.mark.parametrize("criterion", CRITERIA)
async def test_a_case_is_asked_about_in_english_and_judged_with_a_reason_in_its_own_language(
    criterion: str, language: str
) -> None:
    scorer: Any = BUILT_IN[criterion](**MODEL)
    assert isinstance(scorer, JudgedScorer)
    cases = [case for case in labelled_cases(scorer) if case.language == language]
    assert cases

    def answer(body: dict[str, Any]) -> Say:
        found = answer_with(schema_of(body), REASONS[language])
        return Say(text=json.dumps(found, ensure_ascii=False), usage=(100, 10))

    async with openai_server(default=answer) as server:
        judge = NotingJudge(judging(server.url).session())
        found = await judge_cases(scorer, cases, judge)
    assert {each.problem for each in found.cases} == {""}
    number = len(server.asked)
    assert number >= len(cases)
    assert (found.cost.input_tokens, found.cost.output_tokens) == (100 * number, 10 * number)
    assert all(reply is not None and REASONS[language] in reply.text for _, reply in judge.asked)
    for body in server.asked:
        assert_asked_in_english(text_of(body), schema_of(body))
    for case in cases:
        assert_shows(case, [text_of(body) for body in server.asked])
