"""What an OpenAI chat transcript says: its messages, checked and told apart, and the turns that they make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, NamedTuple

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.streams.formats.documents import InputError

_UNSPOKEN = ("system", "developer")
_KNOWN_ROLES = "system, developer, user, assistant, tool, function"


class Place(NamedTuple):
    """Where a transcript stands, for messages about it."""

    source: str
    number: int

    @property
    def file_name(self) -> str:
        """The source without its folders: the same file reached over another path is the same file."""
        return PurePath(self.source).name

    def error(self, what: str) -> InputError:
        """An error that names the document."""
        return InputError(f"{self.source}: document {self.number}: {what}")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call."""

    id: str | None
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class Message:
    """A message that says or does something."""

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str | None = None
    """Of a tool's answer: the call that it answers."""
    tool: str = ""
    """Of a tool's answer: the tool; empty if nothing tells."""
    failed: bool = False
    """Of a tool's answer: the call failed."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A user message and what followed until the next; without a user message where the agent spoke first."""

    question: Message | None
    messages: tuple[Message, ...]

    @property
    def final(self) -> int | None:
        """The place of the agent's last text among the messages: its final response."""
        spoken = [i for i, message in enumerate(self.messages) if message.role == "assistant" and message.text]
        return spoken[-1] if spoken else None


def messages_of(document: JsonObject, place: Place) -> list[Message]:
    """The messages of a transcript, from `messages` or else `traj`; those of the system are left out.

    Raises:
        InputError: there are none, or one cannot be understood.
    """
    name = next((key for key in ("messages", "traj") if document.get(key) is not None), None)
    if name is None:
        raise place.error("has neither 'messages' nor 'traj'; a chat transcript keeps its messages in one of them")
    found = document[name]
    if not isinstance(found, list) or not found:
        raise place.error(f"{name} is {_shown(found)}; it must be a list of at least one message")
    tools: dict[str, str] = {}
    messages = []
    for index, item in enumerate(found):
        message = _message(item, f"{name}[{index}]", tools, place)
        if message is not None:
            tools.update((call.id, call.name) for call in message.calls if call.id is not None)
            messages.append(message)
    return messages


def turns_of(messages: Sequence[Message]) -> list[ChatTurn]:
    """The messages by turn."""
    return [
        ChatTurn(group[0], tuple(group[1:])) if group[0].role == "user" else ChatTurn(None, tuple(group))
        for group in _groups(messages)
    ]


def _groups(messages: Sequence[Message]) -> Iterator[list[Message]]:
    group: list[Message] = []
    for message in messages:
        if message.role == "user" and group:
            yield group
            group = []
        group.append(message)
    if group:
        yield group


def _message(item: JsonValue, field: str, tools: dict[str, str], place: Place) -> Message | None:
    if not isinstance(item, dict):
        raise place.error(f"{field} is {_shown(item)}; a message is an object with a role")
    text = _text(item.get("content"), f"{field}.content", place)
    match item.get("role"):
        case "user":
            return Message("user", text)
        case "assistant":
            refusal = item.get("refusal")
            text = text or (refusal if isinstance(refusal, str) else "")
            return Message("assistant", text, calls=tuple(_calls(item, field, place)))
        case "tool" | "function":
            call_id, name = _identifier(item.get("tool_call_id")), item.get("name")
            tool = name if isinstance(name, str) and name else tools.get(call_id or "", "")
            return Message("tool", text, call_id=call_id, tool=tool, failed=_failed(item, text))
        case role if role in _UNSPOKEN:
            return None
        case role:
            raise place.error(f"{field}.role is {_shown(role)}; known roles: {_KNOWN_ROLES}")


def _text(content: JsonValue, field: str, place: Place) -> str:
    """The text of a message's content; parts a line each, one that is no text as its kind in brackets."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise place.error(f"{field} is {_shown(content)}; it must be a string, null or a list of parts")
    texts = []
    for index, part in enumerate(content):
        if isinstance(part, dict) and isinstance(part.get("type"), str):
            text = part.get("refusal" if part["type"] == "refusal" else "text")
            texts.append(text if isinstance(text, str) else f"[{part['type']}]")
        elif isinstance(part, str):
            texts.append(part)
        else:
            raise place.error(f"{field}[{index}] is {_shown(part)}; a part is an object with a type, such as text")
    return "\n".join(texts)


def _calls(item: JsonObject, field: str, place: Place) -> Iterator[Call]:
    calls = item.get("tool_calls") or []
    if not isinstance(calls, list):
        raise place.error(f"{field}.tool_calls is {_shown(calls)}; it must be a list")
    for index, call in enumerate(calls):
        path = f"{field}.tool_calls[{index}]"
        if not isinstance(call, dict):
            raise place.error(f"{path} is {_shown(call)}; a tool call is an object with a function")
        yield _call(call.get("function"), _identifier(call.get("id")), f"{path}.function", place)
    if item.get("function_call") is not None:
        yield _call(item["function_call"], None, f"{field}.function_call", place)


def _call(function: JsonValue, call_id: str | None, field: str, place: Place) -> Call:
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name:
        raise place.error(f"{field} is {_shown(function)}; it must be an object with the tool's name")
    return Call(call_id, name, _arguments(function.get("arguments")))


def _arguments(given: JsonValue) -> JsonObject:
    """The arguments as an object. Models write broken JSON at times, and what they wrote is what was tried: it is kept as text."""
    if given is None or given == "":
        return {}
    if isinstance(given, dict):
        return given
    if not isinstance(given, str):
        return {"arguments": orjson.dumps(given).decode()}
    try:
        parsed = orjson.loads(given)
    except orjson.JSONDecodeError:
        return {"arguments": given}
    return parsed if isinstance(parsed, dict) else {"arguments": given}


def _failed(item: JsonObject, text: str) -> bool:
    """Whether a tool's answer is an error: it is marked as one, begins with "Error", or is an object that has an `error`."""
    if item.get("is_error") is True or item.get("status") == "error" or text.lstrip()[:5].lower() == "error":
        return True
    if not text.lstrip().startswith("{"):
        return False
    try:
        answer = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    # `"error": false` and `"error": ""` say that there was none.
    return isinstance(answer, dict) and answer.get("error") not in (None, False, "")


def _identifier(value: JsonValue) -> str | None:
    return None if value is None else str(value)


def _shown(value: JsonValue) -> str:
    """A value in a message: short values as they are, others by their kind, since text may hold secrets."""
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
