"""A score that waits for a target, and its record on the topic `export-waiting`."""

from __future__ import annotations

from typing import NamedTuple

from traceweir.schemas.score import Score
from traceweir.streams.tools.results.reader import FoundScore

Place = tuple[int, int, int]
"""Partition, offset and timestamp of a score on `results`."""


class WaitingScore(NamedTuple):
    """A score that waits."""

    partition: int
    offset: int
    """The place on `results`."""
    at_ms: int
    """The timestamp on `results`, in milliseconds since 1970."""
    session_id: str
    value: bytes
    """The score as JSON, as on `results`."""
    since_s: float
    """Since when it waits, in seconds since 1970."""

    @classmethod
    def of(cls, found: FoundScore, since_s: float) -> WaitingScore:
        """Returns a score that waits from now on."""
        return cls(found.partition, found.offset, found.at_ms, found.score.session_id, found.value, since_s)

    @property
    def found(self) -> FoundScore:
        """The score as it was read from `results`.

        Raises:
            ValueError: it is the record of another program, and no score.
        """
        score = Score.model_validate_json(self.value)
        return FoundScore(self.at_ms, self.partition, self.offset, score, self.value)

    @property
    def place(self) -> Place:
        """Where it is on `results`."""
        return self.partition, self.offset, self.at_ms

    @property
    def session(self) -> tuple[int, str]:
        """Partition and session: what keeps its order."""
        return self.partition, self.session_id


class WaitingRow(NamedTuple):
    """A record of the topic `export-waiting`."""

    place: Place
    """The score that it is about."""
    row_at: int
    """The offset of the record."""
    score: WaitingScore | None
    """None: the score waits no longer."""
