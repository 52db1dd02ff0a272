"""Notices that a store can lack withdrawals: a compacted topic keeps them for some time only.

A withdrawal is a record without a value. Compaction removes the withdrawn record at once, and the withdrawal itself after
`delete.retention.ms`. A store that reads on after that time keeps what was withdrawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from aiokafka import TopicPartition

from traceweir.streams.board.store.rows import Batch, SourcePartition
from traceweir.streams.worker.kafka.log_facts import can_lack_deletions

SHORTEST_KEPT_S = 10.0
"""Below this many seconds, a feed that runs without a pause reads on; it starts over only after it was away."""


class Withdrawals:
    """Follows up to when a store has all withdrawals of a compacted topic.

    Args:
        topic: The topic.
        current_at: The time that the store has for the topic; None: it has none.
        kept_s: How long the topic keeps withdrawals at least, in seconds.
    """

    def __init__(self, topic: str, current_at: datetime | None, kept_s: float) -> None:
        self.topic = topic
        self.kept_s = kept_s
        self._current_at = current_at
        self._asked_at: datetime | None = None
        self._ends: dict[TopicPartition, int] = {}

    @property
    def are_kept_for_long(self) -> bool:
        """Whether a running feed can look at the topic often enough to know that it has all withdrawals."""
        return self.kept_s >= SHORTEST_KEPT_S

    def lost(
        self, stored: Mapping[SourcePartition, int], begins: Mapping[TopicPartition, int], now: datetime
    ) -> str | None:
        """Returns the reason why the store cannot read on from its offsets; None if it can.

        Args:
            stored: The offsets of the store.
            begins: The first offset that can be read, by partition.
            now: The present time.
        """
        for place, begin in begins.items():
            if place.topic == self.topic and stored.get(SourcePartition(*place), begin) < begin:
                return f"the records before offset {begin} of partition {place.partition} were removed"
        if all(source.topic != self.topic for source in stored):
            return None
        return self.outlived(now)

    def outlived(self, now: datetime) -> str | None:
        """Returns the reason why withdrawals can have left the topic before they were read; None if none can."""
        if self._current_at is None:
            return "it is unknown since when the store lacks withdrawals"
        age_s = (now - self._current_at).total_seconds()
        if not can_lack_deletions(age_s, self.kept_s):
            return None
        return (
            f"the store had everything {age_s / 3600:.1f} h ago, and the topic keeps withdrawals for {self.kept_s / 3600:g} h "
            "(delete.retention.ms)"
        )

    def begin(self, at: datetime) -> None:
        """Notes that the topic is read from its beginning since this time."""
        self._current_at = at

    def await_ends(self, ends: Mapping[TopicPartition, int], asked_at: datetime) -> None:
        """Notes the ends of the topic; does nothing while the former ones are not reached."""
        if self._asked_at is None:
            self._ends = {place: end for place, end in ends.items() if place.topic == self.topic}
            self._asked_at = asked_at

    def reached(self, positions: Mapping[TopicPartition, int]) -> Batch | None:
        """Returns what the store has to write once the ends are reached; None if there is nothing new.

        Args:
            positions: The offset that is read next, by partition; all records before it are stored.
        """
        if self._asked_at is None or any(positions[place] < end for place, end in self._ends.items()):
            return None
        self._current_at = self._asked_at
        self._asked_at = None
        return Batch(current_at={self.topic: self._current_at})
