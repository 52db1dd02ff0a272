"""Places what coding agents write in the user's name into the turns of a transcript: it begins none, and is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.finish_reasons import INTERRUPTED
from traceweir.schemas.user_notes import COMMAND, INTERRUPTION
from traceweir.streams.intake.formats.chat_turns import ChatMessage

_KINDS_OF_LINES = {"isSidechain": "subagent", "isCompactSummary": "summary", "isMeta": "meta"}
"""The marks of lines of Claude Code that are no message between the user and the agent, each with the kind of its note."""
_OUTPUTS = frozenset(f"{shell}-{stream}" for shell in ("bash", "local-command") for stream in ("stdout", "stderr"))
"""The kinds of the notes that have what commands of the user wrote, which the agent does not run."""


def message_of_line(item: JsonObject) -> tuple[JsonObject, str]:
    """Returns the message in a line of Claude Code's log with the time of the line, and the kind of note that it is.

    The kind is empty for a message between the user and the agent. Any other item is returned as it is.
    """
    message: JsonValue = item.get("message")
    if "role" in item or not isinstance(message, dict) or "role" not in message:
        return item, ""
    kind = next((kind for mark, kind in _KINDS_OF_LINES.items() if item.get(mark) is True), "")
    return {**({"timestamp": item["timestamp"]} if item.get("timestamp") else {}), **message}, kind


def note(kinds: Counter[str]) -> ChatMessage:
    """Returns the message that has notes alone."""
    return ChatMessage("user", "", unread=kinds, is_note=True)


def with_placed_notes(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Returns messages with their notes at what they belong to: the next question, or else the work that goes on.

    A command of the user with which the agent goes on begins a turn, whose question is no text. The answer of a turn that
    the user has interrupted is not whole, also if the agent had not begun it.
    """
    found: list[ChatMessage] = []
    waiting: Counter[str] = Counter()
    for message in messages:
        # Before the first message there is no turn to interrupt; and a command that waits is what was interrupted.
        is_stop = message.is_note and INTERRUPTION in message.unread
        if is_stop and found and COMMAND not in waiting and not _is_after_end(found[-1], waiting):
            found.append(ChatMessage("assistant", "", finish=INTERRUPTED))
        elif message.is_note:
            waiting += message.unread
        else:
            if waiting and message.role == "user":
                message = replace(message, unread=message.unread + waiting)
            elif waiting:
                found.append(ChatMessage("user" if COMMAND in waiting else "assistant", "", unread=waiting))
            waiting = Counter()
            found.append(message)
    if waiting and found:
        found[-1] = replace(found[-1], notes_after=waiting)
    return found


def _is_after_end(last: ChatMessage, waiting: Counter[str]) -> bool:
    """Returns whether a command of the user has run after an answer that the model had ended: it was interrupted then.

    Without an end, the command can have run while the agent worked.
    """
    has_ended = last.role == "assistant" and last.finish != "" and not last.calls
    return has_ended and not waiting.keys().isdisjoint(_OUTPUTS)
