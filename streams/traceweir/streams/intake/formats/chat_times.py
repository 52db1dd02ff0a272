"""Reads the times of chat transcripts and of their messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import MAXYEAR, UTC, datetime, timedelta

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.figures import counted
from traceweir.schemas.other_forms import time_since_1970
from traceweir.schemas.times import known_time
from traceweir.streams.intake.formats.chat_keys import MESSAGE_TIMES
from traceweir.streams.intake.formats.shown_text import described

LATEST_START = datetime(MAXYEAR, 12, 31, tzinfo=UTC)
"""The latest time of a transcript. The remaining day is long enough for the events of any document."""
NO_TIMES = "the times of the messages are not in the transcript"
"""What is said of a transcript whose messages have no times."""
_LONGEST_S = 30 * 24 * 3600
"""The longest call or run whose end is taken for a time, in seconds."""
_NOT_USED = "the times of the messages are not used"
NO_DURATION = (
    "the times of the messages do not say how long the turn took: its question and its answer have the same one"
)
"""What is said of a turn whose messages were all given one time, as exports do."""


def time_of(value: JsonValue) -> datetime | None:
    """Returns a time in UTC: a number since 1970, or a date-time with its zone; None for everything else.

    >>> time_of("2026-01-31T12:00:00Z") == time_of(1769860800)
    True
    >>> time_of("2026-01-31T12:00:00"), time_of("yesterday"), time_of(None)
    (None, None, None)
    """
    try:
        return _parsed(value)
    except (ValueError, OverflowError, OSError):
        # Conversion to UTC can leave the range of datetime at both ends.
        return None


def time_after(began: datetime, seconds: float) -> datetime | None:
    """Returns the time so many seconds later; None behind the end of the calendar."""
    try:
        return began + timedelta(seconds=seconds)
    except OverflowError:
        return None


def duration_of(value: JsonValue, per_second: int = 1) -> float | None:
    """Returns how long a call or a run took, in seconds; None for what is no number, or no duration up to 30 days.

    Args:
        value: The number.
        per_second: How many units of the number are a second: 1000 for milliseconds.

    >>> duration_of(1.5), duration_of(1500, per_second=1000), duration_of(2_600_000), duration_of(True)
    (1.5, 1.5, None, None)
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value / per_second if 0 < value < _LONGEST_S * per_second else None


def _parsed(value: JsonValue) -> datetime | None:
    match value:
        case int() | float() if not isinstance(value, bool):
            try:
                return time_since_1970(value)
            except ValueError:
                # A time before 2001 or after 2100.
                return datetime.fromtimestamp(value, UTC)
        case str():
            time = datetime.fromisoformat(value)
            return None if time.tzinfo is None else time.astimezone(UTC)
    return None


def time_in(message: JsonObject) -> datetime | None:
    """Returns the time of a message; None if it has none that is known, as `known_time` says."""
    for key in MESSAGE_TIMES:
        time = time_of(message.get(key))
        if time is not None and known_time(time) is not None:
            return time
    return None


def unread_time(message: JsonValue, path: str) -> str:
    """Returns which key of a message has a time that is not read, and why; empty without one."""
    if not isinstance(message, dict) or time_in(message) is not None:
        return ""
    key = next((key for key in MESSAGE_TIMES if message.get(key) not in (None, "")), None)
    if key is None:
        return ""
    is_unknown = time_of(message[key]) is not None
    rule = "stands for an unknown time" if is_unknown else "is no number since 1970 and no date-time with its zone"
    return f"{path}.{key} is {described(message[key])}, which {rule}"


def why_not_used(times: Sequence[datetime | None], unread: str) -> str:
    """Returns why the times of a transcript do not count; empty if every text has one, and none is before the former.

    A time in place of one that is not there would be made up, and would move the others. The first texts can be without:
    the log of a request has the time of the newest turn alone.

    Args:
        times: The time of each text of the user and the agent, in order.
        unread: The first time that is not read, as `unread_time` returns it; empty without one.
    """
    known = [time for time in times if time is not None]
    if len(known) < len(times) and unread:
        return f"{_NOT_USED}: {unread}"
    if not known:
        return NO_TIMES
    first = next(place for place, time in enumerate(times) if time is not None)
    if len(known) < len(times) - first:
        return f"{_NOT_USED}: {len(times) - len(known)} of {counted(len(times), 'text')} have none"
    if known != sorted(known):
        return f"{_NOT_USED}: the time of a text is before that of the text before it"
    if known[-1] > LATEST_START:
        return f"{_NOT_USED}: a time is on the last day of the calendar"
    return ""
