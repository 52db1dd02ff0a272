"""Reads the tool calls of chat messages."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

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
    replaced: Counter[str] = field(default_factory=Counter, compare=False)
    """What is no JSON in the text of the arguments, as `ReadJson` has it."""
    kept_as_text: bool = field(default=False, compare=False)
    """Whether the arguments are no JSON object, as a model can write them, and are kept as the text `arguments`."""


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
    arguments = first_of(named, "arguments", "args", "input", "parameters", "tool_kwargs")
    call_id = identifier(first_of(call, "id", "call_id", "toolUseId", "toolCallId", "tool_call_id"))
    # The input of a custom tool is a text, whatever it looks like, and only an object in it is read.
    is_free = isinstance(call.get("custom"), dict) or call.get("type") == "custom_tool_call"
    if is_free and isinstance(arguments, str) and not arguments.lstrip().startswith("{"):
        return ChatToolCall(call_id, name, {"arguments": arguments} if arguments else {})
    found = call_with(call_id, name, arguments)
    return replace(found, kept_as_text=False) if is_free else found


def call_with(call_id: str | None, name: str, arguments: JsonValue) -> ChatToolCall:
    """Returns a tool call with its arguments as an object.

    Models sometimes write invalid JSON. Such arguments are kept as text, because they show what the agent tried.

    Args:
        call_id: The id of the call; None without one.
        name: The name of the tool.
        arguments: The arguments: an object or its text, or what a model writes in place of them.

    >>> call_with(None, "plot", '{"x": NaN}').arguments, call_with(None, "plot", '{"x": ').arguments
    ({'x': None}, {'arguments': '{"x": '})
    """
    given = object_in(arguments)
    if given is not None:
        return ChatToolCall(call_id, name, given.value, given.replaced)
    if not isinstance(arguments, str):
        # Where it fails, the whole event is refused, which JSON cannot represent either.
        with suppress(ValueError, orjson.JSONEncodeError):
            arguments = write_json(arguments).decode()
    return ChatToolCall(call_id, name, {"arguments": arguments}, kept_as_text=True)


class ReadObject(NamedTuple):
    """An object, and what is no JSON in its text, as `ReadJson` has it."""

    value: JsonObject
    replaced: Counter[str]


def object_in(value: JsonValue) -> ReadObject | None:
    """Returns an object that is given as such or as its text, and an empty one for nothing; None for another value.

    >>> object_in("null").value, object_in("[1]")
    ({}, None)
    """
    if value is None or value == "":
        return ReadObject({}, Counter())
    if isinstance(value, dict):
        return ReadObject(value, Counter())
    if not isinstance(value, str):
        return None
    try:
        found = read_json(value)
        if isinstance(found.value, str) and found.value.lstrip().startswith("{"):
            # A library has encoded the text once more.
            found = read_json(found.value)
    except ValueError:
        return None
    if found.value is None:
        return ReadObject({}, Counter())
    return ReadObject(found.value, found.replaced) if isinstance(found.value, dict) else None


def identifier(value: JsonValue) -> str | None:
    """Returns an id as a text; None without one."""
    return None if value is None else str(value)


def first_of(found: JsonObject, *names: str) -> JsonValue:
    """Returns the value of the first of some keys that is not null; None without one."""
    return next((found[name] for name in names if found.get(name) is not None), None)
