"""Reads the request to a model and its response, as the APIs of models have them."""

from __future__ import annotations

import re
from typing import Any

from traceweir.schemas.finish_reasons import finish_in
from traceweir.streams.intake.spans.attributes import decoded, structure
from traceweir.streams.intake.spans.hosted_tools import read_grounding
from traceweir.streams.intake.spans.message import RequestedCall, SpanMessage, is_hidden, said
from traceweir.streams.intake.spans.messages import read_message, read_messages

PYTHON_TEXT = re.compile(
    r"[A-Za-z_.]{0,128}[A-Z]\w{0,64}\([\w.]{1,64}=|<[A-Za-z_][^\n]{0,400} at 0x[0-9A-Fa-f]{1,16}>{1,2}\s*\Z"
)
"""The beginning of Python's text of an object, or the whole of one with an address, which instrumentations write where
they cannot serialize.

Names are bounded: with unbounded ones, the time grows with the square of a long word in an agent's text.
"""


def requested(value: Any) -> list[SpanMessage]:
    """Returns the messages of a request to a model: `messages`, `contents`, `input`, `prompt`, or a list of messages."""
    if value is None:
        return []
    value = structure(value)
    if isinstance(value, list):
        are_texts = bool(value) and all(isinstance(each, str) for each in value)
        return read_messages(value if are_texts else [each for each in value if isinstance(each, dict | list)])
    if not isinstance(value, dict):
        return []
    if isinstance(value.get("message"), str) and not {"messages", "role"} & set(value):
        return _of_message(value)
    for key in ("messages", "contents", "input", "inputs", "prompt", "prompts", "chat_history"):
        inner = structure(value.get(key))
        if isinstance(inner, list) and inner:
            if all(isinstance(each, str) for each in inner) and any(each.startswith("ChatMessage(") for each in inner):
                # A text for people, in which parts can be left out.
                continue
            return read_messages(inner)
        if isinstance(inner, dict) and key != "messages":
            return requested(inner)
        if isinstance(inner, str) and inner and not is_hidden(inner):
            return [said("user", inner)]
    return []


def _of_message(value: dict[str, Any]) -> list[SpanMessage]:
    """Returns the messages of a request that has the newest message apart from its history.

    The results of tools follow the message; with them, it can be the question again, or empty.
    """
    messages = read_messages(value.get("chat_history"))
    if value["message"]:
        messages.append(said("user", value["message"]))
    if value.get("tool_results"):
        results = read_message({"role": "tool", "tool_results": value["tool_results"]}).results
        if not (messages and messages[-1].calls):
            calls = [RequestedCall(each.id, each.name, each.args) for each in results]
            messages.append(SpanMessage("assistant", calls=calls))
        messages.append(SpanMessage("tool", results=results))
    return messages


def answered(value: Any, depth: int = 0) -> list[SpanMessage]:
    """Returns the messages of a model's response: choices, generations, candidates, items, or one message."""
    if value is None or depth > 5:
        return []
    value = structure(value)
    if isinstance(value, list):
        return [message for each in value for message in answered(each, depth + 1)]
    if isinstance(value, str):
        value = decoded(value) if value.startswith('"') else value
        if not isinstance(value, str) or not value or PYTHON_TEXT.match(value):
            return []
        return [said("assistant", value)]
    if not isinstance(value, dict):
        return []
    for key in ("choices", "generations", "candidates", "messages", "outputs"):
        inner = structure(value.get(key))
        if isinstance(inner, list) and inner:
            return answered(inner[-1:] if key in ("messages", "outputs") else inner, depth + 1)
        if isinstance(inner, dict) and key == "outputs":
            return answered(inner, depth + 1)
    inner = value.get("output")
    if isinstance(inner, list) and inner and all(isinstance(each, dict) for each in inner):
        messages = read_messages(inner, "assistant")
        for message in messages:
            message.finish = message.finish or finish_in(value)
        return messages
    if isinstance(inner, dict) and isinstance(inner.get("message"), dict):
        # Bedrock.
        return [read_message({**inner["message"], "finish_reason": finish_in(value)}, "assistant")]
    content = value.get("content")
    # Gemini.
    if isinstance(content, dict) and "parts" in content:
        message = read_message({"role": "assistant", **content, "finish_reason": finish_in(value)}, "assistant")
        read_grounding(value, message)
        return [message]
    if {"content", "tool_calls", "message", "kwargs", "text", "parts"} & set(value):
        return [read_message(value, "assistant")]
    return []
