"""What the checks of the final response accept and refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.scoring import scores_of

from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.score import Score
from traceweir.schemas.turns import Turn
from traceweir.scorers import ConfigError, read_plan

NO_ANSWER = "the answer is not in the spans: set CONTENT=true"


async def checked(criterion: str, options: Any, answer: str | None, **more: Any) -> Score:
    final = None if answer is None else Content.of(answer, "model")
    invocation = Invocation(invocation_id="a", user_content=Content.of("?"), final_response=final, **more)
    [found, _] = await scores_of(read_plan({"criteria": {criterion: options}}), [Turn(invocation)])
    return found


@pytest.mark.parametrize(
    ("criterion", "options", "answer", "value"),
    [
        ("response_contains", {"texts": ["Oslo", "7:00"]}, "To Oslo at 7:00.", 1.0),
        ("response_contains", {"texts": ["Oslo", "8:00"]}, "To Oslo at 7:00.", 0.5),
        ("response_contains", {"texts": ["oslo"]}, "To Oslo.", 0.0),
        ("response_contains", {"texts": ["STRASSE"], "ignoreCase": True}, "Die Straße.", 1.0),
        ("response_contains", {"texts": ["Malm\u00f6"]}, "To Malmo\u0308.", 1.0),
        ("response_excludes", {"texts": ["sorry"]}, "Booked.", 1.0),
        ("response_excludes", {"texts": ["sorry", "cannot"]}, "I am sorry.", 0.5),
        ("response_matches", {"pattern": "^[A-Z]{3}[0-9]{3}$"}, "HAT030", 1.0),
        ("response_matches", {"pattern": "^[A-Z]{3}[0-9]{3}$"}, "It is HAT030", 0.0),
        ("response_matches", {"pattern": "(?i)flight (\\w+)"}, "Your FLIGHT HAT030", 1.0),
        ("response_matches", {"pattern": "(a+)+b"}, "a" * 100_000, 0.0),
        ("response_length", {"max_chars": 4}, "Oslo", 1.0),
        ("response_length", {"max_chars": 4}, "Oslo!", 0.0),
        ("response_length", {"min_chars": 5}, "Oslo", 0.0),
        ("response_length", {"min_chars": 5, "max_chars": 5}, "Malmo\u0308", 1.0),
        ("response_is_json", {}, '{"a": [1]}', 1.0),
        ("response_is_json", {}, "{'a': 1}", 0.0),
        ("response_is_json", {}, "NaN", 0.0),
        ("response_is_json", {}, "```json\n[1]\n```", 0.0),
        ("response_is_json", {"in_fence": True}, "```json\n[1]\n```", 1.0),
        ("response_is_json", {"in_fence": True}, "Here:\n```json\n[1]\n```", 0.0),
        ("answered", {}, "Yes.", 1.0),
        ("answered", {}, " \n", 0.0),
        ("answered", {}, None, 0.0),
    ],
)
async def test_a_check_of_the_response(criterion: str, options: Any, answer: str | None, value: float) -> None:
    found = await checked(criterion, options, answer)
    assert (found.value, found.status) == (value, "PASSED" if value == 1 else "FAILED")


SCHEMA = {
    "$id": "https://example.com/order",
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "string", "pattern": "^[a-z]*$"},
        "uniqueItems": {"type": "boolean"},
        "seats": {"type": "array", "items": {"$ref": "#/$defs/seat"}, "uniqueItems": True},
    },
    "additionalProperties": False,
    "$defs": {"seat": {"type": "integer", "minimum": 1}},
}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"id": "abc", "seats": [1, 2], "uniqueItems": True}, "the response has the form of the schema"),
        ({"seats": [1]}, "$: 'id' is a required property"),
        ({"id": "ABC"}, "$.id: 'ABC' does not match"),
        ({"id": "abc", "seats": [1, 0]}, "$.seats[1]: 0 is less than the minimum of 1"),
        ({"id": "abc", "seats": [1, 1]}, "$.seats: the list has equal items"),
        ({"id": "abc", "other": 1}, "$: Additional properties are not allowed"),
    ],
)
async def test_json_is_compared_with_the_schema(answer: Any, problem: str) -> None:
    found = await checked("response_is_json", {"json_schema": SCHEMA}, json.dumps(answer))
    assert found.rationale.startswith(problem)
    assert found.value == float("has the form" in problem)


async def test_json_that_is_nested_too_deeply_has_no_value_and_no_traceback() -> None:
    schema = {"items": {"$ref": "#"}}
    found = await checked("response_is_json", {"json_schema": schema}, "[" * 900 + "]" * 900)
    assert found.not_evaluated_because == "error"
    assert "nested too deeply" in found.rationale


@pytest.mark.parametrize(
    "options",
    [("response_contains", {"texts": ["a"]}), ("response_excludes", {"texts": ["a"]}), ("response_is_json", {})],
)
async def test_an_absent_answer_is_neither_right_nor_wrong(options: tuple[str, Any]) -> None:
    assert (await checked(*options, None)).not_evaluated_because == "missing_input"
    assert (await checked(*options, None)).cause is None
    assert (await checked(*options, None, unread=[NO_ANSWER])).cause == "not_recorded"


async def test_an_answer_that_was_not_recorded_is_no_question_without_an_answer() -> None:
    found = await checked("answered", {}, None, unread=[NO_ANSWER])
    assert (found.not_evaluated_because, found.cause) == ("missing_input", "not_recorded")
    failed = await checked("answered", {}, None, error="out of tokens")
    assert failed.rationale == "the question has no answer; the invocation failed: out of tokens"


async def test_a_session_answers_a_share_of_its_questions() -> None:
    turns = [
        Turn(Invocation(invocation_id=name, user_content=Content.of("?"), final_response=answer))
        for name, answer in (("a", Content.of("!", "model")), ("b", None))
    ]
    *_, whole = await scores_of(read_plan({"criteria": {"answered": {}}}), turns)
    assert (whole.value, whole.status) == (0.5, "FAILED")


@pytest.mark.parametrize(
    ("criterion", "options", "problem"),
    [
        ("response_contains", {}, "texts: is missing; the config must give it"),
        ("response_contains", {"texts": []}, "texts: List should have at least 1 item"),
        ("response_matches", {"pattern": "(?=a)"}, "RE2 does not accept the pattern: invalid perl operator: (?="),
        ("response_matches", {"pattern": "a*"}, "the pattern matches the empty text"),
        ("response_length", {}, "min_chars or max_chars must be given"),
        ("response_length", {"min_chars": 9, "max_chars": 3}, "min_chars (9) must not be above max_chars (3)"),
        ("response_is_json", {"json_schema": {"type": "integr"}}, "$.type of the schema: 'integr' is not valid"),
        (
            "response_is_json",
            {"json_schema": {"$ref": "https://example.com/a"}},
            "'https://example.com/a' is not in the schema",
        ),
        ("response_is_json", {"json_schema": {"$ref": "#/$defs/a"}}, "'#/$defs/a' is not in the schema"),
        (
            "response_is_json",
            {"json_schema": {"patternProperties": {}}},
            "patternProperties is not supported; remove it",
        ),
        ("response_is_json", {"json_schema": {"pattern": "(?=a)"}}, "$.pattern of the schema: RE2 does not accept"),
    ],
)
def test_an_option_that_cannot_be_used_is_reported(criterion: str, options: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_plan({"criteria": {criterion: options}})
    assert problem in str(refused.value)
