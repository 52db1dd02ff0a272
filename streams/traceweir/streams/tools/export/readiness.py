"""Knows how far an exporter has come with Kafka: whether it has its partitions, and whether a broker answers."""

from __future__ import annotations

from collections.abc import Collection

from traceweir.streams.worker.kafka.silence import LastAnswer
from traceweir.streams.worker.runtime.health import Phase


class Readiness:
    """What the relay has reached.

    Args:
        last_answer: When a broker last answered this exporter.
    """

    def __init__(self, last_answer: LastAnswer | None = None) -> None:
        self.last_answer = LastAnswer() if last_answer is None else last_answer
        self.phase: Phase = "starting"
        self.partitions: list[int] = []
        """The partitions that are read; none unless the phase is `ready`. A process beyond the number of partitions is
        ready without any."""
        self.trouble: str | None = None
        """Why no score was read at the last attempt, as a sentence; None as soon as partitions are read again."""

    def reach(self, phase: Phase) -> None:
        """Notes a phase in which no partition is read."""
        self.phase = phase
        self.partitions = []

    def reach_ready(self, partitions: Collection[int]) -> None:
        """Notes that these partitions are read."""
        self.phase = "ready"
        self.partitions = sorted(partitions)
        self.trouble = None
