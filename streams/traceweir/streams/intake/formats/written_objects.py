"""Reads a text of a message that is a list of parts, as JSON or as Python prints it, and finds other objects in its place."""

from __future__ import annotations

import re

from pydantic import JsonValue

from traceweir.streams.base.json_values import read_json
from traceweir.streams.intake.spans.python_text import python_value

_OF_OBJECT = re.compile(
    r"(?:"
    r"(?:ChatCompletion(?:Message|Chunk)?|Completion|ModelResponse|GenerateContentResponse|ChatResponse|Response|Message"
    r"|AIMessage(?:Chunk)?|TextBlock|ResponseOutputMessage|AgentRunResult|RunResult|RunOutput|RunResponse)\(\w+=.*\)"
    r"|\[(?:TextBlock|ThinkingBlock|ToolUseBlock|ResponseOutputMessage|ResponseReasoningItem)\(\w+=.*\)\]"
    r"|content='.* (?:additional_kwargs|response_metadata)=\{.*"
    r"|<[\w.]+(?: object)? at 0x[0-9A-Fa-f]+>"
    r"|<Response \[\d+\]>"
    r")\s*"
)
"""What Python prints of an answer of an SDK, where a program wrote the object in place of its text. It is one line."""
PRINTED = "object printed by Python"
"""The kind of a text that is an object."""
_KINDS = frozenset(
    {
        *("text", "input_text", "output_text", "image_url", "input_image", "image", "refusal"),
        *("tool_use", "tool_result", "tool-call", "tool-result", "thinking", "reasoning", "server_tool_use"),
    }
)
"""The types of parts by which a text is known for a list of parts."""


def is_printed_object(text: str) -> bool:
    """Returns whether a text is what Python prints of an answer of an SDK.

    >>> is_printed_object("ChatCompletion(id='c', choices=[Choice(index=0)])"), is_printed_object("Point(x=1)")
    (True, False)
    """
    return _OF_OBJECT.fullmatch(text) is not None


def parts_in(text: str) -> list[JsonValue] | None:
    """Returns the parts in a text that is a list of them; None for any other text.

    >>> parts_in('[{"type": "text", "text": "Hi"}]'), parts_in("[{'type': 'text', 'text': 'Hi'}]")
    ([{'type': 'text', 'text': 'Hi'}], [{'type': 'text', 'text': 'Hi'}])
    >>> parts_in('[{"type": "bus", "line": 4}]'), parts_in("Hi")
    (None, None)
    """
    if not text.startswith(('[{"', "[{'")):
        return None
    if text.startswith("[{'"):
        found = python_value(text)
    else:
        try:
            found = read_json(text).value
        except ValueError:
            return None
    are_parts = isinstance(found, list) and all(isinstance(each, dict) and each.get("type") in _KINDS for each in found)
    return found if are_parts and found else None
