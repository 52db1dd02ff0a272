"""Pipecat with services that hear and speak by themselves; spans made by hand after the source of pipecat 1.14."""

from __future__ import annotations

import json
from typing import Any

from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

CONVERSATION = span(1, 0, "conversation", {"conversation.id": "call-55", "conversation.type": "voice"})
TURN = span(2, 1, "turn", {"turn.number": 1, "conversation.id": "call-55"}, end_ns=20 * 10**9)
CALL = {"tool.function_name": "count_chairs", "tool.call_id": "c1"}


def step(number: int, operation: str, **values: Any) -> Span:
    attributes = {key.replace("__", "."): value for key, value in values.items()}
    told = {"gen_ai.operation.name": operation, "gen_ai.request.model": "live-1"}
    return span(number, 2, operation, told | attributes, scope="pipecat")


def heard(number: int, transcript: str, **values: Any) -> Span:
    return step(number, "stt", transcript=transcript, **{"is_final": True, **values})


def answered(number: int, text: str, **values: Any) -> Span:
    return step(number, "llm_response", output=text, tokens__prompt=10, tokens__completion=5, **values)


def events(*spans: Span) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for each in read_trace([CONVERSATION, TURN, *spans]).events:
        found.setdefault(each["type"], []).append(each)
    return found


def text(event: dict[str, Any], key: str) -> str | None:
    return event[key]["parts"][0]["text"] if key in event else None


def test_the_question_is_what_a_service_heard_and_the_answer_what_it_said() -> None:
    spans = [
        heard(3, "How many", is_final=False),
        heard(4, "How many chairs"),
        heard(5, "are in hall 3?"),
        answered(6, "Hall 3 has 48 chairs."),
        step(7, "tts", transcript="Hall 3 has 48 chairs.", text="Hall 3 has 48 chairs."),
    ]
    found = events(*spans)
    [started] = found["invocation.started"]
    [model] = found["model.called"]
    [completed] = found["invocation.completed"]
    assert text(started, "user_content") == "How many chairs are in hall 3?"
    assert text(completed, "final_response") == "Hall 3 has 48 chairs."
    assert (started["session_id"], model["model"]) == ("call-55", "live-1")
    assert (model["input_tokens"], model["output_tokens"]) == (10, 5)


def test_without_a_transcript_the_question_is_the_newest_message_of_the_user_that_the_service_read() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello."}]
    found = events(step(3, "llm_request", input=json.dumps(messages)), answered(4, "Hello."))
    assert text(found["invocation.started"][0], "user_content") == "Say hello."


def test_a_turn_of_which_nothing_was_heard_lacks_its_question_and_it_is_said() -> None:
    [started] = events(answered(3, "Hello."))["invocation.started"]
    assert started["missing"][0].startswith("the question is not in the spans: set enable_tracing=True")


def test_a_result_on_a_span_of_its_own_belongs_to_the_call() -> None:
    call = step(4, "llm_tool_call", **CALL, tool__arguments='{"hall": 3}', tool__calls_count=1)
    result = step(5, "llm_tool_result", **CALL, tool__result='{"chairs": 48}', tool__result_status="completed")
    found = events(heard(3, "How many?"), call, result, answered(6, "48."))
    [called] = found["tool.called"]
    [returned] = found["tool.returned"]
    assert (called["name"], called["args"], called["call_id"]) == ("count_chairs", {"hall": 3}, "c1")
    assert (returned["response"], returned["call_id"]) == ({"chairs": 48}, "c1")
    assert "missing" not in returned


def test_a_result_that_is_a_text_is_read_without_what_pipecat_writes_before_it() -> None:
    call = step(4, "llm_tool_call", **CALL, tool__arguments='{"hall": 3}')
    result = step(5, "llm_tool_result", **CALL, tool__result="Invalid JSON: closed", tool__result_status="parse_error")
    [returned] = events(heard(3, "How many?"), call, result, answered(6, "48."))["tool.returned"]
    assert returned["response"] == "closed"


def test_an_error_on_a_span_of_its_own_is_that_of_the_call() -> None:
    call = step(4, "llm_tool_call", **CALL, tool__arguments='{"hall": 3}')
    result = step(5, "llm_tool_result", **CALL, tool__result='{"error": "closed"}', tool__result_status="error")
    [returned] = events(heard(3, "How many?"), call, result, answered(6, "It is closed."))["tool.returned"]
    assert returned["error"] == "closed"


def test_calls_beside_the_first_are_said_to_be_missing() -> None:
    call = step(4, "llm_tool_call", **CALL, tool__arguments='{"hall": 3}', tool__calls_count=2)
    [completed] = events(heard(3, "How many?"), call, answered(6, "48."))["invocation.completed"]
    assert any(each.startswith("some tool calls are not in the spans") for each in completed["missing"])


def test_calls_of_which_the_service_tells_the_names_lack_their_arguments_and_it_is_said() -> None:
    asks = answered(4, "", function_calls__all_names="count_chairs,book", function_calls__count=2)
    found = events(heard(3, "How many?"), asks, answered(6, "48."))
    assert [each["name"] for each in found["tool.called"]] == ["count_chairs", "book"]
    assert all("are not in the spans" in each["missing"][0] for each in found["tool.called"])
    assert text(found["invocation.completed"][0], "final_response") == "48."


def test_a_call_by_name_and_the_span_of_its_tool_are_one_call() -> None:
    asks = answered(4, "", function_calls__all_names="count_chairs")
    ran = span(5, 2, "function_call", CALL | {"tool.arguments": '{"hall": 3}', "tool.result": "48"}, scope="pipecat")
    found = events(heard(3, "How many?"), asks, ran, answered(6, "48."))
    [called] = found["tool.called"]
    assert (called["name"], called["args"]) == ("count_chairs", {"hall": 3})
    assert found["tool.returned"][0]["response"] == 48
