"""Claude Code's own spans and log records, and what OpenInference writes of the Claude Agent SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import event, span

from traceweir.streams.intake.spans.model_logs import is_of_model
from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span, SpanEvent

SCOPE = "com.anthropic.claude_code.tracing"
QUESTION = "How many chairs?"
ANSWER = "48 chairs."
NAME = "mcp__desk__count"


def own(number: int, parent: int, kind: str, attributes: dict[str, Any], *events: SpanEvent, **fields: Any) -> Span:
    """Returns a span of Claude Code."""
    there = {"span.type": kind, "session.id": "s-1", **attributes}
    return span(number, parent, f"claude_code.{kind}", there, *events, scope=SCOPE, **fields)


def body(name: str, value: Any) -> SpanEvent:
    """Returns the log record with the body of a request or a response."""
    return SpanEvent("", 10**9, {"event.name": name, "body": json.dumps(value)}, f"claude_code.{name}")


def turn(*logs: SpanEvent, prompt: str = QUESTION) -> list[Span]:
    tool = {"tool_name": NAME, "tool_use_id": "c1", "gen_ai.tool.name": "count"}
    return [
        own(1, 0, "interaction", {"user_prompt": prompt}),
        own(2, 1, "llm_request", {"model": "m", "input_tokens": 10, "output_tokens": 5}, *logs),
        own(3, 1, "tool", tool, event("tool.output", output='{"chairs": 48}')),
        own(4, 3, "tool.blocked_on_user", {"decision": "accept"}),
        own(5, 3, "tool.execution", {"tool_use_id": "c1", "success": True}),
    ]


def told(spans: list[Span]) -> dict[str, dict[str, Any]]:
    events = read_trace(spans).events
    assert sum(each["type"] == "tool.called" for each in events) == 1
    return {each["type"]: each for each in events}


def test_the_question_and_the_result_of_a_tool_are_read_from_the_spans() -> None:
    events = told(turn())
    assert events["invocation.started"]["user_content"]["parts"] == [{"text": QUESTION}]
    assert events["tool.called"]["name"] == NAME
    assert events["tool.returned"]["response"] == {"chairs": 48}
    assert (events["model.called"]["model"], events["model.called"]["input_tokens"]) == ("m", 10)
    assert events["invocation.started"]["session_id"] == "s-1"


def test_what_is_missing_is_said_with_the_variables_of_claude_code() -> None:
    events = told(turn(prompt="<REDACTED>"))
    missing = [note for each in events.values() for note in each.get("missing", ())]
    parts = ["the question", "the arguments", "the answer", "the name of the agent"]
    assert [next((part for part in parts if note.startswith(part)), note) for note in missing] == parts
    assert all("OTEL_LOG_USER_PROMPTS=1" in note for note in missing[:3])
    assert not any("OTEL_INSTRUMENTATION_GENAI" in note for note in missing)


def test_the_bodies_of_the_api_tell_the_arguments_and_the_answer() -> None:
    use = {"type": "tool_use", "id": "c1", "name": NAME, "input": {"hall": 3}}
    request = {"model": "m", "messages": [{"role": "user", "content": QUESTION}]}
    logs = (body("api_request_body", request), body("api_response_body", {"role": "assistant", "content": [use]}))
    said = body("api_response_body", {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]})
    assert all(map(is_of_model, (*logs, said)))
    events = told([*turn(*logs), own(6, 1, "llm_request", {"model": "m"}, said)])
    assert events["tool.called"]["args"] == {"hall": 3}
    assert events["tool.returned"]["response"] == {"chairs": 48}
    assert events["invocation.completed"]["final_response"]["parts"] == [{"text": ANSWER}]


def test_nothing_is_read_from_a_body_that_was_cut() -> None:
    cut = SpanEvent("", 10**9, {"event.name": "api_response_body", "body": '{"role": "assistant", "content": [{"ty'})
    assert "final_response" not in told(turn(cut))["invocation.completed"]


@pytest.mark.parametrize("success", [False, "false"])
def test_a_tool_whose_execution_failed_has_the_error_of_the_execution(success: object) -> None:
    spans = turn()
    spans[2] = own(3, 1, "tool", {"tool_name": NAME, "tool_use_id": "c1"})
    spans[4] = own(5, 3, "tool.execution", {"tool_use_id": "c1", "success": success, "error": "hall 3 is closed"})
    assert told(spans)["tool.returned"]["error"] == "hall 3 is closed"


def test_the_spans_of_the_agent_sdk_have_the_model_and_no_tokens_of_single_calls() -> None:
    scope = "openinference.instrumentation.claude_agent_sdk"
    agent = {
        "openinference.span.kind": "AGENT",
        "input.value": QUESTION,
        "output.value": ANSWER,
        "llm.model_name": "m",
        "llm.token_count.prompt": 374,
        "llm.token_count.completion": 2,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": NAME,
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"hall": 3}',
        "llm.output_messages.1.message.role": "assistant",
        "llm.output_messages.1.message.content": ANSWER,
    }
    events = told([span(1, 0, "ClaudeAgentSDK.query", agent, scope=scope)])
    assert events["tool.called"]["args"] == {"hall": 3}
    assert events["model.called"]["model"] == "m"
    assert "input_tokens" not in events["model.called"]
    [tokens] = [note for note in events["invocation.completed"]["missing"] if note.startswith("the tokens ")]
    assert "sums" in tokens
    assert "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1" in tokens
