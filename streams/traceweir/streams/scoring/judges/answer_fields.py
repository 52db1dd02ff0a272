"""Reads the fields of a chat completion that count, in the types that litellm requires.

litellm refuses a whole answer for one field of another type, and with it the tokens that the provider bills.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from traceweir.streams.scoring.judges.endings import usual_reason

_NAMES = ("id", "object", "model")
_THOUGHTS = ("refusal", "reasoning_content", "reasoning")
_CALLED = [{"id": "call", "type": "function", "function": {"name": "call", "arguments": ""}}]
"""A tool call in the place of all calls of an answer: no argument of a call is an answer, so that none is read."""


def answer_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an answer with the fields that count.

    A content in parts becomes their text, one that the server has parsed becomes JSON again, and a field that some servers
    leave out is filled in. What has another type than it must have is left out.

    >>> answer_of({"choices": [{"message": {"content": 1}, "finish_reason": 0}], "usage": {"prompt_tokens": 9.0}})
    {'choices': [{'index': 0, 'finish_reason': None, 'message': {'role': 'assistant', 'content': '1'}}], 'usage': {'prompt_tokens': 9}}
    """
    found: dict[str, Any] = {name: document[name] for name in _NAMES if isinstance(document.get(name), str)}
    found["choices"] = [_choice(number, each) for number, each in enumerate(choices_of(document))]
    if isinstance(usage := document.get("usage"), dict):
        found["usage"] = _counts(usage)
    return found


def choices_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the choices of an answer that are objects."""
    choices = document.get("choices")
    return [each for each in choices if isinstance(each, dict)] if isinstance(choices, list) else []


def _choice(number: int, choice: Mapping[str, Any]) -> dict[str, Any]:
    reason = choice.get("finish_reason")
    return {
        "index": number,
        "finish_reason": usual_reason(reason) if isinstance(reason, str) else None,
        "message": _message(choice.get("message")),
    }


def _message(message: object) -> dict[str, Any]:
    if not isinstance(message, dict):
        return {"role": "assistant", "content": None}
    found: dict[str, Any] = {"role": "assistant", "content": _content(message.get("content"))}
    found |= {name: message[name] for name in _THOUGHTS if isinstance(message.get(name), str)}
    if message.get("tool_calls") or message.get("function_call"):
        found["tool_calls"] = _CALLED
    return found


def _content(content: object) -> str | None:
    if content is None or isinstance(content, str):
        return content
    # A part that is no text, for example what the model thought, is no part of the answer.
    return "".join(map(_text_of, content)) if isinstance(content, list) else json.dumps(content, ensure_ascii=False)


def _text_of(part: object) -> str:
    if not isinstance(part, dict) or part.get("type", "text") not in ("text", "output_text"):
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else ""


def _counts(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the numbers of an answer's usage, in whole tokens."""
    found: dict[str, Any] = {}
    for name, value in usage.items():
        if isinstance(value, dict):
            found[name] = _counts(value)
        elif (number := _number(value)) is not None:
            found[name] = number
    return found


def _number(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        # No number of tokens has more digits, and a longer one takes time.
        return int(value[:18])
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        return None
    return round(value)
