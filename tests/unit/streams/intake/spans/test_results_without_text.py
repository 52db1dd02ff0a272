"""A part of a tool's result that is no text is named in the event, wherever the spans have the result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

BYTES = "iVBORw0KGgoAAAANSUhEUg=="
IMAGE = {"type": "image", "data": BYTES, "mimeType": "image/png"}
ANTHROPIC = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BYTES}}
TEXT = {"type": "text", "text": "hall 7"}
ASKED = {"role": "user", "content": "Draw it."}
CALLED = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "draw", "arguments": "{}"}}]}


def chat(*messages: dict[str, Any]) -> Span:
    told = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([ASKED, CALLED, *messages])}
    return span(2, 0, "chat", told | {"gen_ai.output.messages": '[{"role": "assistant", "content": "Done."}]'})


def events_of(recorded: Span) -> list[dict[str, Any]]:
    """Returns the events of a model's call, or of an agent with the run of a tool."""
    agent = span(1, 0, "invoke_agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "artist"})
    return read_trace([agent, recorded] if recorded.parent_id else [recorded]).events


def returned_in(recorded: Span) -> dict[str, Any]:
    (returned,) = [each for each in events_of(recorded) if each["type"] == "tool.returned"]
    return returned


def standard(result: Any) -> Span:
    return span(
        2,
        1,
        "execute_tool draw",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "draw",
            "gen_ai.tool.call.result": json.dumps(result),
        },
    )


def openinference(result: Any) -> Span:
    told = {"openinference.span.kind": "TOOL", "tool.name": "draw", "output.value": json.dumps(result)}
    return span(2, 1, "draw", told)


BLOCKS = [TEXT, IMAGE]
SHAPES: dict[str, Span] = {
    "a list of MCP": standard(BLOCKS),
    "a result of MCP": standard({"content": BLOCKS, "isError": False}),
    "a result of MCP with the structure": standard({"content": [IMAGE], "structuredContent": {"result": "hall 7"}}),
    "in a frame": openinference({"output": {"content": BLOCKS}}),
    "in a ToolMessage": openinference({"type": "tool", "tool_call_id": "c1", "content": BLOCKS}),
    "as text in a ToolMessage": openinference({"type": "tool", "tool_call_id": "c1", "content": json.dumps(BLOCKS)}),
    "in a message of a tool": chat({"role": "tool", "tool_call_id": "c1", "content": BLOCKS}),
    "as text in a message of a tool": chat({"role": "tool", "tool_call_id": "c1", "content": json.dumps(BLOCKS)}),
    "in a block of Anthropic": chat(
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [TEXT, ANTHROPIC]}]}
    ),
    "in a part of the standard": chat(
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"content": BLOCKS}}]}
    ),
    "in a block of Bedrock": chat(
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "c1",
                        "content": [{"text": "hall 7"}, {"image": {"format": "png", "source": {"bytes": BYTES}}}],
                    }
                }
            ],
        }
    ),
    "in an output of the AI SDK": chat(
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c1",
                    "output": {
                        "type": "content",
                        "value": [TEXT, {"type": "media", "data": BYTES, "mediaType": "image/png"}],
                    },
                }
            ],
        }
    ),
}


@pytest.mark.parametrize("recorded", SHAPES.values(), ids=SHAPES)
def test_an_image_beside_the_text_of_a_result_is_named(recorded: Span) -> None:
    returned = returned_in(recorded)
    assert returned["response"] in ("hall 7", {"result": "hall 7"})
    (sentence,) = returned["missing"]
    kind = "media" if "'media'" in sentence else "image"
    assert sentence == f"not all of the result of tool 'draw' is text: 1 part of type {kind!r}"
    assert BYTES not in json.dumps(events_of(recorded))


def test_a_result_that_is_an_image_alone_has_no_text() -> None:
    returned = returned_in(standard([IMAGE]))
    assert returned["response"] == ""
    assert returned["missing"] == ["the result of tool 'draw' is no text: 1 part of type 'image'"]


def test_an_error_that_is_told_beside_an_image_is_its_text() -> None:
    returned = returned_in(standard({"content": [TEXT, IMAGE], "isError": True}))
    assert returned["error"] == "hall 7"


def test_the_image_that_a_provider_has_drawn_is_no_text() -> None:
    item = {"type": "image_generation_call", "id": "i1", "status": "completed", "result": BYTES}
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    told = {"openinference.span.kind": "LLM", "output.value": json.dumps({"output": [item, answer]})}
    drawn = span(2, 0, "Response", told)
    returned = returned_in(drawn)
    assert returned["missing"] == ["the result of tool 'image_generation' is no text: 1 part of type 'image'"]
    assert BYTES not in json.dumps(events_of(drawn))
