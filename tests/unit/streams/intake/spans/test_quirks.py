"""What single libraries write in their own way about calls of tools, and no recording of them has."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import span
from tests.unit.streams.intake.spans.test_conventions import AGENT, CHAT, QUESTION

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

ASKED = {"role": "user", "parts": [{"type": "text", "content": QUESTION}]}


def events_of(spans: list[Span], kind: str) -> list[dict[str, Any]]:
    return [each for each in read_trace(spans).events if each["type"] == kind]


def calls(*named: tuple[str, str]) -> dict[str, Any]:
    """Returns the message in which a model asks for tools, by their ids and names."""
    parts = [{"type": "tool_call", "id": call, "name": name, "arguments": {"of": name}} for call, name in named]
    return {"role": "assistant", "parts": parts}


def results(*told: tuple[str, Any]) -> dict[str, Any]:
    """Returns the message with the results that a model reads, by the ids of their calls."""
    parts = [{"type": "tool_call_response", "id": call, "response": value} for call, value in told]
    return {"role": "tool", "parts": parts}


def chat(number: int, *read: dict[str, Any], wrote: dict[str, Any]) -> Span:
    told = {"gen_ai.input.messages": json.dumps(read), "gen_ai.output.messages": json.dumps([wrote])}
    return span(number, 1, "chat", {**CHAT, **told})


def test_the_name_of_a_tool_of_pydantic_ai_is_in_the_name_of_its_span() -> None:
    told = {"tool_arguments": '{"day": "Sunday"}', "tool_response": "closed"}
    spans = [span(1, 0, "agent run", AGENT), span(2, 1, "running tool: hours", told, scope="pydantic-ai")]
    assert [(call["name"], call["args"]) for call in events_of(spans, "tool.called")] == [("hours", {"day": "Sunday"})]


def test_a_result_finds_its_call_by_the_name_in_an_id_that_google_makes() -> None:
    asked = calls(("", "look"), ("", "find"))
    read = results(("find_1", "found"), ("look_0", "seen"))
    spans = [
        span(1, 0, "invoke_agent desk", AGENT),
        chat(2, ASKED, wrote=asked),
        chat(3, ASKED, asked, read, wrote=calls()),
    ]
    returned = events_of(spans, "tool.returned")
    assert {each["name"]: each["response"] for each in returned} == {"look": "seen", "find": "found"}


def test_the_adk_writes_that_arguments_are_not_available() -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.arguments": "N/A"}
    spans = [span(1, 0, "invoke_agent desk", AGENT), span(2, 1, "execute_tool look", tool, scope="gcp.vertex.agent")]
    [called] = events_of(spans, "tool.called")
    assert "args" not in called
    assert "the arguments of the call of tool 'look' are not in the spans" in called["missing"][0]


@pytest.mark.parametrize(("call", "response"), [("adk-1", "seen"), ("c1", {"result": "seen"})])
def test_the_result_that_a_model_reads_is_in_a_frame_if_the_id_of_the_call_is_that_of_the_adk(
    call: str, response: Any
) -> None:
    asked = calls((call, "look"))
    read = results((call, {"result": "seen"}))
    spans = [
        span(1, 0, "invoke_agent desk", AGENT),
        chat(2, ASKED, wrote=asked),
        chat(3, ASKED, asked, read, wrote=calls()),
    ]
    assert [each["response"] for each in events_of(spans, "tool.returned")] == [response]
