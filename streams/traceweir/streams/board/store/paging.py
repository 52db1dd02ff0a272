"""Defines where a list of sessions goes on, so that the next page costs as much as the first one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from traceweir.schemas.text import printable
from traceweir.streams.board.store.answers import SessionSummary
from traceweir.streams.board.store.selection import in_utc, stored

Order = Literal["newest", "lowest", "highest", "failures"]
"""The order of a list: by time, by the lowest or the highest value of the selected metric, or the most failures first."""
OF_METRIC: tuple[Order, ...] = ("lowest", "highest")
"""The orders that need a metric."""
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
            raise _no_place(text)
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
class ValuePosition:
    """A place in a list of sessions by value; then by the session's id, then by segment."""

    value: float
    """The value of the last session before this place."""
    session_id: str
    """Id of the last session before this place."""
    segment: int
    """Number of its segment."""

    def __str__(self) -> str:
        """Returns the position as addresses contain it.

        >>> str(ValuePosition(0.25, "chat-4711", 0))
        '0.25,0,chat-4711'
        """
        return f"{self.value!r},{self.segment},{self.session_id}"

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        """Returns the position after a row with `found`, which is a value, `session_id` and `segment`."""
        return cls(row["found"], row["session_id"], row["segment"])

    @classmethod
    def parse(cls, text: str) -> Self:
        """Returns the position that an address contains.

        Raises:
            ValueError: the text is no position; the message says so.

        >>> ValuePosition.parse("-0.5,1,a,b")
        ValuePosition(value=-0.5, session_id='a,b', segment=1)
        """
        number, _, rest = text.partition(",")
        segment, _, session_id = rest.partition(",")
        try:
            found = cls(float(number), session_id, int(segment))
        except ValueError:
            raise _no_place(text) from None
        if not session_id or not math.isfinite(found.value) or not 0 <= found.segment < 2**63 or len(text) > MAX_CHARS:
            raise _no_place(text)
        return found

    def after(self, value: str, order: Order) -> tuple[str, dict[str, Any]]:
        """Returns the condition that a session with this value, and the columns of its id, is after this place."""
        beyond = ">" if order == "lowest" else "<"
        condition = (
            f"({value} {beyond} $after_value OR ({value} = $after_value AND (session_id > $after_session OR "
            "(session_id = $after_session AND segment > $after_segment))))"
        )
        return condition, {
            "after_value": self.value,
            "after_session": self.session_id,
            "after_segment": self.segment,
        }


Place = Position | ValuePosition
"""A place in a list of sessions."""


def place_of(text: str, order: Order) -> Place:
    """Returns the place that an address contains, of a list in this order.

    Raises:
        ValueError: the text is no such place; the message says so.
    """
    return Position.parse(text) if order == "newest" else ValuePosition.parse(text)


@dataclass(frozen=True)
class SessionPage:
    """A part of a list of sessions."""

    sessions: list[SessionSummary]
    """The sessions, in their order."""
    next: Place | None
    """Where the list goes on; None at its end."""
    total: int | None = None
    """Number of sessions of the whole list; None if it is unknown."""


def _no_place(text: str) -> ValueError:
    return ValueError(f"{printable(text, 100)!r} is not a place in the list; take it from the link to older sessions")
