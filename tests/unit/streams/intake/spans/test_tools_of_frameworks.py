"""Calls of tools as Bedrock Agents, CrewAI, Google's SDK and OpenAI's Agents SDK under Logfire write them.

Their spans are made by hand after their sources.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

DAY = {"day": "Sunday"}


def events(spans: list[Span], kind: str) -> list[dict[str, Any]]:
    return [each for each in read_trace(spans).events if each["type"] == kind]


def oi(kind: str, **told: Any) -> dict[str, Any]:
    return {"openinference.span.kind": kind, **{key.replace("__", "."): value for key, value in told.items()}}


def bedrock(parameters: list[dict[str, str]], *, has_model: bool = True) -> list[Span]:
    asked = "llm.output_messages.1.message.tool_calls.0.tool_call."
    model = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Open on Sunday?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "<thinking>I look.</thinking>",
        "llm.output_messages.1.message.role": "tool",
        "llm.output_messages.1.message.tool_call_id": "toolu_1",
        f"{asked}id": "toolu_1",
        f"{asked}function.name": "group_7__hours",
        f"{asked}function.arguments": json.dumps(DAY),
    }
    action = oi("TOOL", tool__name="hours", tool__parameters=json.dumps(parameters), output__value="closed")
    action |= {"llm.input_messages.0.message.role": "tool", "llm.input_messages.0.message.tool_call_id": "default"}
    agent = oi("AGENT", input__value="Open on Sunday?", output__value="No, closed.")
    chat = [span(3, 2, "LLM", oi("LLM", llm__model_name="m") | model)] if has_model else []
    spans = [span(1, 0, "bedrock_agent.invoke_agent", agent), span(2, 1, "orchestrationTrace", oi("CHAIN"))]
    return [*spans, *chat, span(4, 2, "action_group", action)]


def test_an_action_is_the_call_that_the_model_asked_for_with_the_name_of_its_group() -> None:
    spans = bedrock([{"name": "day", "type": "string", "value": "Sunday"}])
    (called,) = events(spans, "tool.called")
    (returned,) = events(spans, "tool.returned")
    assert (called["name"], called["args"], returned["response"]) == ("group_7__hours", DAY, "closed")


def test_the_parameters_of_an_action_are_its_arguments_in_their_types() -> None:
    listed = [
        {"name": "day", "type": "string", "value": "7"},
        {"name": "hall", "type": "integer", "value": "3"},
        {"name": "all", "type": "boolean", "value": "true"},
    ]
    (called,) = events(bedrock(listed, has_model=False), "tool.called")
    assert called["args"] == {"day": "7", "hall": 3, "all": True}


def test_an_agent_that_works_for_another_one_has_the_name_in_the_name_of_its_span() -> None:
    agent = oi("AGENT", input__value="Hours?", output__value="From nine.")
    (completed,) = events([span(1, 0, "agent_collaborator[hours agent]", agent)], "invocation.completed")
    assert completed["agent_name"] == "hours agent"


@pytest.mark.parametrize(
    "request_",
    [
        {"tool_string": "", "tool": "x", "calling": {"tool_name": "hours", "arguments": DAY}},
        {"tool_string": "", "tool": "x", "calling": "tool_name='hours' arguments={'day': 'Sunday'}"},
        {"tool_string": 'Thought: look\nAction: hours\nAction Input: {"day": "Sunday"}', "tool": "x", "calling": "?"},
    ],
    ids=["JSON", "Python", "words"],
)
def test_the_arguments_of_a_tool_of_crewai_are_in_the_request_to_use_it(request_: dict[str, Any]) -> None:
    tool = oi("TOOL", tool__name="hours", input__value=json.dumps(request_), output__value="closed")
    (called,) = events([span(1, 0, "crew.kickoff", oi("CHAIN")), span(2, 1, "hours._use", tool)], "tool.called")
    assert called["args"] == DAY


def test_a_request_that_does_not_tell_the_arguments_is_no_arguments() -> None:
    request = {"tool_string": "...", "tool": "x", "calling": "y"}
    tool = oi("TOOL", tool__name="hours", input__value=json.dumps(request), output__value="closed")
    (called,) = events([span(1, 0, "crew.kickoff", oi("CHAIN")), span(2, 1, "hours._use", tool)], "tool.called")
    assert "args" not in called
    assert called["missing"]


@pytest.mark.parametrize(
    ("spread", "args"),
    [
        ({"code.function.parameters.day.type": "str", "code.function.parameters.day.value": "Sunday"}, DAY),
        ({"code.args.positional.count": 0, "code.args.keyword.count": 0}, {}),
        ({"code.args.positional.count": 0, "code.args.keyword.count": 1}, None),
    ],
    ids=["there", "none", "hidden"],
)
def test_arguments_that_are_spread_over_attributes_are_read(spread: dict[str, Any], args: Any) -> None:
    names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "hours", "code.function.name": "hours"}
    result = {"code.function.return.type": "str", "code.function.return.value": "closed"}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    spans = [span(1, 0, "invoke_agent desk", agent), span(2, 1, "execute_tool hours", {**names, **spread, **result})]
    (called,) = events(spans, "tool.called")
    assert called.get("args") == args
    assert ("missing" in called) == (args is None)
    assert events(spans, "tool.returned")[0]["response"] == "closed"


@pytest.mark.parametrize(("group", "session"), [("s7", "s7"), ("null", None)])
def test_logfire_tells_the_agent_and_the_group_of_openai_agents(group: str, session: str | None) -> None:
    said = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Open?"},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "No."},
    ]
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "events": json.dumps(said)}
    spans = [
        span(1, 0, "OpenAI Agents trace: {name}", {"name": "turn", "agent_trace_id": "trace_1", "group_id": group}),
        span(2, 1, "Agent run: {name!r}", {"name": "desk", "handoffs": "[]", "tools": "[]"}),
        span(3, 2, "Responses API with {gen_ai.request.model!r}", chat),
    ]
    (completed,) = events(spans, "invocation.completed")
    assert (completed["agent_name"], completed["session_id"]) == (
        "desk",
        session or completed["trace_context"]["trace_id"],
    )
    assert completed["final_response"]["parts"] == [{"text": "No."}]
