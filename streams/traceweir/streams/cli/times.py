"""Parses the times of options."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import typer

_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def time_option(text: str | None, option: str) -> int | None:
    """Returns the time that the value of an option names, in milliseconds since 1970; None without a value.

    Raises:
        typer.BadParameter: the text is neither a time nor a duration.
    """
    from traceweir.streams.base.clock import utc_now

    try:
        return None if text is None else read_time(text, utc_now())
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def read_time(text: str, now: datetime) -> int:
    """Returns milliseconds since 1970 for an ISO 8601 time (UTC without an offset) or a duration before now (`2h`).

    >>> read_time("2h", datetime(2026, 1, 31, 12, tzinfo=UTC)) == read_time("2026-01-31T10:00Z", datetime.max)
    True

    Raises:
        ValueError: the text is neither a time nor a duration.
    """
    if ago := re.fullmatch(r"(\d{1,9})([smhdw])", text):
        return int(now.timestamp() * 1000) - int(ago[1]) * _UNITS_S[ago[2]] * 1000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time; write for example 2h, 2026-01-31 or 2026-01-31T10:00:00Z") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
