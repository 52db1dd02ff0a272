"""Finds objects as Python prints them in place of a question or an answer."""

from __future__ import annotations

import re

from traceweir.streams.intake.spans.python_text import is_one_value

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
_LISTED = r"\s*(?:\[\s*\{'(?:role|content)': "
_SURELY_IN_PYTHON = {
    "question": re.compile(
        _LISTED + r"|\{'(?:messages|query|history|content)': |\{'role': '(?:user|human)', '(?:content|parts)': )"
    ),
    "answer": re.compile(
        _LISTED + r"|\{'(?:messages|choices|content|candidates)': |\{'role': '(?:assistant|ai|model)', )"
    ),
}
"""Those that are no text about objects: people show the others, such as `{'role': 'user'}`, and a model writes them."""
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


def printed_in_place_of(part: str, text: str, *, or_code: bool = False) -> str:
    """Returns what a text is that Python has printed in place of a question or an answer; empty for any other text.

    Args:
        part: What the text should be: `question` or `answer`.
        text: The text.
        or_code: Whether an object is found that can be the answer itself, too, such as a line of code. In a question,
            such an object is never found.

    >>> printed_in_place_of("question", "content='Hi' additional_kwargs={}")
    "Python's text of an object, and not the question"
    >>> printed_in_place_of("answer", "[{'role': 'assistant', 'content': 'Hi'}]")
    "a list in Python's notation, not JSON"
    >>> printed_in_place_of("question", "What prints {'role': 1}?"), printed_in_place_of("question", "<Response [404]>")
    ('', '')
    >>> printed_in_place_of("answer", "{'output': 42}"), printed_in_place_of("answer", "{'output': 42}", or_code=True)
    ('', "an object in Python's notation, not JSON")
    """
    or_code = or_code and part == "answer"
    if (_IN_PYTHON if or_code else _SURELY_IN_PYTHON[part]).match(text) and is_one_value(text):
        return f"{'a list' if text.lstrip().startswith('[') else 'an object'} in Python's notation, not JSON"
    is_object = (_OF_QUESTION if part == "question" else _OF_OBJECT).fullmatch(text) is not None
    return f"Python's text of an object, and not the {part}" if is_object and (or_code or not _CODE.match(text)) else ""
