"""What clients of models and their instrumentations write besides the conventions is neither misread nor passed over."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.otlp_recordings import load, traces_of
from tests.support.spans import TRACE, span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

CHAT: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
AGENT: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
USER = {"role": "user", "parts": [{"type": "text", "content": "Open?"}]}
ANSWER = {"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}


def chat(number: int, read: list[dict[str, Any]], wrote: dict[str, Any], **more: Any) -> Span:
    told = {"gen_ai.input.messages": json.dumps([USER, *read]), "gen_ai.output.messages": json.dumps([wrote])}
    return span(number, 1, "chat m", {**CHAT, **told, **more})


@pytest.mark.parametrize(
    ("key", "told"),
    [("session.id", "[Scrubbed due to 'session']"), ("gen_ai.conversation.id", "resp_0123")],
    ids=["scrubbed by Logfire", "the id of OpenAI's response"],
)
def test_a_text_that_is_no_id_of_the_session_does_not_join_the_sessions(key: str, told: str) -> None:
    spans = [span(1, 0, "invoke_agent desk", {**AGENT, key: told}), chat(2, [], ANSWER)]
    assert read_trace(spans).session_ids == (TRACE,)


@pytest.mark.parametrize("key", ["session.id", "gcp.vertex.agent.session_id", "langfuse.session.id"])
def test_a_session_id_that_looks_like_that_of_a_response_counts_where_a_user_has_chosen_it(key: str) -> None:
    told = {key: "resp_of_mine", "gen_ai.conversation.id": "resp_0123"}
    assert read_trace([span(1, 0, "invoke_agent desk", {**AGENT, **told}), chat(2, [], ANSWER)]).session_ids == (
        "resp_of_mine",
    )


def test_a_session_id_further_inside_counts_if_the_outer_one_is_scrubbed() -> None:
    spans = [
        span(1, 0, "invoke_agent desk", {**AGENT, "session.id": "[Scrubbed due to 'session']"}),
        chat(2, [], ANSWER, **{"gen_ai.conversation.id": "s-1"}),
    ]
    assert read_trace(spans).session_ids == ("s-1",)


def test_the_result_that_the_model_read_counts_if_the_span_has_the_address_of_an_object() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}
    asked = {"role": "assistant", "parts": [call]}
    told = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": ""}]}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1"}
    spans = [
        span(1, 0, "invoke_agent desk", AGENT),
        chat(2, [], asked),
        span(3, 1, "execute_tool look", {**tool, "gen_ai.tool.call.result": "[<some.Content object at 0x7f3d>]"}),
        chat(4, [asked, told], ANSWER),
    ]
    [returned] = [event for event in read_trace(spans).events if event["type"] == "tool.returned"]
    assert returned["response"] == ""


def test_a_completion_with_marked_fields_is_no_text_for_the_user() -> None:
    events = [
        event for spans in traces_of(load("dspy-openinference").spans).values() for event in read_trace(spans).events
    ]
    assert {event["type"] for event in events} >= {"tool.called", "model.called", "invocation.completed"}
    assert "response.intermediate" not in {event["type"] for event in events}


@pytest.mark.parametrize(
    ("reasons", "provider", "scope", "is_said"),
    [
        (["tool_calls"], "openai", "client", True),
        (None, "openai", "client", True),
        (["stop"], "openai", "client", False),
        (["stop"], "gcp.gemini", "client", True),  # Gemini also stops where it asks for tools
        (["tool_calls"], "openai", "framework", False),  # which writes a span of each tool
    ],
)
def test_tool_calls_are_unknown_if_a_client_alone_is_instrumented_and_hides_content(
    reasons: list[str] | None, provider: str, scope: str, is_said: bool
) -> None:
    attributes = {**CHAT, "gen_ai.provider.name": provider, "gen_ai.response.finish_reasons": reasons}
    spans = [
        span(1, 0, "invoke_agent desk", AGENT, scope="framework"),
        span(2, 1, "chat m", attributes, scope=scope),
    ]
    [completed] = [event for event in read_trace(spans).events if event["type"] == "invocation.completed"]
    assert any(each.startswith("the tool calls ") for each in completed["missing"]) is is_said


def test_an_inner_span_without_input_tokens_keeps_those_of_the_span_around_it() -> None:
    def told(**usage: int) -> dict[str, Any]:
        names = {f"gen_ai.usage.{name}": number for name, number in usage.items()}
        return {**CHAT, "gen_ai.response.id": "r1", **names}

    outer = span(2, 1, "chat m", told(input_tokens=10, output_tokens=9), scope="one", end_ns=9 * 10**9)
    inner = span(3, 1, "chat m", told(output_tokens=4), scope="other", end_ns=8 * 10**9)
    found = read_trace([span(1, 0, "invoke_agent desk", AGENT), outer, inner])
    [call] = [each for each in found.events if each["type"] == "model.called"]
    assert (call["input_tokens"], call["output_tokens"]) == (10, 4)


@pytest.mark.parametrize(("scope", "calls"), [("openinference.instrumentation.dspy", []), ("shop", ["submit"])])
def test_the_tool_with_which_react_v2_of_dspy_answers_is_no_tool_call(scope: str, calls: list[str]) -> None:
    answer = json.dumps({"answer": "Yes."})
    told = {"openinference.span.kind": "TOOL", "input.value": answer, "output.value": answer}
    events = read_trace(
        [span(1, 0, "invoke_agent desk", AGENT), span(2, 1, "submit.__call__", told, scope=scope)]
    ).events
    assert [event["name"] for event in events if event["type"] == "tool.called"] == calls
