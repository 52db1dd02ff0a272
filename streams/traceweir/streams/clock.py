"""Reads the system clock. All other modules get the time as an argument or a callable."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utc_now() -> datetime:
    """Returns the current time as a timezone-aware datetime in UTC."""
    return datetime.now(UTC)  # noqa: TID251


def seconds_now() -> float:
    """Returns the current time in seconds since 1970 (the Unix epoch)."""
    return time.time()
