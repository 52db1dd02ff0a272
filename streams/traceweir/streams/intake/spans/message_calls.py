"""Reads the tool calls in messages of models, in the shapes of all APIs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceweir.streams.intake.spans.attributes import ABSENT, structure, text_of
from traceweir.streams.intake.spans.message import RequestedCall, SpanMessage, ToolResult, is_hidden


def read_call(value: Mapping[str, Any], message: SpanMessage) -> None:
    """Adds a call to the message that asks for it; nothing if it has neither a name nor arguments."""
    # OpenInference.
    if isinstance(value.get("tool_call"), dict):
        value = value["tool_call"]
    inner = next((value[key] for key in ("function", "custom") if isinstance(value.get(key), dict)), value)
    name = next((inner[key] for key in ("name", "toolName", "tool_name") if isinstance(inner.get(key), str)), "")
    ids = (value.get(key) for key in ("id", "call_id", "tool_call_id", "toolUseId", "toolCallId", "tool_id", "ref"))
    call = text_of(next((each for each in ids if each), ""))
    keys = ("arguments", "args", "input", "tool_kwargs", "arguments_json", "parameters")
    args = next((inner[key] for key in keys if inner.get(key) is not None), ABSENT)
    if not name and args is ABSENT:
        return
    hosted = value.get("providerExecuted") is True
    message.add_call(RequestedCall(call, name, ABSENT if is_hidden(args) else arguments(args), hosted))


def arguments(value: Any) -> Any:
    """Returns arguments as an object if they are a JSON text of one; an empty text is an empty object."""
    if isinstance(value, str):
        return {} if not value.strip() else structure(value)
    return value


def read_result_with_call(value: Mapping[str, Any], message: SpanMessage) -> None:
    """Reads a result that has the call beside it in place of an id: `call` and `outputs`, of which a tool gave one or more."""
    asked = SpanMessage("assistant")
    if isinstance(value.get("call"), dict):
        read_call(value["call"], asked)
    outputs = value.get("outputs", ABSENT)
    only = outputs[0] if isinstance(outputs, list) and len(outputs) == 1 else outputs
    for call in asked.calls:
        message.results.append(ToolResult(call.id, call.name, only, args=call.args))
