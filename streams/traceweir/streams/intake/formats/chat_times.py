"""Reads the times of chat transcripts and of their messages."""

from __future__ import annotations

from datetime import MAXYEAR, UTC, datetime

from pydantic import JsonValue

from traceweir.schemas.other_forms import time_since_1970

LATEST_START = datetime(MAXYEAR, 12, 31, tzinfo=UTC)
"""The latest time of a transcript. The remaining day is long enough for the events of any document."""


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
