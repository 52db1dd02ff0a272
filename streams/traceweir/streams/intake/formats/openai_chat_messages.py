"""Parses and validates the messages of an OpenAI chat transcript, and groups them into turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, NamedTuple

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.streams.intake.formats.documents import InputError

_IGNORED_ROLES = ("system", "developer")
_KNOWN_ROLES = "system, developer, user, assistant, tool, function"


class TranscriptPlace(NamedTuple):
    """The source of a transcript and its number there, for error messages and ids."""

    source: str
    """The path of the file, or another name of the input."""
    number: int
    """The number of the document, from 1."""

    @property
    def file_name(self) -> str:
        """The source without its folders, so that ids do not depend on the path by which a file is opened."""
        return PurePath(self.source).name

    def error(self, what: str) -> InputError:
        """Returns an error that names the document."""
        return InputError(f"{self.source}: document {self.number}: {what}")


@dataclass(frozen=True, slots=True)
class ChatToolCall:
    """A tool call."""

    id: str | None
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of the user, the agent or a tool."""

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[ChatToolCall, ...] = ()
    call_id: str | None = None
    """For the answer of a tool: the id of the call that it answers."""
    tool: str = ""
    """For the answer of a tool: the tool's name; empty if the transcript does not name the tool."""
    failed: bool = False
    """For the answer of a tool: whether the call failed."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A user message and all messages before the next user message."""

    question: ChatMessage | None
    """The user message; None for messages of the agent before the first user message."""
    messages: tuple[ChatMessage, ...]
    """The messages after the user message."""

    @property
    def final(self) -> int | None:
        """The index of the agent's last text in `messages`, which is the final response; None without a text."""
        with_text = [i for i, message in enumerate(self.messages) if message.role == "assistant" and message.text]
        return with_text[-1] if with_text else None


def messages_of(document: JsonObject, place: TranscriptPlace) -> list[ChatMessage]:
    """Returns the messages of a transcript, from `messages` or otherwise `traj`, without system messages.

    Raises:
        InputError: the transcript has no messages, or a message is not valid.
    """
    name = next((key for key in ("messages", "traj") if document.get(key) is not None), None)
    if name is None:
        raise place.error("has neither 'messages' nor 'traj'; one of these keys must contain the messages")
    found = document[name]
    if not isinstance(found, list) or not found:
        raise place.error(f"{name} is {_summary(found)}; {name} must be a list of at least one message")
    tools: dict[str, str] = {}
    messages = []
    for index, item in enumerate(found):
        message = _message(item, f"{name}[{index}]", tools, place)
        if message is not None:
            tools.update((call.id, call.name) for call in message.calls if call.id is not None)
            messages.append(message)
    return messages


def turns_of(messages: Sequence[ChatMessage]) -> list[ChatTurn]:
    """Groups the messages into turns, in order; each user message begins a turn."""
    return [
        ChatTurn(group[0], tuple(group[1:])) if group[0].role == "user" else ChatTurn(None, tuple(group))
        for group in _groups(messages)
    ]


def _groups(messages: Sequence[ChatMessage]) -> Iterator[list[ChatMessage]]:
    group: list[ChatMessage] = []
    for message in messages:
        if message.role == "user" and group:
            yield group
            group = []
        group.append(message)
    if group:
        yield group


def _message(item: JsonValue, field: str, tools: dict[str, str], place: TranscriptPlace) -> ChatMessage | None:
    if not isinstance(item, dict):
        raise place.error(f"{field} is {_summary(item)}; a message must be an object with a role")
    text = _text(item.get("content"), f"{field}.content", place)
    match item.get("role"):
        case "user":
            return ChatMessage("user", text)
        case "assistant":
            refusal = item.get("refusal")
            text = text or (refusal if isinstance(refusal, str) else "")
            return ChatMessage("assistant", text, calls=tuple(_calls(item, field, place)))
        case "tool" | "function":
            call_id = _identifier(item.get("tool_call_id"))
            name = item.get("name")
            tool = name if isinstance(name, str) and name else tools.get(call_id or "", "")
            return ChatMessage("tool", text, call_id=call_id, tool=tool, failed=_failed(item, text))
        case role if role in _IGNORED_ROLES:
            return None
        case role:
            raise place.error(f"{field}.role is {_summary(role)}; the role must be one of {_KNOWN_ROLES}")


def _text(content: JsonValue, field: str, place: TranscriptPlace) -> str:
    """Returns the text of a message's content, one line for each part; a part without text is its type in brackets."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise place.error(f"{field} is {_summary(content)}; the content must be a string, null or a list of parts")
    texts = []
    for index, part in enumerate(content):
        if isinstance(part, dict) and isinstance(part.get("type"), str):
            text = part.get("refusal" if part["type"] == "refusal" else "text")
            texts.append(text if isinstance(text, str) else f"[{part['type']}]")
        elif isinstance(part, str):
            texts.append(part)
        else:
            raise place.error(
                f"{field}[{index}] is {_summary(part)}; a part must be an object with a type, such as text"
            )
    return "\n".join(texts)


def _calls(item: JsonObject, field: str, place: TranscriptPlace) -> Iterator[ChatToolCall]:
    calls = item.get("tool_calls") or []
    if not isinstance(calls, list):
        raise place.error(f"{field}.tool_calls is {_summary(calls)}; tool_calls must be a list")
    for index, call in enumerate(calls):
        path = f"{field}.tool_calls[{index}]"
        if not isinstance(call, dict):
            raise place.error(f"{path} is {_summary(call)}; a tool call must be an object with a function")
        yield _call(call.get("function"), _identifier(call.get("id")), f"{path}.function", place)
    if item.get("function_call") is not None:
        yield _call(item["function_call"], None, f"{field}.function_call", place)


def _call(function: JsonValue, call_id: str | None, field: str, place: TranscriptPlace) -> ChatToolCall:
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name:
        raise place.error(f"{field} is {_summary(function)}; a function must be an object with the tool's name")
    return ChatToolCall(call_id, name, _arguments(function.get("arguments")))


def _arguments(arguments: JsonValue) -> JsonObject:
    """Returns the arguments as an object.

    Models sometimes write invalid JSON. Such arguments are kept as text, because they show what the agent tried.
    """
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, dict):
        return arguments
    if not isinstance(arguments, str):
        return {"arguments": orjson.dumps(arguments).decode()}
    try:
        parsed = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return {"arguments": arguments}
    return parsed if isinstance(parsed, dict) else {"arguments": arguments}


def _failed(item: JsonObject, text: str) -> bool:
    """Returns whether the answer of a tool is an error.

    An error is marked as an error, begins with "Error" in any case of letters, or is an object that has an `error`.
    """
    if item.get("is_error") is True or item.get("status") == "error" or text.lstrip()[:5].lower() == "error":
        return True
    if not text.lstrip().startswith("{"):
        return False
    try:
        answer = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    # Tools write `"error": false` or `"error": ""` when a call succeeded.
    return isinstance(answer, dict) and answer.get("error") not in (None, False, "")


def _identifier(value: JsonValue) -> str | None:
    return None if value is None else str(value)


def _summary(value: JsonValue) -> str:
    """Returns a short description of a value for an error message.

    Strings are cut to 40 characters, and lists and objects are described by their length or keys, because their content
    can be long and can contain secrets.
    """
    match value:
        case None:
            return "missing or null"
        case str():
            return repr(printable(value, 40))
        case bool() | int() | float():
            return orjson.dumps(value).decode()
        case list():
            return f"a list of {len(value)}"
        case _:
            return f"an object with {', '.join(map(repr, list(value)[:5])) or 'no keys'}"
