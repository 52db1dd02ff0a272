"""Tests that each case in a result of `adk eval` becomes a session with its expectations."""

from __future__ import annotations

import json
from typing import Any

from tests.support.adk import BEGAN_S, events_of, read_as
from tests.support.eval_sets import content, invocation

from traceweir.schemas.events import InvocationRecorded
from traceweir.streams.intake.formats.adk_eval_result import ADK_EVAL_RESULT

FIND = [{"name": "find", "args": {"n": 1}}]
ACTUAL = invocation("Hi", "Hello.", FIND) | {"invocation_id": "i1", "creation_timestamp": BEGAN_S}
ACTUAL["intermediate_data"]["intermediate_responses"] = [["agent", [{"text": "One moment."}]]]


def result(eval_id: str, *pairs: tuple[Any, Any], **more: Any) -> dict[str, Any]:
    per_invocation = [
        {"actual_invocation": actual, "expected_invocation": expected, "eval_metric_results": []}
        for actual, expected in pairs
    ]
    about = {"eval_id": eval_id, "final_eval_status": 1, "session_id": f"run of {eval_id}", "user_id": "u1"}
    return about | {"eval_metric_result_per_invocation": per_invocation} | more


def results(*cases: Any) -> dict[str, Any]:
    return {"eval_set_result_id": "r", "eval_set_id": "set1", "eval_case_results": list(cases)}


def test_a_case_becomes_a_session_whose_reference_is_the_expected_invocation() -> None:
    (found,) = read_as(ADK_EVAL_RESULT, results(result("a", (ACTUAL, invocation("Hi", "Hello!", FIND)))))

    recorded, end = events_of(found)
    assert isinstance(recorded, InvocationRecorded)
    assert (recorded.session_id, recorded.user_id, end.type) == ("run of a", "u1", "session.ended")
    assert recorded.occurred_at.timestamp() == BEGAN_S
    assert recorded.invocation is not None
    assert recorded.invocation.final_response is not None
    assert recorded.invocation.final_response.text == "Hello."
    assert recorded.reference is not None
    assert recorded.reference.final_response is not None
    assert recorded.reference.final_response.text == "Hello!"
    assert recorded.reference.tool_uses == recorded.invocation.tool_uses


def test_a_case_without_expectations_has_no_reference() -> None:
    (found,) = read_as(ADK_EVAL_RESULT, results(result("a", (ACTUAL, None), (ACTUAL, invocation("Hi")))))
    assert [each.reference for each in events_of(found)] == [None, None, None]


def test_the_invocations_of_a_case_keep_their_order_without_times() -> None:
    turns = [({"user_content": content(str(number))}, None) for number in range(3)]
    (found,) = read_as(ADK_EVAL_RESULT, results(result("a", *turns, session_id="")))
    events = sorted(events_of(found), key=lambda event: event.occurred_at)
    assert [each.invocation.user_content for each in events if isinstance(each, InvocationRecorded) and each.invocation]
    assert [event.type for event in events] == ["invocation.recorded"] * 3 + ["session.ended"]
    assert len({event.session_id for event in events}) == 1


def test_a_result_in_camel_case_and_in_a_json_string_is_read() -> None:
    camel = {
        "evalCaseResults": [
            {
                "evalId": "a",
                "sessionId": "s",
                "evalMetricResultPerInvocation": [{"actualInvocation": {"userContent": content("Hi")}}],
            }
        ]
    }
    for document in (camel, json.dumps(camel)):
        (found,) = read_as(ADK_EVAL_RESULT, document)
        assert [event.session_id for event in events_of(found)] == ["s", "s"]


def test_an_unusable_case_is_reported_and_the_other_cases_are_read() -> None:
    cases = [7, result("failed"), result("odd", (7, None)), result("good", (ACTUAL, None)), result("n", (None, None))]
    (found,) = read_as(ADK_EVAL_RESULT, results(*cases))

    assert {event.session_id for event in events_of(found)} == {"run of good"}
    problem = str(found.problem)
    assert problem.startswith(
        "adk.json: document 1: eval_case_results.0: must be an object with eval_metric_result_per"
    )
    assert "eval_case_results.1: case 'failed' has no invocation, so there is nothing to score" in problem
    assert "eval_case_results.2: case 'odd': document: Input should be an object" in problem
    assert "eval_case_results.4: case 'n': document: Input should be an object" in problem


def test_a_case_that_is_nested_too_deeply_is_reported_and_the_next_is_read() -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    (found,) = read_as(
        ADK_EVAL_RESULT, results(result("deep", (ACTUAL | {"x": deep}, None)), result("good", (ACTUAL, None)))
    )
    assert {event.session_id for event in events_of(found)} == {"run of good"}
    assert "case 'deep': an invocation is nested too deeply to be read" in str(found.problem)


def test_a_document_of_another_kind_is_reported() -> None:
    found = read_as(ADK_EVAL_RESULT, {"a": 1}, [1], results())
    assert [str(each.problem) for each in found] == [
        "adk.json: document 1: has no list eval_case_results, so it is no result of `adk eval`",
        "adk.json: document 2: is not a JSON object; a result of `adk eval` must be an object",
        "adk.json: document 3: eval_case_results: has no result; remove the document",
    ]
