"""A score that waits for a target, and its record on the topic `export-waiting`."""

from __future__ import annotations

from typing import NamedTuple

from traceweir.streams.tools.export.source import FoundRecord

Place = tuple[int, int, int]
"""Partition, offset and timestamp of a score on its topic."""


class WaitingScore(NamedTuple):
    """A score that waits."""

    partition: int
    offset: int
    """The place on its topic."""
    at_ms: int
    """The timestamp there, in milliseconds since 1970."""
    key: str
    """The key of its record."""
    value: bytes
    """The score as JSON, as on its topic."""
    since_s: float
    """Since when it waits, in seconds since 1970."""

    @classmethod
    def of(cls, found: FoundRecord, since_s: float) -> WaitingScore:
        """Returns a score that waits from now on."""
        return cls(found.partition, found.offset, found.at_ms, found.key, found.value, since_s)

    @property
    def place(self) -> Place:
        """Where it is on its topic."""
        return self.partition, self.offset, self.at_ms

    @property
    def session(self) -> tuple[int, str]:
        """Partition and key: what keeps its order."""
        return self.partition, self.key


class WaitingRow(NamedTuple):
    """A record of the topic `export-waiting`."""

    place: Place
    """The score that it is about."""
    row_at: int
    """The offset of the record."""
    score: WaitingScore | None
    """None: the score waits no longer."""
