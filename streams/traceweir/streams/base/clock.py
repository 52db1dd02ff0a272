"""Reads the system clock, and writes a time as text. All other modules get the time as an argument or a callable."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Literal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc_now() -> datetime:
    """Returns the current time as a timezone-aware datetime in UTC."""
    return datetime.now(UTC)  # noqa: TID251


def seconds_now() -> float:
    """Returns the current time in seconds since 1970 (the Unix epoch)."""
    return time.time()


def iso(milliseconds: int, precision: Literal["seconds", "milliseconds"] = "seconds") -> str:
    """Returns a time in ISO 8601 and UTC, rounded down; outside the years 1 to 9999 the number itself.

    Args:
        milliseconds: The time in milliseconds since 1970.
        precision: The unit of its last digit.

    >>> iso(1_500), iso(1_500, "milliseconds"), iso(10**18)
    ('1970-01-01T00:00:01Z', '1970-01-01T00:00:01.500Z', '1000000000000000000 ms after 1970')
    """
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms after 1970"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")
