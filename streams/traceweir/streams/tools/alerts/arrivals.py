"""Watches whether sessions of a stream come: learns an interval in which one usually comes, and says in which none came."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from traceweir.streams.base.statistics.baseline import HOURS, LEAST_IN_HOUR, WEEK_DAYS, is_weekend
from traceweir.streams.base.statistics.watched_stream import DAY

SLOT = 5
"""Minutes of the shortest interval."""
INTERVALS = (SLOT, 10, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, DAY)
"""Minutes that an interval can have; each divides a day."""
USUAL_SHARE = 0.95
"""In this share of the intervals a session usually comes, at least."""


class PassedInterval(NamedTuple):
    """An interval that is over."""

    start: int
    """Minutes since 1970."""
    came: bool
    """Whether a session came in it."""


class Arrivals(msgspec.Struct, array_like=True):
    """The intervals of a stream, or what is known to learn their length.

    The length is learnt from the first half of the days of the baseline, and in how many intervals a session comes from the
    second half. An interval in which no stream of the topic has a score is left out: then the topic stands still.
    """

    interval: int | None = None
    """Minutes; None while it is learnt."""
    is_sparse: bool = False
    """Whether the last days had too few sessions for any interval; it is learnt from the next ones then."""
    begin: int | None = None
    """The minute since 1970 of the first session that the length is learnt from, or of the present interval."""
    slots: bytes = b""
    """While it is learnt: a bit for each slot of `SLOT` minutes since then, whether a session came in it."""
    came: bool | None = None
    """Whether a session came in the present interval; None if it does not count."""

    @property
    def due(self) -> int | None:
        """The minute since 1970 from which on the present interval is over; None while its length is learnt."""
        return None if self.interval is None or self.begin is None else self.begin + self.interval

    def note(self, minute: int, days: float) -> None:
        """Notes that a session came.

        Args:
            minute: Minutes since 1970, not before that of any call before.
            days: From how many days the length is learnt.
        """
        if self.interval is not None:
            if self.came is not None:
                self.came = True
            return
        if self.begin is None or minute - self.begin >= days * DAY:
            self._learn(minute, int(days * DAY) // SLOT)
            if self.interval is not None:
                return
        begin = self.begin if self.begin is not None else minute
        self.begin = begin
        slot = minute // SLOT - begin // SLOT
        kept = bytearray(self.slots.ljust(slot // 8 + 1, b"\0"))
        kept[slot // 8] |= 1 << slot % 8
        self.slots = bytes(kept)

    def passed(self, minute: int) -> PassedInterval | None:
        """Ends the present interval if it is over; returns it if it counts.

        Args:
            minute: The minute since 1970 that has come, in which some stream of the topic has a score.
        """
        due = self.due
        if self.interval is None or self.begin is None or due is None or minute < due:
            return None
        over = None if self.came is None else PassedInterval(self.begin, self.came)
        self.begin = minute // self.interval * self.interval
        self.came = False
        return over

    def _learn(self, minute: int, most: int) -> None:
        if self.begin is None:
            return
        bits = np.unpackbits(np.frombuffer(self.slots, np.uint8), bitorder="little").astype(bool)
        number = min(minute // SLOT - self.begin // SLOT, most)
        found = np.zeros(number, bool)
        found[: len(bits)] = bits[:number]
        self.interval = usual_interval(found, self.begin // SLOT)
        self.is_sparse = self.interval is None
        self.slots = b""
        # The interval of this minute is left out: it has a session for sure.
        self.begin = None if self.interval is None else minute // self.interval * self.interval


def usual_interval(slots: NDArray[np.bool_], first: int) -> int | None:
    """Returns the shortest interval in nearly all of which a session came, in minutes; None if there is none.

    Hours without any session, such as those of a night, do not count if the hours of the day can be told apart, from 14 days
    on also the hours of weekends.

    Args:
        slots: Whether a session came in each slot.
        first: Number of the first slot since 1970.

    >>> usual_interval(np.arange(864) % 3 == 0, 0), usual_interval(np.arange(864) % 288 // 144 == 0, 0)
    (15, 5)
    >>> usual_interval(np.arange(864) == 0, 0)
    """
    for minutes in INTERVALS:
        size = minutes // SLOT
        skipped = -first % size
        number = (len(slots) - skipped) // size
        if number < 2:
            return None
        came = slots[skipped : skipped + number * size].reshape(number, size).any(axis=1)
        if came.mean() >= USUAL_SHARE:
            return minutes
        starts = (first + skipped + size * np.arange(number)) * SLOT
        hours = starts // 60 % HOURS
        groups = HOURS
        if len(slots) * SLOT >= WEEK_DAYS * DAY:
            groups = 2 * HOURS
            hours += HOURS * is_weekend(starts)
        numbers = np.bincount(hours, minlength=groups)
        if numbers.min() < LEAST_IN_HOUR:
            continue
        shares = np.bincount(hours, came, groups) / numbers
        if np.median(shares[shares > 0]) >= USUAL_SHARE:
            return minutes
    return None


class TimedStream(Protocol):
    """A stream whose intervals end."""

    @property
    def number(self) -> int:
        """Its number among the streams of the rule."""
        ...

    @property
    def due(self) -> int | None:
        """The minute since 1970 from which on its interval is over; None without one."""
        ...


Timed = TypeVar("Timed", bound=TimedStream)


class DueStreams(Generic[Timed]):
    """The streams of a rule by the ends of their intervals, so that a minute costs nothing in which none ends."""

    def __init__(self) -> None:
        self._ends: list[tuple[int, int]] = []
        self._streams: dict[int, Timed] = {}

    def put(self, stream: Timed) -> None:
        """Notes when the interval of a stream ends; called after each change of it."""
        if stream.due is not None:
            heappush(self._ends, (stream.due, stream.number))
            self._streams[stream.number] = stream

    def until(self, minute: int) -> Iterator[Timed]:
        """Yields the streams whose intervals are over at a minute since 1970, and forgets them."""
        while self._ends and self._ends[0][0] <= minute:
            end, number = heappop(self._ends)
            # A stream that learns anew has another end, or none.
            if self._streams[number].due == end:
                yield self._streams[number]
