"""Finds objects as Python prints them in place of a question or an answer."""

from __future__ import annotations

import re

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
_IN_PYTHON = re.compile(r"\s*(?:\{|\[\s*\{)'(?:messages|query|history|choices|role|content|output|candidates)': ")
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


def _is_printed_object(text: str) -> bool:
    """Returns whether a text is what Python prints of an answer of an SDK."""
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
    if is_in_python(text):
        return f"{'a list' if text.lstrip().startswith('[') else 'an object'} in Python's notation, not JSON"
    is_object = _is_printed_object(text)
    if part == "question":
        is_object = _OF_QUESTION.fullmatch(text) is not None and not can_be_code(text)
    return f"Python's text of an object, and not the {part}" if is_object else ""


def is_in_python(text: str) -> bool:
    """Returns whether a text is a request or an answer in Python's notation, which can have a form in JSON.

    >>> is_in_python("{'messages': []}"), is_in_python("{'messages': []} fails"), is_in_python("{'a': 1}")
    (True, False, False)
    """
    return _IN_PYTHON.match(text) is not None and ("}" not in text or text.rstrip().endswith(("}", "]")))


def can_be_code(text: str) -> bool:
    """Returns whether an object that Python has printed can be the text itself, such as a line of code.

    >>> can_be_code("Message(x=1)"), can_be_code("Message(id='m', x=1)")
    (True, False)
    """
    return _CODE.match(text) is not None
