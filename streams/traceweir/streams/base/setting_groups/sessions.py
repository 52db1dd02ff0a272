"""Defines the settings by which sessions open and close."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from traceweir.schemas.session import MOST_REVISIONS
from traceweir.streams.base.setting_groups.group import Count, Seconds, SettingGroup


class SessionSettings(SettingGroup):
    """Holds the times and sizes of sessions, and how many a partition has."""

    idle_gap_s: Seconds = 300.0
    """Seconds without an event, in record time, after which a session closes."""
    close_linger_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 2.0
    """Seconds from the event that ends the session to the close, 0 or more. The trace of a session often arrives
    last."""
    grace_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 600.0
    """Seconds after the moment at which a closed session was due, 0 or more. An event within this time reopens
    the session as its next revision; a later event begins the session's next segment. The state keeps the content
    of the session for this time."""
    guard_s: Seconds = 3600.0
    """Seconds for which the worker remembers a closed session. An event that lags behind the watermark by more becomes
    a dead letter `late` if its session can have been forgotten. At least the grace."""
    max_future_s: Seconds = 300.0
    """Seconds by which the timestamp of a record can lie ahead of the clock. A record beyond this limit becomes a
    dead letter `future_timestamp`."""
    segment_max_events: Count = 1_000
    """Number of events, 1 or more, at which a segment closes with `size_limit`."""
    segment_max_bytes: Annotated[int, Field(ge=1_000, le=900_000)] = 800_000
    """Bytes of events, 1,000 to 900,000, at which a segment closes with `size_limit`. A session must fit into one
    record, which Kafka limits to 1 MB by default."""
    segment_max_revisions: Annotated[int, Field(ge=0, lt=MOST_REVISIONS)] = 20
    """Number of times, 0 or more, that late events reopen a segment. The next late event begins the session's next
    segment. Each revision scores the whole segment again; each reopening waits twice as long for more events as the
    one before, at most until the grace ends."""
    partition_max_open_sessions: Count = 100_000
    """Number of open sessions of one partition, 1 or more. One more session closes the session that was due to close
    first, with `session_limit`. An open session takes 1
    to 4 kB of memory."""
    partition_max_closed_sessions: Count = 1_000_000
    """Number of closed sessions that a partition remembers, 1 or more. One more closed session makes the worker forget
    the session that closed first before its guard time is over. A closed session takes 0.3 to 0.5 kB of memory. The
    partition also remembers the ids of as many forgotten sessions, in about 20 bytes of memory each."""
