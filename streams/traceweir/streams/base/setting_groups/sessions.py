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
    """Seconds, 0 or more, from the event that ends the session to the close."""
    grace_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 600.0
    """Seconds, 0 or more, after a closed session was due, in which an event reopens it as its next revision; a later
    one begins its next segment. The state keeps the session's content so long."""
    guard_s: Seconds = 3600.0
    """Seconds for which a closed session is remembered, at least the grace. An event further behind the watermark,
    whose session can be forgotten, becomes a dead letter `late`."""
    max_future_s: Seconds = 300.0
    """Seconds by which a record's timestamp can be ahead of the clock; beyond, it becomes a dead letter
    `future_timestamp`."""
    segment_max_events: Count = 1_000
    """Events, 1 or more, at which a segment closes with `size_limit`."""
    segment_max_bytes: Annotated[int, Field(ge=1_000, le=900_000)] = 800_000
    """Bytes of events, 1,000 to 900,000, at which a segment closes with `size_limit`. A session must fit into a
    record, 1 MB by default."""
    segment_max_revisions: Annotated[int, Field(ge=0, lt=MOST_REVISIONS)] = 20
    """Times, 0 or more, that late events reopen a segment; the next begins another segment. Each revision scores the
    whole segment, and waits twice as long as the one before, at most until the grace ends."""
    partition_max_open_sessions: Count = 100_000
    """Open sessions of a partition, 1 or more, of 1 to 4 kB of memory; one more closes [the one due
    first](closing.md)."""
    partition_max_closed_sessions: Count = 1_000_000
    """Closed sessions that a partition remembers, 1 or more, of 0.3 to 0.5 kB of memory; one more makes it forget the
    oldest early. It remembers as many ids of forgotten sessions, of about 20 bytes."""
