"""Finds the question or the answer in a value of any shape, such as the input or the output of a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from traceweir.schemas.result_parts import data_url_kind
from traceweir.streams.base.json_values import write_json
from traceweir.streams.intake.spans.api_bodies import PYTHON_TEXT
from traceweir.streams.intake.spans.attributes import ABSENT, decoded, plain, structure
from traceweir.streams.intake.spans.message import SpanMessage, asks_without_text, is_hidden
from traceweir.streams.intake.spans.messages import read_message, read_messages
from traceweir.streams.intake.spans.printed_objects import printed_in_place_of
from traceweir.streams.intake.spans.python_text import python_value

_QUESTION_KEYS = ("new_message", "task", "message", "question", "query", "user_query", "user_input", "user_message")
_NESTED_KEYS = ("inputs", "input", "request", "kwargs", "input_args", "messages", "contents", "prompt", "data", "args")
_ANSWER_KEYS = (
    "final_answer",
    "answer",
    "raw",
    "output",
    "outputs",
    "result",
    "response",
    "text",
    "final_output",
    "replies",
)
_ARGUMENTS = ("kwargs", "input_args")
"""Keys of the arguments of a function, whose names its author chose."""
_TEXT_KEYS = ("final_answer", "answer")
_CONTEXT = "For context:"
_NEW_TASK = "New task:\n"
_CHAT = '{"chat_message"'
_MAX_DEPTH = 6


def question_in(value: Any) -> str:
    """Returns the user's question in a value, which can be JSON in a text; empty if there is none."""
    return _question(_structure("question", value), 0)


def answer_in(value: Any) -> str:
    """Returns the answer to the user in a value, which can be JSON in a text; empty if there is none."""
    return _answer(_structure("answer", value), 0)


def _structure(part: str, value: Any) -> Any:
    """Returns a value with the JSON of a text decoded, and likewise a request or an answer in Python's notation."""
    found = structure(value)
    return python_value(found) if isinstance(found, str) and printed_in_place_of(part, found) else found


def newest_user_text(messages: Sequence[SpanMessage]) -> str:
    """Returns the newest text of the user; notes that a framework writes in the user's name are left out."""
    place = newest_user_place(messages)
    # Of a message whose text is hidden, or that is an image, an older text is not the question.
    return chat_text(messages[place].text.removeprefix(_NEW_TASK)) if place >= 0 else ""


def newest_user_place(messages: Sequence[SpanMessage]) -> int:
    """Returns the place of the newest message of the user, whose text can be hidden; -1 if there is none."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role == "user" and not message.results:
            text = message.text
            if text and not text.startswith(_CONTEXT):
                return place
            if not text and (message.hidden or asks_without_text(messages, place)):
                return place
    return -1


def chat_text(text: str) -> str:
    """Returns the text of a chat that is the only field of an object, as Atomic Agents writes it; others unchanged.

    >>> chat_text('{"chat_message":"Hello"}'), chat_text('{"chat_message":"Hello","mood":"good"}')
    ('Hello', '{"chat_message":"Hello","mood":"good"}')
    """
    value = decoded(text) if text.startswith(_CHAT) else None
    only = value.get("chat_message") if isinstance(value, dict) and len(value) == 1 else None
    return only if isinstance(only, str) else text


def _question(value: Any, depth: int) -> str:
    if value is None or depth > _MAX_DEPTH or is_hidden(value):
        return ""
    if isinstance(value, str):
        value = decoded(value) if value.startswith('"') else value
        return value if isinstance(value, str) and _is_text("question", value) else ""
    if isinstance(value, list):
        if value and all(isinstance(each, dict | list) for each in value):
            return newest_user_text(read_messages(value))
        return ""
    if not isinstance(value, dict):
        return ""
    if "role" in value or "parts" in value or ("content" in value and "type" in value):
        message = read_message(value)
        return message.text if message.role == "user" else ""
    for key in _QUESTION_KEYS:
        inner = structure(value.get(key))
        if isinstance(inner, str | dict | list) and inner:
            found = _question(inner, depth + 1)
            if found:
                return found
    for key in _NESTED_KEYS:
        inner = structure(value.get(key))
        if isinstance(inner, dict | list) or (isinstance(inner, str) and key in ("inputs", "input", "prompt")):
            found = _question(inner, depth + 1) or _only_text(key, inner)
            if found:
                return found
    return ""


def _only_text(key: str, value: Any) -> str:
    """Returns the only argument of a function, if it is a text; empty for other keys and values."""
    arguments = list(value.values()) if key in _ARGUMENTS and isinstance(value, dict) else []
    arguments = value if key == "args" and isinstance(value, list) else arguments
    only = arguments[0] if len(arguments) == 1 else None
    return only if isinstance(only, str) and not is_hidden(only) and _is_text("question", only) else ""


def _is_text(part: str, text: str) -> bool:
    """Returns whether a text is one for people: neither Python's text of an object nor a data URL."""
    return not is_printed(part, text) and not data_url_kind(text)


def is_printed(part: str, value: Any) -> bool:
    """Returns whether a value is Python's text of an object in place of a question or an answer."""
    return isinstance(value, str) and bool(PYTHON_TEXT.match(value) or printed_in_place_of(part, value))


def media_in(value: Any, depth: int = 0) -> Counter[str]:
    """Returns how many values of each kind are data URLs in a value that is no message, such as an image in a request."""
    found: Counter[str] = Counter()
    value = structure(value)
    if isinstance(value, str):
        kind = data_url_kind(decoded(value) if value.startswith('"data:') else value)
        return Counter([kind]) if kind else found
    if isinstance(value, list):
        inner = [each for each in value if isinstance(each, str)]
    elif isinstance(value, dict) and not {"role", "parts", "type"} & set(value):
        inner = [each for each in value.values() if not isinstance(each, list) or all(isinstance(e, str) for e in each)]
    else:
        return found
    for each in inner if depth < _MAX_DEPTH else ():
        found += media_in(each, depth + 1)
    return found


def _answer(value: Any, depth: int) -> str:
    if value is None or value is ABSENT or depth > _MAX_DEPTH or is_hidden(value):
        return ""
    if isinstance(value, str):
        value = decoded(value) if value.startswith('"') else value
        return value if isinstance(value, str) and _is_text("answer", value) else ""
    if isinstance(value, list):
        messages = read_messages([each for each in value if isinstance(each, dict)], "assistant")
        last = messages[-1] if messages else None
        return last.text if last is not None and last.role == "assistant" and not last.calls else ""
    if not isinstance(value, dict):
        return ""
    # LangChain: the answer in the schema that the agent has to fill in.
    if isinstance(value.get("structured_response"), dict) and value["structured_response"]:
        return write_json(plain(value["structured_response"])).decode()
    if isinstance(value.get("messages"), list):
        return _answer(value["messages"], depth + 1)
    content = value.get("content")
    if isinstance(content, dict):
        return read_message({"role": "assistant", **content}, "assistant").text
    # A constructor of LangChain, and not the outputs of a chain beside the arguments of its callbacks.
    is_made = "kwargs" in value and value.keys().isdisjoint({"output", "outputs"})
    if isinstance(content, str | list) or "role" in value or is_made or "choices" in value:
        choices = value.get("choices")
        if isinstance(choices, list):
            return _answer(choices, depth + 1)
        message = read_message(value, "assistant")
        return message.text if message.role == "assistant" and not message.calls else ""
    # CrewAI: the text as it is, also if it is JSON.
    if isinstance(value.get("raw"), str) and value["raw"]:
        return str(value["raw"])
    for key in _ANSWER_KEYS:
        inner = structure(value.get(key))
        if inner:
            found = _answer(inner, depth + 1)
            if found:
                return found
            # An answer that is JSON, as the model wrote it.
            answer = value[key]
            if key in _TEXT_KEYS and isinstance(answer, str) and answer.startswith("{"):
                return answer
    return ""
