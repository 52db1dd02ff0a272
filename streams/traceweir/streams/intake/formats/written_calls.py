"""Reads calls of tools and their results that a chat template writes as elements into texts, as Hermes and Qwen have it."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from traceweir.streams.intake.formats.chat_calls import ChatToolCall, call_with, object_in

_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_OTHER_FORM = re.compile(r"\s*(?:<function=[\w.-]+>|[\w.-]+\s*<arg_key>)")
"""How a call that is no JSON begins: in Qwen's coder, and in GLM."""
_RESULT = re.compile(r"<tool_response>\s?(.*?)\s?</tool_response>", re.DOTALL)
_RESULTS = re.compile(r"\s*(?:<tool_response>(?:(?!</?tool_response>).)*</tool_response>\s*)+", re.DOTALL)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_END_MARK = re.compile(r"(?:<\|\w+\|>|</s>)\Z")
_MAX_MARK_CHARS = 30
UNREAD_CALL = "tool_call"
"""The kind of an element of a call whose content is no call."""


class WrittenCalls(NamedTuple):
    """What a model has written in a text with calls."""

    text: str
    """The text without the calls; as it is if there are none."""
    calls: list[ChatToolCall]
    unread: Counter[str]
    """How many elements are no call, as a model can write them; they are left in the text."""


def calls_in(text: str) -> WrittenCalls:
    """Returns the calls with which a text of a model ends, each of which is JSON in an element.

    A text about calls has none: more text stands after an element, or the element stands in a block of code.

    >>> found = calls_in('I look.<tool_call>{"name": "find", "arguments": {"day": 2}}</tool_call>')
    >>> found.text, [(call.name, call.arguments) for call in found.calls]
    ('I look.', [('find', {'day': 2})])
    >>> calls_in("Write <tool_call>x</tool_call>.").text, calls_in("<tool_call>{").unread
    ('Write <tool_call>x</tool_call>.', Counter({'tool_call': 1}))
    >>> calls_in('Write `<tool_call>{"name": "find"}</tool_call>`').calls
    []
    """
    calls: list[ChatToolCall] = []
    unread: Counter[str] = Counter()

    def left(element: re.Match[str]) -> str:
        if not element[1].lstrip().startswith("{"):
            # It is a text about such elements, or a call in another form.
            unread.update([UNREAD_CALL] if _OTHER_FORM.match(element[1]) else [])
            return element[0]
        found = object_in(element[1].strip())
        name = found.value.get("name") if found is not None else None
        if found is None or not isinstance(name, str) or not name:
            unread[UNREAD_CALL] += 1
            return element[0]
        arguments = next((found.value[key] for key in ("arguments", "parameters") if key in found.value), None)
        call = call_with(None, name, arguments)
        call.replaced.update(found.replaced)
        calls.append(call)
        return ""

    if not _ends_with_calls(text):
        return WrittenCalls(text, calls, unread)
    rest = _CALL.sub(left, text)
    return WrittenCalls(_without_end_marks(rest).strip() if calls else text, calls, unread)


def _ends_with_calls(text: str) -> bool:
    """Returns whether a text has elements of calls from the first one on, and that one stands in no code or quotation."""
    begin = text.find("<tool_call>")
    if begin < 0:
        return False
    line = text.rfind("\n", 0, begin) + 1
    is_code = len(_FENCE.findall(text, 0, line)) % 2 or text.count("`", line, begin) % 2
    is_quoted = text.startswith((">", "    ", "\t"), line)
    return not is_code and not is_quoted and not _without_end_marks(_CALL.sub("", text[begin:])).strip()


def _without_end_marks(text: str) -> str:
    """Returns a text without the marks with which a model ends its message, where its server has left them."""
    text = text.rstrip()
    while (mark := _END_MARK.search(text, max(0, len(text) - _MAX_MARK_CHARS))) is not None:
        text = text[: mark.start()].rstrip()
    return text


def results_in(text: str) -> list[str]:
    """Returns the results of tools in a text that is nothing but their elements; none for any other text.

    >>> results_in("<tool_response>\\n1\\n</tool_response>\\n<tool_response>\\n2\\n</tool_response>"), results_in("1")
    (['1', '2'], [])
    """
    return _RESULT.findall(text) if _RESULTS.fullmatch(text) else []
