"""Joins the runs of an export that name the same session: each is a turn of it, in order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.intake.formats.answer_pieces import objects_in
from traceweir.streams.intake.formats.exported_messages import question_place, set_times
from traceweir.streams.intake.formats.langfuse_traces import TurnOfSession, turn_of_langfuse
from traceweir.streams.intake.formats.open_streams import StoredAnswer

NO_CALLS = "the tool calls are not in the export: it tells neither calls nor that there were none"
"""What is said of a turn of which nothing says whether tools were called."""
NO_ORDER = "the order of the turns is not known: a run of the session has no time that can be read"
"""What is said of each turn of a session whose order is that of the file."""
_LATEST = datetime.max.replace(tzinfo=UTC)


class ExportedSessions:
    """Collects the turns of the sessions in a file."""

    def __init__(self) -> None:
        self._sessions: dict[str, list[tuple[int, TurnOfSession]]] = {}

    def take(self, found: JsonObject, number: int) -> bool:
        """Takes a document that is a turn of a session; returns whether it is one. The same turn counts once.

        Args:
            found: The document.
            number: Its number in the file.
        """
        try:
            turn = turn_of_langfuse(found)
        except (ValueError, OverflowError):
            # It is nested too deeply to be written as JSON, or ends after the last day of the calendar.
            return False
        if turn is None:
            return False
        turns = self._sessions.setdefault(turn.session, [])
        if all(turn != earlier for _, earlier in turns):
            turns.append((number, turn))
        return True

    def whole(self) -> Iterator[StoredAnswer]:
        """Yields each session as one transcript, with the number of its first document."""
        for name, numbered in self._sessions.items():
            turns = [turn for _, turn in numbered]
            yield StoredAnswer(numbered[0][0], {"session_id": name, **_joined(turns)})


def _joined(turns: Sequence[TurnOfSession]) -> JsonObject:
    is_ordered = len(turns) == 1 or all(turn.began is not None for turn in turns)
    if is_ordered:
        turns = sorted(turns, key=lambda turn: turn.began or _LATEST)
    messages: list[JsonValue] = []
    unread: list[JsonValue] = []
    for turn in turns:
        missing = [*([] if turn.are_calls_known else [NO_CALLS]), *([] if is_ordered else [NO_ORDER])]
        messages += _messages_of(turn, missing, has_history=not messages)
        unread += [*objects_in(turn.transcript.get("observations"))]
    return {**turns[0].transcript, "messages": messages, **({"observations": unread} if unread else {})}


def _messages_of(turn: TurnOfSession, missing: Sequence[str], *, has_history: bool) -> list[JsonValue]:
    """Returns the messages of a turn with its times.

    Args:
        turn: The turn.
        missing: What the export does not tell of it.
        has_history: Whether the messages before its last question count; those of a later turn are in earlier turns.
    """
    messages = [dict(each) for each in objects_in(turn.transcript.get("messages"))]
    asked = question_place(messages)
    if not has_history:
        messages = messages[asked:]
        asked = 0
    set_times(messages, asked, turn.began, turn.ended)
    if missing and asked < len(messages):
        messages[asked]["missing"] = [*missing]
    return [*messages]
