"""Tells times that a sender knew from times that stand for an unknown time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""The time that input formats give to records without a time; a clock that was never set shows it too."""

_FIRST_KNOWN = UNKNOWN_TIME + timedelta(days=1)


def known_time(moment: datetime) -> datetime | None:
    """Returns a time in UTC; None for a time on 1 January 1970, because such a time is unknown.

    A time whose year in UTC would be below 1 or above 9999 keeps its own time zone.

    >>> known_time(datetime.fromisoformat("2026-01-31T21:00:00+09:00")).isoformat()
    '2026-01-31T12:00:00+00:00'
    >>> known_time(UNKNOWN_TIME + timedelta(seconds=1)) is None
    True
    """
    # Comparing with a time of another time zone takes a third of this function.
    if moment.year <= _FIRST_KNOWN.year and UNKNOWN_TIME <= moment < _FIRST_KNOWN:
        return None
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return moment
