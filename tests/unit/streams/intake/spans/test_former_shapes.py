"""Shapes of former APIs and instrumentations: a message apart from its history, and traceloop's keys before the standard."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.message import RequestedCall
from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

QUESTION = "Open on Sunday and Monday?"
CALLS = [{"name": "hours", "parameters": {"day": day}} for day in ("Sunday", "Monday")]
# The tool that was asked last answered first.
RESULTS = [{"call": CALLS[1], "outputs": [{"open": True}]}, {"call": CALLS[0], "outputs": [{"open": False}]}]
HISTORY = [
    {"role": "USER", "message": "Hello"},
    {"role": "CHATBOT", "message": "Good day."},
    {"role": "USER", "message": QUESTION},
    {"role": "CHATBOT", "message": "I look.", "tool_calls": CALLS},
]
ASKED = {"model": "command-r", "message": QUESTION, "chat_history": HISTORY[:2], "preamble": "You know the hours."}
WITH_HISTORY = {"model": "command-r", "message": "", "chat_history": HISTORY, "tool_results": RESULTS}
WITH_MESSAGE = {**ASKED, "tool_results": RESULTS}


def events_of(spans: list[Span], kind: str) -> list[dict[str, Any]]:
    return [each for each in read_trace(spans).events if each["type"] == kind]


def llm(number: int, request: dict[str, Any], response: dict[str, Any]) -> Span:
    told = {"input.value": json.dumps(request), "output.value": json.dumps(response)}
    return span(number, 1, "chat", {"openinference.span.kind": "LLM", "llm.model_name": "command-r", **told})


@pytest.mark.parametrize("second", [WITH_HISTORY, WITH_MESSAGE], ids=["history", "message"])
def test_a_message_apart_from_its_history_is_the_question_and_results_find_their_calls(second: dict[str, Any]) -> None:
    first = {"text": "I look.", "generation_id": "g1", "tool_calls": CALLS, "finish_reason": "COMPLETE"}
    last = {"text": "On Monday only.", "generation_id": "g2", "chat_history": HISTORY, "finish_reason": "COMPLETE"}
    spans = [span(1, 0, "turn", {}), llm(2, ASKED, first), llm(4, second, last)]
    (started,) = events_of(spans, "invocation.started")
    (completed,) = events_of(spans, "invocation.completed")
    assert started["user_content"]["parts"] == [{"text": QUESTION}]
    assert completed["final_response"]["parts"] == [{"text": "On Monday only."}]
    assert [each["args"] for each in events_of(spans, "tool.called")] == [{"day": "Sunday"}, {"day": "Monday"}]
    assert [each["response"] for each in events_of(spans, "tool.returned")] == [{"open": False}, {"open": True}]


def test_a_text_that_a_model_generated_is_what_it_wrote() -> None:
    (message,) = answered({"id": "1", "prompt": "Say hello", "generations": [{"id": "2", "text": "Hello."}]})
    assert message.text == "Hello."
    assert [each.text for each in requested({"message": "Hello", "model": "command"})] == ["Hello"]
    calls = requested(WITH_HISTORY)[3].calls
    assert calls[0] == RequestedCall("", "hours", {"day": "Sunday"})


def old(number: int, name: str, **told: Any) -> Span:
    keys = {f"llm.{key.replace('__', '.')}": value for key, value in told.items()}
    return span(number, 1, name, {"llm.vendor": "Cohere", "llm.request.model": "command", **keys})


WORKFLOW = span(1, 0, "desk.workflow", {"traceloop.span.kind": "workflow", "traceloop.workflow.name": "desk"})
USED = {"usage__prompt_tokens": 7, "usage__completion_tokens": 2}


@pytest.mark.parametrize(
    "prompt",
    [
        {"prompts__0__user": "Hello"},
        {"prompts__0__role": "user", "prompts__0__content": "Hello"},
        {"prompts__0__user": "\n\nHuman: Hello\n\nAssistant:"},
    ],
    ids=["user", "role", "one prompt"],
)
@pytest.mark.parametrize("kind", ["chat", "completion"])
def test_prompts_and_completions_before_the_standard_are_read(prompt: dict[str, str], kind: str) -> None:
    more = {"completions__0__content": "Good day.", "completions__0__finish_reason": "stop", **USED}
    spans = [WORKFLOW, old(2, f"cohere.{kind}", request__type=kind, response__model="command-7", **prompt, **more)]
    (started,) = events_of(spans, "invocation.started")
    (completed,) = events_of(spans, "invocation.completed")
    (model,) = events_of(spans, "model.called")
    assert started["user_content"]["parts"] == [{"text": "Hello"}]
    assert completed["final_response"]["parts"] == [{"text": "Good day."}]
    assert (model["model"], model["input_tokens"], model["output_tokens"]) == ("command-7", 7, 2)


def test_a_call_before_the_standard_finds_its_tool_by_name() -> None:
    asked = {
        "prompts__0__role": "user",
        "prompts__0__content": "Open on Sunday?",
        "completions__0__role": "assistant",
        "completions__0__finish_reason": "function_call",
        "completions__0__function_call__name": "hours",
        "completions__0__function_call__arguments": '{"day": "Sunday"}',
    }
    inputs = {
        "traceloop.entity.input": '{"args": [], "kwargs": {"day": "Sunday"}}',
        "traceloop.entity.output": '"closed"',
    }
    tool = {"traceloop.span.kind": "tool", "traceloop.entity.name": "hours", **inputs}
    spans = [WORKFLOW, old(2, "openai.chat", request__type="chat", **asked, **USED), span(3, 1, "hours.tool", tool)]
    (called,) = events_of(spans, "tool.called")
    (returned,) = events_of(spans, "tool.returned")
    assert (called["name"], called["args"], returned["response"]) == ("hours", {"day": "Sunday"}, "closed")


@pytest.mark.parametrize("key", ["session_id", "thread_id", "conversation_id", "chat_id"])
def test_an_association_of_a_conversation_is_the_session(key: str) -> None:
    told = {f"traceloop.association.properties.{key}": "s7", "traceloop.association.properties.user_id": "u1"}
    spans = [span(1, 0, "desk.workflow", {**WORKFLOW.attributes, **told})]
    spans.append(old(2, "cohere.chat", request__type="chat", prompts__0__user="Hello", completions__0__content="Hi."))
    assert {(each["session_id"], each["user_id"]) for each in read_trace(spans).events} == {("s7", "u1")}
