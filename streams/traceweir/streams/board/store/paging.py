"""Defines where a list of sessions goes on, so that the next page costs as much as the first one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from traceweir.schemas.text import printable
from traceweir.streams.board.store.answers import SessionSummary
from traceweir.streams.board.store.selection import in_utc, stored

MAX_CHARS = 1_100
"""Characters of a position: those of a session's id, of a time and of a segment."""


@dataclass(frozen=True)
class Position:
    """A place in a list of sessions: by time, the newest first; then by the session's id, then by segment."""

    at: datetime
    """The time of the last session before this place, as columns have it: in UTC, without a zone."""
    session_id: str
    """Id of the last session before this place."""
    segment: int
    """Number of its segment."""

    def __str__(self) -> str:
        """Returns the position as addresses contain it.

        >>> str(Position(datetime(2026, 1, 31, 12), "chat-4711", 0))
        '2026-01-31T12:00:00.000000Z,0,chat-4711'
        """
        return f"{self.at.isoformat(timespec='microseconds')}Z,{self.segment},{self.session_id}"

    @classmethod
    def of(cls, row: dict[str, Any]) -> Position:
        """Returns the position after a row with `at`, `session_id` and `segment`."""
        return cls(row["at"], row["session_id"], row["segment"])

    @classmethod
    def parse(cls, text: str) -> Position:
        """Returns the position that an address contains.

        Raises:
            ValueError: the text is no position; the message says so.

        >>> Position.parse("2026-01-31T12:00:00Z,0,a,b").session_id
        'a,b'
        """
        at, _, rest = text.partition(",")
        number, _, session_id = rest.partition(",")
        try:
            moment = datetime.fromisoformat(at)
            segment = int(number)
            at_utc = stored(moment)
        except (ValueError, OverflowError):
            session_id = ""
        if not session_id or moment.tzinfo is None or not 0 <= segment < 2**63 or len(text) > MAX_CHARS:
            raise ValueError(
                f"{printable(text, 100)!r} is not a place in the list; take it from the link to older sessions"
            )
        return cls(at_utc, session_id, segment)

    def after(self, time: str) -> tuple[str, dict[str, Any]]:
        """Returns the condition that a session with this time, and the columns of its id, is after this place."""
        condition = (
            f"({time} < $after_at OR ({time} = $after_at AND (session_id > $after_session OR "
            "(session_id = $after_session AND segment > $after_segment))))"
        )
        return condition, {"after_at": self.at, "after_session": self.session_id, "after_segment": self.segment}

    @property
    def moment(self) -> datetime:
        """The time with its zone."""
        return in_utc(self.at)


@dataclass(frozen=True)
class SessionPage:
    """A part of a list of sessions."""

    sessions: list[SessionSummary]
    """The sessions, the newest first."""
    next: Position | None
    """Where the list goes on; None at its end."""
