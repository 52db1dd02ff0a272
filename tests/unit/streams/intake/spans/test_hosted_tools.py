"""Tools that the provider of a model runs, such as a web search: calls with their results, and the answer after them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

QUESTION = "When does the ferry leave?"
ANSWER = "At 19:30."
QUERY = {"query": "ferry"}
PAGES = [{"type": "web_search_result", "url": "https://ferry.example", "title": "Ferries"}]
OPENINFERENCE: dict[str, Any] = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "m",
    "llm.token_count.prompt": 3,
    "llm.token_count.completion": 2,
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": QUESTION,
    # As the instrumentations write it: without the call.
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": f"I look it up.{ANSWER}",
}
ASKED = json.dumps([{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}])


def genai(*parts: dict[str, Any]) -> Span:
    """Returns a model call of the standard whose answer has these parts."""
    usage = {"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 2}
    written = json.dumps([{"role": "assistant", "parts": list(parts), "finish_reason": "stop"}])
    there = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": ASKED, **usage}
    return span(1, 0, "chat m", {**there, "gen_ai.output.messages": written})


def openinference(answer: dict[str, Any]) -> Span:
    """Returns a model call whose client got this answer of its API."""
    return span(
        1, 0, "m", {**OPENINFERENCE, "output.value": json.dumps(answer), "output.mime_type": "application/json"}
    )


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content, "content": content}


def part(kind: str, call_id: str, value: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, "id": call_id, kind: value, **more}


def message(content: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": content}]}


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": "ws_1", "status": "completed", **fields}


def block(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


SEARCH = "web_search"
USE = block("server_tool_use", id="s1", name=SEARCH, input=QUERY)
FOUND = block("web_search_tool_result", tool_use_id="s1", content=PAGES)
CODE = {"code": "print(7)", "language": "PYTHON"}
RAN: dict[str, tuple[Span, str, Any, Any]] = {
    "parts with the content of the API": (
        genai(
            text("I look it up."),
            part("server_tool_call", "s1", {"type": SEARCH, "input": QUERY}, name=SEARCH),
            part("server_tool_call_response", "s1", {"type": SEARCH, "content": PAGES}),
            text(ANSWER),
        ),
        SEARCH,
        QUERY,
        PAGES,
    ),
    "parts with fields of the call": (
        genai(
            part("server_tool_call", "s1", {"type": SEARCH, **QUERY}, name=SEARCH),
            part("server_tool_call_response", "s1", {"type": SEARCH, "response": {"hits": 1}}),
            text(ANSWER),
        ),
        SEARCH,
        QUERY,
        {"hits": 1},
    ),
    "parts with the item of the API": (
        genai(
            part("server_tool_call", "s1", {"type": SEARCH, "action": {"type": "search", **QUERY}}, name=SEARCH),
            part("server_tool_call_response", "s1", {"type": SEARCH, "sources": PAGES}),
            text(ANSWER),
        ),
        SEARCH,
        QUERY,
        PAGES,
    ),
    "parts without ids": (
        genai(
            {"type": "server_tool_call", "name": SEARCH, "server_tool_call": {"type": SEARCH, **QUERY}},
            {"type": "server_tool_call_response", "server_tool_call_response": {"type": SEARCH, "content": PAGES}},
            text(ANSWER),
        ),
        SEARCH,
        QUERY,
        PAGES,
    ),
    "pydantic-ai": (
        genai(
            {"type": "tool_call", "id": "s1", "name": SEARCH, "arguments": QUERY, "builtin": True},
            {"type": "tool_call_response", "id": "s1", "name": SEARCH, "result": PAGES, "builtin": True},
            text(ANSWER),
        ),
        SEARCH,
        QUERY,
        PAGES,
    ),
    "Anthropic": (
        openinference({"role": "assistant", "content": [text("I look it up."), USE, FOUND, text(ANSWER)]}),
        SEARCH,
        QUERY,
        PAGES,
    ),
    "Anthropic, a tool of an MCP server": (
        openinference(
            {
                "role": "assistant",
                "content": [
                    block("mcp_tool_use", id="s1", name="look", server_name="desk", input=QUERY),
                    block("mcp_tool_result", tool_use_id="s1", is_error=False, content=[{"type": "text", "text": "7"}]),
                    text(ANSWER),
                ],
            }
        ),
        "look",
        QUERY,
        "7",
    ),
    "OpenAI, with the sources": (
        openinference(
            {"output": [item("web_search_call", action={"type": "search", **QUERY, "sources": PAGES}), message(ANSWER)]}
        ),
        SEARCH,
        QUERY,
        PAGES,
    ),
    "OpenAI, code": (
        openinference(
            {
                "output": [
                    item("code_interpreter_call", code="print(7)", outputs=[{"type": "logs", "logs": "7"}]),
                    message(ANSWER),
                ]
            }
        ),
        "code_interpreter",
        {"code": "print(7)"},
        [{"type": "logs", "logs": "7"}],
    ),
    "OpenAI, a tool of an MCP server": (
        openinference(
            {
                "output": [
                    item("mcp_call", name="look", server_label="desk", arguments=json.dumps(QUERY), output="7"),
                    message(ANSWER),
                ]
            }
        ),
        "look",
        QUERY,
        "7",
    ),
    "Gemini": (
        openinference(
            {
                "candidates": [
                    {
                        "content": {
                            "role": "model",
                            "parts": [
                                {"executable_code": CODE},
                                {"code_execution_result": {"outcome": "OUTCOME_OK", "output": "7\n"}},
                                {"text": ANSWER},
                            ],
                        }
                    }
                ]
            }
        ),
        "code_execution",
        CODE,
        "7\n",
    ),
    "Gemini, a search": (
        openinference(
            {
                "candidates": [
                    {
                        "content": {"role": "model", "parts": [{"text": ANSWER}]},
                        "grounding_metadata": {"web_search_queries": ["ferry"], "grounding_chunks": PAGES},
                    }
                ]
            }
        ),
        "google_search",
        {"queries": ["ferry"]},
        PAGES,
    ),
}


def events_of(spans: list[Span], kind: str) -> list[dict[str, Any]]:
    return [each for each in read_trace(spans).events if each["type"] == kind]


@pytest.mark.parametrize("shape", RAN)
def test_a_call_that_the_provider_ran_has_its_arguments_and_its_result_and_the_answer_is_what_follows(
    shape: str,
) -> None:
    model, name, args, result = RAN[shape]
    [called] = events_of([model], "tool.called")
    [returned] = events_of([model], "tool.returned")
    [completed] = events_of([model], "invocation.completed")
    assert (called["name"], called["args"], returned["response"]) == (name, args, result)
    assert "error" not in returned
    assert completed["final_response"]["parts"] == [{"text": ANSWER}]
    assert [note.partition(" is ")[0] for note in completed["missing"]] == ["the name of the agent"]


def test_a_result_that_the_provider_does_not_write_is_said_to_be_missing_with_the_way_to_get_it() -> None:
    answer = {"output": [item("web_search_call", action={"type": "search", **QUERY}), message(ANSWER)]}
    [returned] = events_of([openinference(answer)], "tool.returned")
    assert "response" not in returned
    assert "the provider of the model ran the tool" in returned["missing"][0]


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (
            openinference(
                {
                    "role": "assistant",
                    "content": [
                        USE,
                        {
                            **FOUND,
                            "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
                        },
                        text(ANSWER),
                    ],
                }
            ),
            "max_uses_exceeded",
        ),
        (
            openinference(
                {"output": [item("mcp_call", name="look", arguments="{}", error="no such hall"), message(ANSWER)]}
            ),
            "no such hall",
        ),
    ],
)
def test_a_tool_of_the_provider_that_failed_has_the_error(model: Span, error: str) -> None:
    [returned] = events_of([model], "tool.returned")
    assert returned["error"] == error


def test_a_call_of_the_provider_and_one_of_a_tool_of_the_agent_are_both_there() -> None:
    own = block("tool_use", id="c1", name="book", input={"seats": 2})
    first = openinference({"role": "assistant", "content": [USE, FOUND, own]})
    called = events_of([first], "tool.called")
    assert sorted(each["name"] for each in called) == ["book", SEARCH]
    [returned] = events_of([first], "tool.returned")
    assert returned["name"] == SEARCH


def test_a_call_of_the_ai_sdk_that_the_provider_ran_is_said_to_be_without_its_result_for_that_reason() -> None:
    call = {"toolCallId": "s1", "toolName": SEARCH, "input": QUERY, "providerExecuted": True}
    told = {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.messages": json.dumps([{"role": "user", "content": QUESTION}]),
        "ai.response.text": ANSWER,
        "ai.response.toolCalls": json.dumps([call]),
    }
    events = read_trace([span(1, 0, "ai.generateText.doGenerate", told)]).events
    (returned,) = [event for event in events if event["type"] == "tool.returned"]
    assert "the provider of the model ran the tool" in returned["missing"][0]
    assert events[-1]["type"] == "session.ended"
    assert next(event for event in events if event["type"] == "invocation.completed")["final_response"]["parts"] == [
        {"text": ANSWER}
    ]


def test_a_call_that_failed_without_a_message_has_no_made_up_one() -> None:
    failed = {"type": "file_search_call", "id": "fs", "status": "failed", "queries": ["ferry"], "results": None}
    found = read_trace([openinference({"object": "response", "output": [failed, message(ANSWER)]})]).events
    [returned] = [event for event in found if event["type"] == "tool.returned"]

    assert returned["error"] == "the tool failed; its span tells no message"
    assert returned["response"] is None
