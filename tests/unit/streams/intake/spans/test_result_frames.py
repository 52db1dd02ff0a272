"""What frameworks put around the result of a tool is no part of the result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import span
from tests.unit.streams.intake.spans.test_shapes import events_of

from traceweir.streams.intake.spans.span import Span


def tool_returning(value: object, mime: str = "application/json") -> list[Span]:
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "hours",
        "output.value": value if isinstance(value, str) else json.dumps(value),
        "output.mime_type": mime,
    }
    agent = {"openinference.span.kind": "AGENT", "input.value": "Open on Sunday?", "output.value": "From 10 to 14."}
    return [span(1, 0, "desk", agent), span(2, 1, "hours", tool)]


MESSAGE = {"type": "tool", "data": {"content": "10 to 14", "type": "tool", "tool_call_id": "c1"}}
DUMPED = {
    "lc": 1,
    "id": ["langchain_core", "messages", "ToolMessage"],
    "kwargs": {"content": "10 to 14", "type": "tool"},
}
PATH = ["langgraph", "types", "Command"]
TEXT = "Command(goto='next', update={'messages': [ToolMessage(content='10 to 14', tool_call_id='c1')]})"


@pytest.mark.parametrize(
    "command",
    [
        {"lc": 1, "type": "constructor", "id": PATH, "kwargs": {"update": {"messages": [DUMPED]}}},
        {"lc": 1, "type": "not_implemented", "id": PATH, "repr": TEXT},
        {"output": {"graph": None, "update": {"messages": [MESSAGE]}, "resume": None, "goto": "next"}},
        TEXT,
    ],
)
def test_the_result_in_a_command_is_the_result_whatever_writes_the_command(command: object) -> None:
    [returned] = events_of(tool_returning(command), "tool.returned")
    assert returned["response"] == "10 to 14"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ("name='hours' tool_call_id='c1'", {"response": "10 to 14"}),
        ("name='hours' id='m1' tool_call_id='c1' status='error'", {"error": "10 to 14"}),
        # The content of a message of the model, and a text that only begins so.
        ("additional_kwargs={} response_metadata={}", {"response": "content='10 to 14' {}"}),
        ("is what it said", {"response": "content='10 to 14' {}"}),
    ],
)
def test_a_message_of_a_tool_that_python_has_printed_is_read(fields: str, told: dict[str, str]) -> None:
    [returned] = events_of(tool_returning(f"content='10 to 14' {fields}"), "tool.returned")
    assert {key: returned.get(key) for key in told} == {key: text.format(fields) for key, text in told.items()}


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"state": "success"}, {"response": "10 to 14"}),
        ({"state": "error"}, {"error": "10 to 14"}),
        ({"state": "denied"}, {"error": "10 to 14"}),
        ({"stream": False, "is_last": True, "is_interrupted": False}, {"response": "10 to 14"}),
    ],
)
def test_the_blocks_of_agentscope_are_the_result_and_their_state_tells_a_failure(
    state: dict[str, Any], told: dict[str, str]
) -> None:
    block = {"type": "text", "text": "10 to 14", "id": "b1", "created_at": "2026-11-27T22:07:12"}
    [returned] = events_of(tool_returning({"content": [block], **state, "metadata": {}, "id": "c1"}), "tool.returned")
    assert {key: returned.get(key) for key in told} == told
    assert ("error" in returned) == ("error" in told)


def test_an_object_with_an_unknown_state_is_the_result() -> None:
    value = {"content": "full", "state": "Texas", "metadata": {}, "id": "c1"}
    [returned] = events_of(tool_returning(value), "tool.returned")
    assert returned["response"] == value


@pytest.mark.parametrize(
    "document",
    [
        {"id": "T-1", "content": "Refund asked", "metadata": {"k": 1}, "state": "denied"},
        {"id": "d", "content": [{"type": "text", "text": "Berlin"}], "metadata": {}, "score": 0.5},
    ],
)
def test_a_document_with_keys_of_agentscopes_frame_is_the_result(document: dict[str, Any]) -> None:
    [returned] = events_of(tool_returning(document), "tool.returned")
    assert returned["response"] == document
