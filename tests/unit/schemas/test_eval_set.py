"""Tests eval sets: Google ADK's rules, both spellings, both kinds of intermediate data, and the two old formats."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import JsonValue, ValidationError
from tests.support.eval_sets import case, content, eval_set, invocation
from tests.support.paths import ROOT

from traceweir.schemas.eval_set import EvalCase, EvalSet
from traceweir.schemas.eval_set_files import UnknownFormatError, format_of, in_snake_case, modern
from traceweir.schemas.invocation import FunctionCall

GOLDEN = ROOT / "tests" / "golden" / "1.0" / "EvalSet.json"
OLD_TURN: dict[str, JsonValue] = {
    "query": "Roll a die",
    "expected_tool_use": [{"tool_name": "roll_die", "tool_input": {"sides": 19}}],
    "expected_intermediate_agent_responses": [{"author": "roller", "text": "Rolling."}],
    "reference": "It is 17.",
}


def read(document: Any) -> EvalSet:
    return EvalSet.model_validate_json(json.dumps(document))


def camel(document: Any) -> Any:
    """Returns the document with camelCase keys, except within arguments and state."""
    if isinstance(document, dict):
        renamed = {}
        for key, value in document.items():
            head, *rest = key.split("_")
            free = key in ("args", "state", "response", "app_details", "final_session_state", "rubric_content")
            renamed[head + "".join(map(str.capitalize, rest))] = value if free else camel(value)
        return renamed
    return [camel(item) for item in document] if isinstance(document, list) else document


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "the case has neither"),
        ({"conversation": [], "conversation_scenario": {"starting_prompt": "Hi"}}, "the case has both"),
    ],
)
def test_a_case_is_a_conversation_or_a_scenario(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        EvalCase.model_validate({"eval_id": "a", **given})


def test_an_empty_conversation_is_valid() -> None:
    assert EvalCase(eval_id="a", conversation=[]).conversation == []


@pytest.mark.parametrize("place", [(), ("intermediate_data",)])
def test_an_unknown_key_within_an_invocation_is_rejected(place: tuple[str, ...]) -> None:
    turn = invocation("Hi", "Hello.", [])
    at: Any = turn
    for key in place:
        at = at[key]
    at["final_reponse"] = 1
    with pytest.raises(ValidationError, match="final_reponse"):
        read(eval_set(case("a", turn)))


def test_an_unknown_key_outside_an_invocation_is_ignored() -> None:
    document = eval_set(case("a", invocation("Hi", "Hello.", []), tags=["slow"]), owner="me")
    assert read(document).eval_cases[0].eval_id == "a"


def test_both_kinds_of_intermediate_data_contain_the_calls_in_order() -> None:
    calls: list[dict[str, Any]] = [{"name": "find", "args": {"a": None}}, {"name": "book"}]
    events = [{"author": "x", "content": {"parts": [{"text": "Now."}, {"function_call": call}]}} for call in calls]
    by_kind = {**invocation("Hi", "Hello.", calls)}
    by_event = {**by_kind, "intermediate_data": {"invocation_events": events}}

    [one] = read(eval_set(case("a", by_kind, by_event))).eval_cases
    assert one.conversation is not None

    expected = [FunctionCall(name="find", args={"a": None}), FunctionCall(name="book")]
    assert [turn.tool_uses for turn in one.conversation] == [expected, expected]


def test_a_missing_expectation_counts_as_empty_as_in_adk() -> None:
    [one] = read(eval_set(case("a", {"user_content": content("Hi")}))).eval_cases
    assert one.conversation is not None

    reference = one.conversation[0].reference
    assert (reference.tool_uses, reference.final_response and reference.final_response.text) == ([], "")


def test_camel_case_means_the_same_and_is_rewritten_in_snake_case() -> None:
    document = json.loads(GOLDEN.read_text("utf-8"))
    assert read(camel(document)) == read(document)
    assert modern(camel(document), "x.json") == document


def test_a_rubrics_text_is_found_in_either_spelling() -> None:
    rubric = {"rubricId": "short", "rubricContent": {"textProperty": "It is short."}}
    [one] = read(eval_set(case("a", rubrics=[rubric]))).eval_cases
    assert [each.rubric_content for each in one.rubrics_of(0)] == [{"text_property": "It is short."}]


def test_conversion_keeps_every_key() -> None:
    document = eval_set(case("a", invocation("Hi", "Hello.", []), my_tags={"evalId": 1}), owner="me")
    turn = document["eval_cases"][0]["conversation"][0]
    turn["user_content"]["parts"].append({"inlineData": {"mimeType": "image/png"}})
    assert in_snake_case(EvalSet, document) == document


@pytest.mark.parametrize("own", [True, False])
def test_a_rubric_id_occurs_once_per_invocation(own: bool) -> None:
    rubric = {"rubric_id": "short", "rubric_content": {"text_property": "It is short."}}
    turn = {**invocation("Hi", "Hello.", []), "rubrics": [rubric, rubric] if own else [rubric]}
    rubrics = None if own else [rubric]
    with pytest.raises(ValidationError, match=r"conversation\.0\.rubrics: rubric_id 'short' occurs twice"):
        read(eval_set(case("a", turn, rubrics=rubrics)))


def test_the_exported_schema_accepts_the_golden_file() -> None:
    schema = json.loads((GOLDEN.parents[3] / "schemas" / "json" / "EvalSet.schema.json").read_text("utf-8"))
    validator = Draft202012Validator(schema)
    document = json.loads(GOLDEN.read_text("utf-8"))
    assert list(validator.iter_errors(document)) == []
    document["eval_cases"][0]["conversation"][0]["final_reponse"] = 1
    assert list(validator.iter_errors(document)) != []


# --- the old formats


def test_an_old_test_file_is_one_case() -> None:
    new = modern(
        [OLD_TURN, {"query": "Thanks"}], "dice.test.json", {"app_name": "dice", "user_id": "u", "state": {"n": 1}}
    )

    [one] = read(new).eval_cases
    assert (new["eval_set_id"], one.eval_id) == ("dice", "dice.test.json")
    assert one.session_input is not None
    assert (one.session_input.app_name, one.session_input.state) == ("dice", {"n": 1})
    assert one.conversation is not None
    first, second = one.conversation
    assert first.tool_uses == [FunctionCall(name="roll_die", args={"sides": 19})]
    assert (first.final_response and first.final_response.role) == "model"
    assert first.intermediate_data is not None
    assert first.intermediate_data.intermediate_responses[0][0] == "roller"  # type: ignore[union-attr]
    assert (second.reference.tool_uses, second.reference.final_response and second.reference.final_response.text) == (
        [],
        "",
    )


def test_an_old_eval_set_keeps_names_and_sessions() -> None:
    old: JsonValue = [
        {"name": "one", "data": [OLD_TURN], "initial_session": {"app_name": "dice", "user_id": "u", "state": {}}},
        {"name": "two", "data": [OLD_TURN], "initial_session": {}},
    ]
    cases = read(modern(old, "set.evalset.json")).eval_cases
    assert [(each.eval_id, each.session_input is not None) for each in cases] == [("one", True), ("two", False)]


def test_a_second_conversion_gives_the_same_with_an_id_for_each_invocation() -> None:
    old: JsonValue = [OLD_TURN, OLD_TURN]
    assert modern(old, "dice.test.json") == modern(old, "dice.test.json")
    [one] = read(modern(old, "dice.test.json")).eval_cases
    assert len({turn.invocation_id for turn in one.conversation or ()}) == 2


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"cases": []}, "eval_cases: is missing"),
        ([{"query": "a"}, {"question": "b"}], "is a list, but its items are neither"),
        ("text", "neither an object nor a list"),
    ],
)
def test_a_document_in_no_known_format_is_rejected(document: Any, said: str) -> None:
    with pytest.raises(UnknownFormatError, match=said):
        format_of(document)


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        ({"query": 1}, r"^data\[0\]\.query: must be a string"),
        ({"query": "a", "expected_tool_use": {}}, r"data\[0\]\.expected_tool_use: must be a list"),
        ({"query": "a", "expected_tool_use": [{"name": "x"}]}, r"expected_tool_use\.tool_name: must be a string"),
    ],
)
def test_a_wrong_type_in_an_old_turn_is_reported_with_its_path(turn: Any, said: str) -> None:
    with pytest.raises(UnknownFormatError, match=said):
        modern([turn], "x.test.json")


def test_the_number_of_model_calls_that_newer_versions_of_adk_write_is_accepted() -> None:
    turn = {"user_content": {"parts": [{"text": "Hi"}]}}
    for key in ("inference_call_count", "inferenceCallCount"):
        for count in (2, None):
            found = EvalCase.model_validate({"eval_id": "c", "conversation": [{**turn, key: count}]})
            assert [each.inference_call_count for each in found.conversation or ()] == [count]


@pytest.mark.parametrize("call", [{"tool_name": "f", "tool_input": {}}, {"name": "f", "arguments": {}}])
def test_a_call_with_keys_that_no_call_has_is_refused_as_adk_refuses_it(call: dict[str, Any]) -> None:
    turn = {"user_content": {"parts": [{"text": "q"}]}, "intermediate_data": {"tool_uses": [call]}}
    with pytest.raises(ValidationError, match=f"a call has the keys id, name and args, and not '{[*call][-1]}'|, '"):
        EvalSet.model_validate({"eval_set_id": "s", "eval_cases": [{"eval_id": "c", "conversation": [turn]}]})
