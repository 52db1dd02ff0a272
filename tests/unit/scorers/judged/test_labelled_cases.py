"""Tests the packaged labelled cases of each judged criterion, and how cases are read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable
from importlib.resources import files
from typing import Any

import pytest

from traceweir.scorers.evaluation.registry import BUILT_IN, PLACES
from traceweir.scorers.judge import Judge, Question, Reply
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.scorers.judged.labelled_cases import CasesError, labelled_cases, plain_cases, read_cases

CRITERIA = [name for name, place in PLACES.items() if place.startswith("judged.")]
FILES = sorted(
    (file for file in (files("traceweir.scorers.judged") / "cases").iterdir() if file.name.endswith(".jsonl")),
    key=lambda file: file.name,
)
OF_EACH_LABEL = {"en": 8, "ko": 8, "zh": 2, "ja": 2, "de": 2, "es": 2}
SCRIPTS = {
    "ko": "[가-힣]",
    "zh": "[\u4e00-\u9fff]",
    "ja": "[\u3040-\u30ff]",
    "en": "[A-Za-z]",
    "de": "[A-Za-z]",
    "es": "[A-Za-z]",
}
NOT_ABOUT_THE_CASE = ("id", "why", "check", "label")
LINE = {"id": "a", "language": "en", "label": "good", "question": "Why?", "answer": "Because."}


class AskedError(Exception):
    """Raised by the judge of these tests: the scorer has asked."""


class Raises(Judge):
    async def ask(self, question: Question) -> Reply:
        raise AskedError


def scorer_of(name: str) -> JudgedScorer:
    found: Any = BUILT_IN[name]()
    assert isinstance(found, JudgedScorer)
    return found


def lines(*documents: dict[str, Any]) -> str:
    return "\n".join(json.dumps(document) for document in documents)


@pytest.mark.parametrize("name", CRITERIA)
def test_a_criterion_has_as_many_good_as_bad_cases_in_each_language(name: str) -> None:
    counted = Counter((case.language, case.label) for case in labelled_cases(scorer_of(name)))
    assert counted == {(language, label): n for language, n in OF_EACH_LABEL.items() for label in ("good", "bad")}


@pytest.mark.parametrize("name", CRITERIA)
def test_two_plain_cases_pass_and_two_fail(name: str) -> None:
    assert sorted(case.label for case in plain_cases(scorer_of(name))) == ["bad", "bad", "good", "good"]


@pytest.mark.parametrize("name", CRITERIA)
async def test_a_criterion_can_judge_each_of_its_cases(name: str) -> None:
    scorer = scorer_of(name)
    for case in labelled_cases(scorer):
        asking = case.scorer(scorer)
        assert asking.judge_model_options.num_samples == 1
        measured = asking.score(case.subject(asking, Raises()))
        assert isinstance(measured, Awaitable)
        with pytest.raises(AskedError):
            await measured


def test_each_file_of_cases_belongs_to_a_criterion() -> None:
    asked = {scorer.asks_as or scorer.metric for scorer in map(scorer_of, CRITERIA)}
    assert len(FILES) == len(asked)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_the_cases_of_a_file_differ_say_why_and_are_in_their_language(file: Any) -> None:
    documents = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    about = {
        json.dumps({key: value for key, value in each.items() if key not in NOT_ABOUT_THE_CASE}) for each in documents
    }
    assert len(about) == len(documents)
    for each in documents:
        assert re.fullmatch(r"[^\n]{5,160}\.", each["why"]), each["id"]
        assert each["id"].startswith(each["language"] + "-")
        for turn in each.get("turns", [each]):
            assert re.search(SCRIPTS[each["language"]], turn["question"]), each["id"]


def test_cases_are_read_with_all_that_a_criterion_can_need() -> None:
    [case] = read_cases(
        "\n"
        + lines(
            {
                **LINE,
                "expected": "For a reason.",
                "facts": ["It has a reason."],
                "chunks": ["All has a reason."],
                "calls": [{"name": "look", "args": {"at": 1}, "response": "seen"}, {"name": "end"}],
                "rubrics": ["It is short.", "It is true."],
                "guidelines": ["Be short."],
            }
        )
    )
    assert case.must_pass
    [turn] = case.turns
    assert turn.reference is not None
    assert turn.reference.final_response is not None
    assert (turn.reference.final_response.text, turn.reference.expected_facts) == (
        "For a reason.",
        ["It has a reason."],
    )
    assert [chunk.content for chunk in turn.invocation.retrieved_context or ()] == ["All has a reason."]
    data: Any = turn.invocation.intermediate_data
    assert [call.id for call in data.tool_uses] == [response.id for response in data.tool_responses] == ["a-1", "a-2"]
    assert len(set(map(str, case.options["rubrics"]))) == 2  # type: ignore[arg-type]
    assert case.options["guidelines"] == ["Be short."]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no case; write one JSON object a line"),
        ("\n\n", "contains no case"),
        ("{", "line 1: document: Invalid JSON"),
        (lines({**LINE, "label": "maybe"}), "line 1: label: Input should be 'good' or 'bad'"),
        (lines(LINE, LINE), "line 2: id: 'a' is also the id of line 1; give each case an id of its own"),
        (lines({**LINE, "reply": "x"}), "line 1: reply: Extra inputs are not permitted"),
        (lines({key: LINE[key] for key in LINE if key != "language"}), "line 1: language: Field required"),
        (lines({**LINE, "question": ""}), "line 1: question: String should have at least 1 character"),
        (lines({**LINE, "calls": [{}]}), "line 1: calls.0.name: Field required"),
        ("[]", "line 1: document: Input should be an object"),
    ],
)
def test_a_line_that_is_no_case_is_refused_with_its_number(text: str, message: str) -> None:
    with pytest.raises(CasesError) as refused:
        read_cases(text)
    assert str(refused.value).startswith(message)


def test_all_lines_that_are_no_cases_are_named() -> None:
    with pytest.raises(CasesError) as refused:
        read_cases(lines(LINE) + "\n{\n" + lines({**LINE, "id": ""}))
    assert [line.split(":")[0] for line in str(refused.value).splitlines()] == ["line 2", "line 3"]
