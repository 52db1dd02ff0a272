"""Knows how far an exporter has come with Kafka: whether it has its partitions, a broker answers, and commits end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from time import monotonic

from traceweir.streams.worker.kafka.silence import UNKNOWN_AFTER_S, LastAnswer
from traceweir.streams.worker.runtime.health import Phase


class Readiness:
    """What the relay has reached.

    Args:
        last_answer: When a broker last answered this exporter.
        now: Seconds of a monotonic clock.
    """

    def __init__(self, last_answer: LastAnswer | None = None, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._commit_began_s: float | None = None
        self.last_answer = LastAnswer() if last_answer is None else last_answer
        self.phase: Phase = "starting"
        self.partitions: list[int] = []
        """The partitions that are read; none unless the phase is `ready`. A process beyond the number of partitions is
        ready without any."""
        self.trouble: str | None = None
        """Why no score was read at the last attempt, as a sentence; None as soon as partitions are read again."""

    @property
    def obstacles(self) -> list[str]:
        """A sentence for each thing that keeps the exporter from its work, other than brokers that are silent."""
        found = [] if self.trouble is None else [self.trouble]
        if self._commit_began_s is not None and self._now() - self._commit_began_s >= UNKNOWN_AFTER_S:
            found.append(
                f"a commit has not ended for more than {UNKNOWN_AFTER_S:g} s, and nothing is sent meanwhile: check that the "
                "brokers with the partitions of __transaction_state and __consumer_offsets run"
            )
        return found

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Notes that a commit is under way within the block."""
        self._commit_began_s = self._now()
        try:
            yield
        finally:
            self._commit_began_s = None

    def reach(self, phase: Phase) -> None:
        """Notes a phase in which no partition is read."""
        self.phase = phase
        self.partitions = []

    def reach_ready(self, partitions: Collection[int]) -> None:
        """Notes that these partitions are read."""
        self.phase = "ready"
        self.partitions = sorted(partitions)
        self.trouble = None
