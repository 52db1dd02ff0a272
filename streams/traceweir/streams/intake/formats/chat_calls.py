"""Reads the tool calls of chat messages."""

from __future__ import annotations

from dataclasses import dataclass

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.base.json_values import read_json, write_json
from traceweir.streams.intake.formats.session_records import MakeError
from traceweir.streams.intake.formats.shown_text import described


@dataclass(frozen=True, slots=True)
class ChatToolCall:
    """A tool call."""

    id: str | None
    name: str
    arguments: JsonObject | None
    """None if the stream of the answer was cut off in them."""


def call_of(call: JsonValue, path: str, error: MakeError, *, function_path: str | None = None) -> ChatToolCall:
    """Returns a tool call, whose name and arguments stand at its top or in an object `function`.

    Args:
        call: The call.
        path: Where it stands, for the message.
        error: Makes the error of the document.
        function_path: Where its function stands; None: in its `function`.

    Raises:
        InputError: the call has no name.
    """
    if not isinstance(call, dict):
        raise error(f"{path} is {described(call)}; a tool call must be an object with a function")
    inner = call.get("function", call.get("custom"))
    named: JsonObject = inner if isinstance(inner, dict) else call
    name = inner if isinstance(inner, str) else first_of(named, "name", "toolName", "tool_name")
    if not isinstance(name, str) or not name:
        raise error(
            f"{function_path or f'{path}.function'} is {described(inner)}; a function must be an object with the tool's name"
        )
    arguments = first_of(named, "arguments", "args", "input", "parameters")
    return ChatToolCall(
        identifier(first_of(call, "id", "call_id", "toolUseId", "toolCallId")), name, arguments_of(arguments)
    )


def arguments_of(arguments: JsonValue) -> JsonObject:
    """Returns the arguments of a call as an object.

    Models sometimes write invalid JSON. Such arguments are kept as text, because they show what the agent tried.
    """
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, dict):
        return arguments
    if not isinstance(arguments, str):
        try:
            return {"arguments": write_json(arguments).decode()}
        except (ValueError, orjson.JSONEncodeError):
            # Refused with the whole event, which JSON cannot represent either.
            return {"arguments": arguments}
    try:
        parsed = read_json(arguments)
    except ValueError:
        return {"arguments": arguments}
    return parsed.value if isinstance(parsed.value, dict) and not parsed.notes else {"arguments": arguments}


def identifier(value: JsonValue) -> str | None:
    """Returns an id as a text; None without one."""
    return None if value is None else str(value)


def first_of(found: JsonObject, *names: str) -> JsonValue:
    """Returns the value of the first of some keys that is not null; None without one."""
    return next((found[name] for name in names if found.get(name) is not None), None)
