"""The input of a custom tool is a text, and an `error` that tells of none is no result."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.chat_files import Document, invocations, lines
from tests.support.openai_chat import assistant_message, tool_calls, tool_result, user_message


def custom(text: str) -> list[Document]:
    named = {"name": "python", "input": text}
    call = {"id": "c", "type": "custom", "custom": named}
    return [
        {"type": "custom_tool_call", "call_id": "c", **named},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("null", {"arguments": "null"}),
        ('"{\\"a\\":1}"', {"arguments": '"{\\"a\\":1}"'}),
        ("print(1)", {"arguments": "print(1)"}),
        ('{"a": 1}', {"a": 1}),
        ("", {}),
    ],
)
def test_the_input_of_a_custom_tool_stays_as_it_is(text: str, arguments: dict[str, Any], place: int) -> None:
    asked = custom(text)[place]
    messages = [user_message("Run it."), asked, tool_result("c", "1"), assistant_message("Done.")]
    (found,) = invocations(lines({"messages": messages}))

    assert [(each.name, each.args) for each in found.tool_uses] == [("python", arguments)]
    assert not any("kept as text" in each for each in found.unread or ())


@pytest.mark.parametrize(
    ("content", "error", "response"),
    [
        ("", "none", ""),
        ("", "No error", ""),
        ("", "", ""),
        ("", "timed out", {"error": "timed out"}),
        (None, "timed out", {"error": "timed out"}),
        ("", {"type": "timeout", "message": "timed out"}, {"error": "timed out"}),
        ("rain", "none", "rain"),
    ],
)
def test_an_error_is_the_result_only_where_it_tells_of_one(content: str | None, error: Any, response: Any) -> None:
    returned = {**tool_result("c", ""), "content": content, "error": error}
    messages = [user_message("Weather?"), tool_calls(("c", "weather", "{}")), returned, assistant_message("Rain.")]
    (found,) = invocations(lines({"messages": messages}))

    assert [each.response for each in found.tool_responses] == [response]
