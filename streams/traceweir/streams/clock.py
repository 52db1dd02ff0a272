"""The one place that reads the clock; everything else is told the time."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utc_now() -> datetime:
    """Now, aware."""
    return datetime.now(UTC)  # noqa: TID251


def seconds_now() -> float:
    """Seconds since 1970."""
    return time.time()
