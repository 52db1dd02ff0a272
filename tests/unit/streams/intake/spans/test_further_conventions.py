"""MCP, LiteLLM, Spring AI, Strands, LangChain4j of Quarkus and Laminar: their spans, made by hand after their documentation and sources."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import event, span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span, SpanEvent
from traceweir.streams.intake.spans.tool_spans import unwrapped_result

AGENT = span(1, 0, "invoke_agent desk", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"})
DAY = {"gen_ai.tool.call.arguments": '{"day": "Sunday"}', "gen_ai.tool.call.result": "closed"}
ASKED = {"type": "tool_call", "id": "c1", "name": "mcp__shop__look", "arguments": {"day": "Sunday"}}
LITELLM = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 3}


def events(*spans: Span) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for each in read_trace(spans).events:
        found.setdefault(each["type"], []).append(each)
    return found


def mcp(number: int, parent: int, method: str = "tools/call", **fields: Any) -> Span:
    told = {"mcp.method.name": method, "mcp.session.id": "transport-1", "jsonrpc.request.id": "7"}
    told |= {"gen_ai.tool.name": "look"} if method == "tools/call" else {}
    return span(number, parent, f"{method} look", {**told, **fields.pop("told", {})}, **fields)


def test_a_tool_call_over_mcp_is_one_call_however_many_spans_tell_of_it() -> None:
    model = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [ASKED]}])}
    chat = span(2, 1, "chat m", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **model})
    names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "mcp__shop__look"}
    run = span(3, 1, "execute_tool mcp__shop__look", names | DAY | {"gen_ai.tool.call.id": "c1"}, end_ns=9 * 10**9)
    client = mcp(4, 3, end_ns=8 * 10**9, scope="mcp.client")
    server = mcp(5, 4, end_ns=7 * 10**9, scope="mcp.server", told=DAY | {"gen_ai.operation.name": "execute_tool"})
    for spans in ((chat, run, client, server), (run, client, server), (chat, run), (chat, client, server)):
        parents = {each.span_id for each in (AGENT, *spans)}
        known = [each if each.parent_id in parents else mcp(4, 1, scope="mcp.client") for each in spans]
        found = events(AGENT, *known)
        (called,), (returned,) = found["tool.called"], found["tool.returned"]
        assert (called["name"], called["args"], returned["response"]) == (
            "mcp__shop__look",
            {"day": "Sunday"},
            "closed",
        )


def test_other_requests_of_mcp_are_no_calls_and_its_session_is_no_session() -> None:
    found = events(AGENT, mcp(2, 1, "initialize"), mcp(3, 1, "tools/list"), mcp(4, 1, told=DAY))
    assert [each["name"] for each in found["tool.called"]] == ["look"]
    assert found["tool.called"][0]["session_id"] == AGENT.trace_id


def test_the_name_of_a_tool_that_only_the_name_of_an_mcp_span_tells_is_read() -> None:
    sent = span(2, 1, "MCP send tools/call look", {"mcp.method.name": "tools/call"} | DAY)
    assert [each["name"] for each in events(AGENT, sent)["tool.called"]] == ["look"]


@pytest.mark.parametrize("is_error", [False, True])
def test_the_result_of_mcp_is_read_without_its_frame(is_error: bool) -> None:
    result = {"content": [{"type": "text", "text": "closed"}], "isError": is_error}
    told = DAY | {"gen_ai.tool.call.result": json.dumps(result)}
    (returned,) = events(AGENT, mcp(4, 1, told=told))["tool.returned"]
    assert returned["response"] == "closed"
    assert returned.get("error") == ("closed" if is_error else None)


def test_the_calls_that_litellm_writes_beside_the_text_of_an_answer_are_read() -> None:
    text = {"role": "assistant", "parts": [{"type": "text", "content": "Let me look."}], "finish_reason": "tool_calls"}
    told = {
        "gen_ai.output.messages": json.dumps([text]),
        "gen_ai.completion.0.function_call.name": "look",
        "gen_ai.completion.0.function_call.arguments": '{"day": "Sunday"}',
    }
    (called,) = events(AGENT, span(2, 1, "litellm_request", LITELLM | told))["tool.called"]
    assert (called["name"], called["args"]) == ("look", {"day": "Sunday"})


def test_an_empty_text_as_the_result_of_a_tool_is_a_result() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    read = [
        {"role": "user", "parts": [{"type": "text", "content": "Open?"}]},
        {"role": "assistant", "parts": [], "tool_calls": [call]},
        {"role": "tool", "parts": [{"type": "text", "content": ""}], "tool_call_id": "c1"},
    ]
    first = {"gen_ai.output.messages": json.dumps([read[1]])}
    second = {"gen_ai.input.messages": json.dumps(read), "gen_ai.completion.0.content": "No."}
    spans = span(2, 1, "litellm_request", LITELLM | first), span(3, 1, "litellm_request", LITELLM | second)
    assert [each["response"] for each in events(AGENT, *spans)["tool.returned"]] == [""]


def test_model_calls_that_litellm_wrote_on_the_span_around_them_lack_tokens_and_it_is_said() -> None:
    told = LITELLM | {"gen_ai.completion.0.content": "No.", "gen_ai.usage.output_tokens": 2}
    root = span(1, 0, "invoke_agent desk", told)
    found = events(root, *(span(number, 1, "raw_gen_ai_request", {}) for number in (2, 3)))
    notes = found["invocation.completed"][0]["missing"]
    assert any("tokens" in each and "USE_OTEL_LITELLM_REQUEST_SPAN=true" in each for each in notes)


def test_what_a_failed_call_has_from_the_call_before_on_its_span_is_no_second_call() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"day": "Sunday"}'}}
    read = [{"role": "user", "content": "Open?"}, {"role": "assistant", "tool_calls": [call]}]
    read.append({"role": "tool", "tool_call_id": "c1", "content": "closed"})
    stale = {
        "gen_ai.input.messages": json.dumps(read),
        "gen_ai.completion.0.function_call.name": "look",
        "gen_ai.completion.0.function_call.arguments": '{"day": "Sunday"}',
    }
    found = events(span(1, 0, "desk", LITELLM | stale, status="ERROR", status_message="not available"))
    assert [each["call_id"] for each in found["tool.called"]] == ["c1"]


def spring(kind: str, **more: str) -> dict[str, Any]:
    told = {"gen_ai.operation.name": "framework", "gen_ai.system": "spring_ai", "spring.ai.kind": kind}
    return told | {key.replace("__", "."): value for key, value in more.items()}


@pytest.mark.parametrize(("conversation", "session"), [("chat-7", "chat-7"), ("default", AGENT.trace_id)])
def test_a_chat_client_of_spring_ai_is_an_invocation(conversation: str, session: str) -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "m", "gen_ai.usage.input_tokens": "12"}
    tool = spring("tool_call", spring__ai__tool__definition__name="look")
    tool |= {"spring.ai.tool.call.arguments": '{"day": "Sunday"}', "spring.ai.tool.call.result": '"closed"'}
    found = events(
        span(
            1,
            0,
            "spring_ai chat_client",
            spring("chat_client", spring__ai__chat__client__conversation__id=conversation),
        ),
        span(2, 1, "call_advisor", spring("advisor")),
        span(3, 2, "chat m", chat),
        span(4, 2, "tool_call look", tool),
    )
    (called,), (returned,), (model,) = found["tool.called"], found["tool.returned"], found["model.called"]
    assert (called["name"], called["args"], returned["response"]) == ("look", {"day": "Sunday"}, "closed")
    assert (model["model"], model["input_tokens"], called["session_id"]) == ("m", 12, session)
    assert "log alone" in found["invocation.started"][0]["missing"][0]


def test_an_ai_service_of_quarkus_is_an_agent() -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "m", "gen_ai.usage.prompt_tokens": 12}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1"}
    failed = event("exception", exception__message="no such day")
    found = events(
        span(1, 0, "langchain4j.aiservices.Desk.ask", {}),
        span(2, 1, "completion m", chat | {"gen_ai.response.finish_reasons": "TOOL_EXECUTION"}),
        span(3, 1, "langchain4j.tools.look", tool | {"gen_ai.tool.call.arguments": '{"day": "Sunday"}'}, failed),
        span(4, 1, "completion m", chat | {"gen_ai.completion": "Closed."}),
    )
    (called,), (last,) = found["tool.called"], found["invocation.completed"]
    assert (called["args"], last["agent_name"]) == ({"day": "Sunday"}, "Desk.ask")
    assert last["final_response"]["parts"] == [{"text": "Closed."}]
    assert found["tool.returned"][0]["error"] == "no such day"


@pytest.mark.parametrize(
    "result",
    [
        {"content": ["a", "b"]},
        {"content": [1, 2], "meta": {"page": 2}},
        {"content": [{"text": "x", "page": 3}, {"text": "y", "page": 4}]},
    ],
)
def test_a_result_that_only_looks_like_one_of_mcp_stays_as_it_is(result: dict[str, Any]) -> None:
    assert unwrapped_result(result) == (result, "", False)


def test_a_result_of_mcp_is_its_text_only_if_it_has_nothing_else() -> None:
    text, link = {"type": "text", "text": "see the file"}, {"type": "resource_link", "uri": "file:///a"}
    assert unwrapped_result({"content": [text], "isError": True}) == ("see the file", "", True)
    assert unwrapped_result({"content": [text, link]}) == ([text, link], "", False)


def test_an_error_of_a_server_with_which_a_tool_lives_is_not_the_error_of_the_tool() -> None:
    names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.id": "c1"}
    run = span(2, 1, "execute_tool search", names | {"gen_ai.tool.call.result": "found"}, end_ns=9 * 10**9)
    failed = mcp(3, 2, end_ns=8 * 10**9, status="ERROR", status_message="timed out")
    (returned,) = events(AGENT, run, failed)["tool.returned"]
    assert (returned["response"], returned.get("error")) == ("found", None)


def test_an_exception_that_a_tool_has_handled_is_no_error() -> None:
    names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.id": "c1"}
    run = span(2, 1, "execute_tool search", names, event("exception", exception__message="first try"))
    found = events(AGENT, run).get("tool.returned", [])
    assert [each.get("error") for each in found] in ([], [None])


def test_only_the_conversation_of_spring_ai_without_a_name_is_no_session() -> None:
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Closed."}]}])
    chat = span(2, 1, "chat m", {"gen_ai.operation.name": "chat", "gen_ai.output.messages": said})
    named = span(1, 0, "invoke_agent desk", {**AGENT.attributes, "session.id": "default", "user.id": "default"})
    unnamed = span(1, 0, "invoke_agent desk", {**AGENT.attributes, "spring.ai.chat.client.conversation.id": "default"})
    assert {each["session_id"] for kind in events(named, chat).values() for each in kind} == {"default"}
    assert {each["session_id"] for kind in events(unnamed, chat).values() for each in kind} == {unnamed.trace_id}


def test_a_tool_of_the_ai_sdk_has_its_own_name_where_no_model_tells_it() -> None:
    call = {"ai.operationId": "ai.toolCall", "operation.name": "ai.toolCall desk", "ai.toolCall.name": "look"}
    found = events(AGENT, span(2, 1, "ai.toolCall", {**call, "ai.toolCall.id": "c1", "ai.toolCall.args": "{}"}))
    assert [each["name"] for each in found["tool.called"]] == ["look"]


def test_the_events_of_strands_with_the_newest_conventions_tell_calls_results_and_the_answer() -> None:
    def told(key: str, *parts: dict[str, Any], role: str) -> SpanEvent:
        messages = json.dumps([{"role": role, "parts": list(parts)}])
        return SpanEvent("gen_ai.client.inference.operation.details", 1, {f"gen_ai.{key}.messages": messages})

    call = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"day": "Sunday"}}
    returned = {"type": "tool_call_response", "id": "c1", "response": [{"text": "no such day"}]}
    agent = span(1, 0, "invoke_agent desk", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"})
    agent.events += [
        told("input", {"type": "text", "content": "Open?"}, role="user"),
        told("output", {"type": "text", "content": "No."}, role="assistant"),
    ]
    failed = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.status": "error"}
    tool = span(2, 1, "execute_tool look", failed)
    tool.events += [told("input", call, role="tool"), told("output", returned, role="tool")]
    found = events(agent, tool)
    assert found["invocation.started"][0]["user_content"]["parts"] == [{"text": "Open?"}]
    assert found["tool.called"][0]["args"] == {"day": "Sunday"}
    assert found["tool.returned"][0]["error"] == "no such day"
    assert found["invocation.completed"][0]["final_response"]["parts"] == [{"text": "No."}]


def test_the_line_break_that_strands_adds_to_the_answer_in_an_event_is_no_part_of_it() -> None:
    def wrote(text: str) -> SpanEvent:
        messages = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])
        return SpanEvent("gen_ai.client.inference.operation.details", 1, {"gen_ai.output.messages": messages})

    agent = span(1, 0, "invoke_agent desk", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"})
    agent.events.append(wrote("No.\n"))
    chat = span(2, 1, "chat m", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    chat.events.append(wrote("No."))
    assert events(agent, chat)["invocation.completed"][0]["final_response"]["parts"] == [{"text": "No."}]


def test_the_messages_in_the_input_and_the_output_of_a_model_call_of_laminar_are_read() -> None:
    told = {
        "lmnr.span.type": "LLM",
        "lmnr.span.input": '[{"role": "user", "content": "Open?"}]',
        "lmnr.span.output": '[{"role": "assistant", "content": "No."}]',
    }
    found = events(span(1, 0, "ask", told))
    (started,), (completed,) = (found[kind] for kind in ("invocation.started", "invocation.completed"))
    assert started["user_content"]["parts"] == [{"text": "Open?"}]
    assert completed["final_response"]["parts"] == [{"text": "No."}]
    assert not [each for each in started.get("missing", ()) if each.startswith("the question ")]


def test_the_model_calls_and_tools_of_laminar_are_known_by_their_type() -> None:
    asked = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Open?", "lmnr.span.type": "LLM"}
    calling = {
        "gen_ai.completion.0.tool_calls.0.id": "c",
        "gen_ai.completion.0.tool_calls.0.name": "look",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"day": "Sunday"}',
    }
    told = {"lmnr.span.input": '{"day": "Sunday"}', "lmnr.span.output": '{"open": false}'}
    found = events(
        span(1, 0, "run", {"lmnr.span.type": "DEFAULT", "lmnr.span.input": '{"question": "Open?"}'}),
        span(2, 1, "openai.chat", {**asked, **calling}),
        span(3, 1, "look", {"lmnr.span.type": "TOOL", **told}),
        span(4, 1, "openai.chat", {**asked, "gen_ai.completion.0.content": "No."}),
    )
    (called,), (returned,), (completed,) = (
        found[kind] for kind in ("tool.called", "tool.returned", "invocation.completed")
    )
    assert (called["name"], called["args"], returned["response"]) == ("look", {"day": "Sunday"}, {"open": False})
    assert found["invocation.started"][0]["user_content"]["parts"] == [{"text": "Open?"}]
    assert completed["final_response"]["parts"] == [{"text": "No."}]
