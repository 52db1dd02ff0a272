"""Reads a text of a message that is a list of parts, as JSON or as Python prints it, and finds other objects in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import NoneType

from pydantic import JsonValue

from traceweir.streams.base.json_values import read_json
from traceweir.streams.intake.spans.python_text import python_value

_OF_OBJECT = re.compile(
    r"(?:"
    r"(?:ChatCompletion(?:Message|Chunk)?|Completion|ModelResponse|GenerateContentResponse|ChatResponse|Response|Message"
    r"|AIMessage(?:Chunk)?|TextBlock|ResponseOutputMessage|AgentRunResult|RunResult|RunOutput|RunResponse|AgentResult)\(\w+=.*\)"
    r"|(?:Human|System|Tool)Message(?:Chunk)?\(\w+=.*\)"
    r"|\[(?:TextBlock|ThinkingBlock|ToolUseBlock|ResponseOutputMessage|ResponseReasoningItem"
    r"|(?:Human|AI|System|Tool)Message(?:Chunk)?)\(\w+=.*\)\]"
    r"|content='.* (?:additional_kwargs|response_metadata)=\{.*"
    r"|<[\w.]+(?: object)? at 0x[0-9A-Fa-f]+>"
    r"|<Response \[\d+\]>"
    r")\s*"
)
"""What Python prints of an answer of an SDK, where a program wrote the object in place of its text. It is one line."""
_IN_PYTHON = re.compile(
    r"\s*(?:\{|(?P<list>\[)\s*\{)'(?:messages|query|history|choices|role|content|output|candidates)': "
)
"""An object, or a list of objects, as Python prints it, with a key of a request or of an answer first."""
_OF_QUESTION = re.compile(
    r"content='.* (?:additional_kwargs|response_metadata)=\{.*|\[?HumanMessage(?:Chunk)?\(\w+=.*\)\]?\s*"
)
"""What Python prints of a message of a user. People show the other objects in questions."""
_CODE = re.compile(
    r"<Response \[|\[?(?:\w*Message(?:Chunk)?|Response|Completion|\w+Block)\((?!.*(?:=None\b|\bid='|_metadata=|_kwargs=))"
    r"|content='.*[^}\]'\s]\s*\Z"
)
"""Objects that can be the text itself, such as a line of code: they have nothing that only a printed one has."""
PRINTED = "object printed by Python"
"""The kind of a text that is an object."""
_Keys = Mapping[str, type | tuple[type, ...]]
_TEXT: tuple[_Keys, _Keys] = (
    {"text": str},
    {
        "citations": (list, NoneType),
        "cache_control": (dict, NoneType),
        "annotations": list,
        "logprobs": (list, NoneType),
        # Of LangChain.
        "index": int,
        "id": str,
    },
)
_IMAGE: tuple[_Keys, _Keys] = ({"image_url": (dict, str)}, {"detail": str})
_OF_USER: Mapping[str, tuple[_Keys, _Keys]] = {
    "text": _TEXT,
    "input_text": _TEXT,
    "image_url": _IMAGE,
    "input_image": _IMAGE,
    "image": ({"source": dict}, {"cache_control": (dict, NoneType)}),
}
"""The parts of a user by their type: the keys that each has beside its type, and those that it can have."""
_OF_ASSISTANT: Mapping[str, tuple[_Keys, _Keys]] = {
    **_OF_USER,
    "output_text": _TEXT,
    "refusal": ({"refusal": str}, {}),
    "thinking": ({"thinking": str, "signature": str}, {}),
    "tool_use": ({"id": str, "name": str, "input": dict}, {"cache_control": (dict, NoneType), "caller": dict}),
}
_TELLING = frozenset(("text", "input_text", "output_text", "refusal", "tool_use"))
"""The types of which a list of parts has one."""


def is_printed_object(text: str) -> bool:
    """Returns whether a text is what Python prints of an answer of an SDK.

    >>> is_printed_object("ChatCompletion(id='c', choices=[Choice(index=0)])"), is_printed_object("Point(x=1)")
    (True, False)
    """
    return _OF_OBJECT.fullmatch(text) is not None


def printed_in_place_of(part: str, text: str) -> str:
    """Returns what a text is that Python has printed in place of a question or an answer; empty for any other text.

    Args:
        part: What the text should be, such as `answer`.
        text: The text.

    >>> printed_in_place_of("question", "content='Hi' additional_kwargs={}")
    "Python's text of an object, and not the question"
    >>> printed_in_place_of("answer", "[{'role': 'assistant', 'content': 'Hi'}]")
    "a list in Python's notation, not JSON"
    >>> printed_in_place_of("question", "What prints {'role': 1}?"), printed_in_place_of("question", "<Response [404]>")
    ('', '')
    """
    beginning = _IN_PYTHON.match(text)
    if beginning is not None and ("}" not in text or text.rstrip().endswith(("}", "]"))):
        return f"{'a list' if beginning['list'] else 'an object'} in Python's notation, not JSON"
    is_object = is_printed_object(text)
    if part == "question":
        is_object = _OF_QUESTION.fullmatch(text) is not None and not can_be_code(text)
    return f"Python's text of an object, and not the {part}" if is_object else ""


def can_be_code(text: str) -> bool:
    """Returns whether an object that Python has printed can be the text itself, such as a line of code.

    >>> can_be_code("Message(x=1)"), can_be_code("Message(id='m', x=1)")
    (True, False)
    """
    return _CODE.match(text) is not None


def parts_in(text: str, *, is_of_user: bool = False) -> list[JsonValue] | None:
    """Returns the parts in a text that is nothing but a list of them; None for any other text.

    Each part has the keys of its type and no others, because an answer or a question can be JSON that has a `type` too.

    Args:
        text: The text.
        is_of_user: Whether a user has written the text, in which there are no calls and no results.

    >>> parts_in('[{"type": "text", "text": "Hi"}]'), parts_in("[{'type': 'text', 'text': 'Hi'}]")
    ([{'type': 'text', 'text': 'Hi'}], [{'type': 'text', 'text': 'Hi'}])
    >>> parts_in('[{"type": "text", "text": "Your mail", "name": "email"}]'), parts_in("Hi")
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
    kinds = _OF_USER if is_of_user else _OF_ASSISTANT
    if not isinstance(found, list) or not all(_is_part(each, kinds) for each in found):
        return None
    return found if any(isinstance(each, dict) and each["type"] in _TELLING for each in found) else None


def _is_part(value: JsonValue, kinds: Mapping[str, tuple[_Keys, _Keys]]) -> bool:
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in kinds:
        return False
    needed, further = kinds[kind]
    known = {**needed, **further, "type": str}
    if not needed.keys() <= value.keys() or not value.keys() <= known.keys():
        return False
    return value.get("name") != "" and all(isinstance(each, known[key]) for key, each in value.items())
