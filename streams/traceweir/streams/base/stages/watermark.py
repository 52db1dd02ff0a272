"""Defines the watermark of a partition: the point in record time that the partition has reached."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from traceweir.streams.base.stages.base import Rows

MARKS_ROW = b"w"
_MIN_SETTLING_MS = 5_000
"""Minimum time for which late records hold the watermark back. An input that lags further behind is a backlog."""
_BACKLOG_DIVISOR = 10
"""After a backlog the watermark is held back by a tenth of its length, because misrouted records arrive that late."""
_MAX_SETTLING_MS = 60_000
"""Maximum time for which late records hold the watermark back."""
_AFTER_BACKLOG_MS = 60_000
"""Time after a backlog in which late records hold the watermark back.

Later they have no effect: otherwise one sender with a slow clock would keep all sessions open.
"""

MOST_AHEAD_MS = 120_000
"""How far a stored watermark can be ahead of the next owner's clock: each of two owners can be 60 s from the brokers'."""
SET_BACK = (
    "partition %d: the watermark of the stage %s was %.0f s ahead of now and is set back, because a former owner had a fast "
    "clock. That owner closed sessions early, and records that it rejected as `late` can be replayed: `traceweir dlq "
    "replay --reason late`"
)
"""Warning about a watermark that was set back."""


class Watermark:
    """The watermark of a partition, which never goes back under one owner. All times are in milliseconds since 1970.

    While inputs are behind, the watermark is the lowest of the times that they have reached, so that a fast input does
    not close a session early, and at most the clock, so that a record from the near future does not either. An input
    has reached its highest timestamp, and the time after which all records were appended that are not read yet. The
    second time does not depend on the timestamps of the producers: an input with old timestamps does not stop the
    watermark. After all inputs are read to their end, the watermark follows the clock; late records hold it back for a
    while.
    """

    def __init__(self, version: int = 1) -> None:
        """Begins at 0. The version says which other rows the stage writes; an earlier one writes a lower number, or none."""
        self._version = version
        self.written_by = version
        """The version of the stage that wrote the loaded row; its own if there was none."""
        self.at = self.now = 0
        """The watermark, and the time of the last `advance`."""
        self.high: dict[str, int] = {}
        """The highest timestamp of each input that is not in the future."""
        self._row = b""
        self._lateness = self._settled_at = self._backlog_at = self._read_until = 0
        self._restored = False
        self.set_backs = self.set_back_at = 0
        """How often the watermark was set back so far, and the time of the last one; see `advance`."""

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the watermark of the last finished checkpoint."""
        self._row = rows.get(MARKS_ROW, b"")
        if self._row:
            marks = orjson.loads(self._row)
            self.at = marks["watermark"]
            self.high = marks["high"]
            self.written_by = marks.get("version", 1)
            self.set_backs = marks.get("set_backs", 0)
            self.set_back_at = marks.get("set_back_at", 0)
            self._restored = True

    def rows(self) -> Rows:
        """Returns the row of the watermark, if it has changed since the last call."""
        marks = {"watermark": self.at, "high": self.high}
        if self.set_backs:
            marks |= {"set_backs": self.set_backs, "set_back_at": self.set_back_at}
        if self._version > 1:
            marks |= {"version": self._version}
        row = orjson.dumps(marks)
        if row == self._row:
            return []
        self._row = row
        return [(MARKS_ROW, row)]

    def advance(self, now: float, behind: Mapping[str, float]) -> int:
        """Moves the watermark.

        The first call after `load` sets the watermark back if it is more than `MOST_AHEAD_MS` ahead of the time: its
        writer had a fast clock.

        Args:
            now: Seconds since 1970.
            behind: The inputs that are not read to their end, each with the time in seconds since 1970 after which all
                records were appended that are not read yet; 0 if that time is unknown.

        Returns:
            By how many milliseconds the watermark was ahead of the time before it was set back; 0 if it was not.
        """
        self.now = int(now * 1000)
        ahead = self._set_back() if self._restored else 0
        # While this partition had no worker, the strays of other partitions became late too.
        if self._restored:
            self._restored = False
            self._backlog_at = self.now
            self.note_lateness(max((self.at, *self.high.values())))
        held = self._lateness if self.now < self._settled_at else 0
        if behind:
            self._read_until = int(min(behind.values()) * 1000)
            is_backlog = self.now - self._reached(behind, 0) > _MIN_SETTLING_MS
            if is_backlog:
                self._backlog_at = self.now
            reached = self._reached(behind, 0 if is_backlog else held)
        else:
            self._read_until = 0
            reached = self.now - held
        self.at = max(self.at, min(reached, self.now))
        return ahead

    def _set_back(self) -> int:
        """Sets a watermark that is far ahead back to the newest record that its inputs have really reached."""
        latest = self.now + MOST_AHEAD_MS
        ahead = self.at - self.now
        if self.at <= latest:
            return 0
        self.high = {source: high for source, high in self.high.items() if high <= latest}
        self.at = min(self.now, max(self.high.values(), default=self.now))
        self.set_backs += 1
        self.set_back_at = self.now
        return ahead

    def note_reached(self, source: str, timestamp: int) -> None:
        """Notes the timestamp of a record: its input has reached that time, unless it is in the future."""
        high = self.high.setdefault(source, 0)
        if high < timestamp <= self.now:
            self.high[source] = timestamp

    def note_lateness(self, timestamp: int) -> None:
        """Notes how late records arrive, and holds the watermark back by this lateness for a while.

        After a backlog the strays of other partitions arrive as late as the partition's own records. Without this
        delay, the clock would close sessions before their strays arrive. A record is at most as late as its input is
        behind; an older timestamp comes from its producer, and other partitions have no part in it.
        """
        if self.now - self._backlog_at > _AFTER_BACKLOG_MS:
            return
        lateness = max(0, self.now - max(timestamp, self._read_until))
        if lateness >= self._lateness or self.now >= self._settled_at:
            settling = min(max(_MIN_SETTLING_MS, lateness // _BACKLOG_DIVISOR), _MAX_SETTLING_MS)
            self._lateness = lateness
            self._settled_at = self.now + settling

    def _reached(self, behind: Mapping[str, float], held: int) -> int:
        return min(max(self.high.get(source, 0), int(until * 1000) - held) for source, until in behind.items())
