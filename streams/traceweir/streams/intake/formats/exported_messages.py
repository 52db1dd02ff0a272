"""Writes the messages of the runs that other tools export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.row_texts import request_text, response_text
from traceweir.streams.base.json_values import read_json, write_json

_OF_MESSAGES = frozenset(("messages", "contents", "role", "choices", "candidates", "error"))
"""The keys of objects that have messages or a failure in place of an answer in a schema."""


def call_and_result(
    call_id: JsonValue, name: JsonValue, args: JsonValue, result: JsonValue, *, failed: bool = False
) -> list[JsonValue]:
    """Returns the messages of a call of a tool and of its result."""
    return [call_message(call_id, name, without_arguments(args)), result_message(call_id, result, failed=failed)]


def call_message(call_id: JsonValue, name: JsonValue, args: JsonValue) -> JsonObject:
    """Returns the message of an assistant that calls a tool; `args` is null if they are unknown."""
    function: JsonObject = {"name": name, **({} if args is None else {"arguments": args})}
    return {"role": "assistant", "tool_calls": [{"id": call_id, "function": function}]}


def result_message(call_id: JsonValue, result: JsonValue, *, failed: bool = False) -> JsonObject:
    """Returns the message of a tool with the result of a call."""
    answered: JsonObject = {"role": "tool", "tool_call_id": call_id, "content": as_text(result)}
    return answered | ({"is_error": True} if failed else {})


def transcript_of_run(
    name: JsonValue, asked: list[JsonValue], steps: list[JsonValue], output: JsonValue, more: JsonObject
) -> JsonObject:
    answer = _answer(output)
    said: list[JsonValue] = []
    if output is not None:
        said = [{"role": "assistant", "content": [{"type": "object without an answer"}] if answer is None else answer}]
    named: JsonObject = {"session_id": name} if name else {}
    return {**named, "messages": [*asked, *steps, *said], **more}


def _answer(output: JsonValue) -> JsonValue:
    """Returns the answer in an output, which is its JSON if an agent had to fill in a schema; None if there is none."""
    text = response_text(output)
    in_schema = isinstance(output, dict) and bool(output) and _OF_MESSAGES.isdisjoint(output)
    return as_text(output) if text is None and in_schema else text


def asked_messages(value: JsonValue) -> list[JsonValue]:
    """Returns the messages that an input has, or the one that its text is; none without either."""
    if messages := messages_in(value):
        return [*messages]
    text = request_text(value)
    unread: JsonValue = [{"type": "object without a question"}]
    return [] if value is None else [{"role": "user", "content": unread if text is None else text}]


def as_request(value: JsonValue) -> JsonValue:
    messages = messages_in(value)
    return {"messages": [*messages]} if messages else value


def with_tokens(output: JsonValue, usage: JsonValue, names: Mapping[str, str]) -> JsonValue:
    """Returns an output with its tokens as rows have them; without counts, or without a text, the output unchanged.

    Args:
        output: The output of a run.
        usage: The counts, under their own names.
        names: The names of the counts in a row, each with that in `usage`.

    >>> with_tokens("So.", {"prompt": 3}, {"prompt_tokens": "prompt"})
    {'content': 'So.', 'usage': {'prompt_tokens': 3}}
    """
    counts = usage if isinstance(usage, dict) else {}
    tokens: JsonObject = {name: counts[own] for name, own in names.items() if counts.get(own) is not None}
    if not tokens:
        return output
    if isinstance(output, dict):
        return output if output.get("usage") else {**output, "usage": tokens}
    text = response_text(output)
    return output if text is None else {"content": text, "usage": tokens}


def set_times(messages: list[JsonObject], asked: int, began: datetime | None, ended: datetime | None) -> None:
    """Writes when a run began and ended at its question and its last message, where they have no time.

    Args:
        messages: The messages of the run.
        asked: The place of its question.
        began: When it began; None if that is not known.
        ended: When it ended; None if that is not known.
    """
    if asked < len(messages):
        for message, time in ((messages[asked], began), (messages[-1], ended)):
            if time is not None:
                message.setdefault("timestamp", time.isoformat())


def question_place(messages: Sequence[JsonObject]) -> int:
    """Returns the place of the newest message of the user; 0 without one."""
    return max((place for place, each in enumerate(messages) if is_of_user(each)), default=0)


def is_of_user(message: JsonObject) -> bool:
    """Returns whether a message is one of the user, by its `role`, or by its `from` as in ShareGPT."""
    return next((message[key] for key in ("role", "from") if message.get(key)), "") in ("user", "human")


def messages_in(value: JsonValue) -> list[JsonObject]:
    listed = value.get("messages", [value]) if isinstance(value, dict) else value
    found = listed if isinstance(listed, list) else []
    messages = [each for each in found if isinstance(each, dict) and "role" in each]
    return messages if len(messages) == len(found) else []


def without_arguments(value: JsonValue) -> JsonValue:
    """Returns the argument of a function that Langfuse's decorator has recorded; another value unchanged."""
    if not (isinstance(value, dict) and value.keys() == {"args", "kwargs"}):
        return value
    args = value["args"]
    if not args:
        return value["kwargs"]
    return args[0] if isinstance(args, list) and len(args) == 1 and not value["kwargs"] else value


def decoded(value: JsonValue) -> JsonValue:
    """Returns the list or the object in a text of JSON; another value unchanged."""
    if not (isinstance(value, str) and value.lstrip().startswith(("[", "{"))):
        return value
    try:
        found = read_json(value)
    except ValueError:
        return value
    return value if found.replaced else found.value


def as_text(value: JsonValue) -> JsonValue:
    return value if value is None or isinstance(value, str) else write_json(value).decode()
