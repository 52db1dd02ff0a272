"""Finds records of writers whose clocks are wrong, by a time that they state."""

from __future__ import annotations

from datetime import datetime, timedelta

from traceweir.streams.base.clock import iso

MOST_AHEAD = timedelta(minutes=5)
"""How far the clocks of two machines differ at most."""


def ahead(stated: datetime, written_ms: int, now: datetime) -> str | None:
    """Returns how a time that a record states had not come yet when it was written, or when it is read; None if it had.

    The timestamp is mostly of the clock that has stated the time, so that it alone shows nothing. The reader's clock alone
    would let the record count as soon as the time has come, also if a broker has written the timestamp.

    Args:
        stated: The time, with its time zone.
        written_ms: The timestamp of the record, in milliseconds since 1970; below 0: it has none.
        now: The present time of the reader.

    >>> moment = datetime.fromisoformat("2026-01-31T12:00:00Z")
    >>> at_ms = int(moment.timestamp() * 1000)
    >>> ahead(moment + timedelta(minutes=6), -1, moment + timedelta(minutes=1)) is None
    True
    >>> (ahead(moment + timedelta(minutes=6), at_ms, moment + timedelta(hours=1)) or "").split(" by ")[0]
    '2026-01-31T12:06:00+00:00 is more than 5 minutes ahead: the record was written at 2026-01-31T12:00:00Z'
    """
    now_s = now.timestamp()
    if stated.timestamp() <= (min(written_ms / 1000, now_s) if written_ms >= 0 else now_s) + MOST_AHEAD.total_seconds():
        return None
    written = f"was written at {iso(written_ms)}" if written_ms >= 0 else "has no time of writing"
    return (
        f"{stated.isoformat()} is more than 5 minutes ahead: the record {written} by the clock of its writer, and is read at "
        f"{now.isoformat(timespec='seconds')} by that of this machine; correct the wrong one"
    )
