"""Says how many records of the owned partitions no checkpoint contains, how old they are, and what holds them back."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from faust.types import TP

from traceweir.streams.base.clock import seconds_now
from traceweir.streams.base.stages.base import End
from traceweir.streams.base.stages.inputs import Place
from traceweir.streams.worker.runtime.lane import Lane
from traceweir.streams.worker.runtime.open_transactions import OpenTransactions


class UnreadRecords:
    """Compares where the lanes have read with the ends of their inputs, as of the last fetch."""

    def __init__(self, lanes: Mapping[int, Lane], topics: Collection[str]) -> None:
        self._lanes = lanes
        self._topics = topics
        self._ends: Mapping[TP, End] = {}
        self._open_transactions = OpenTransactions()

    def note(self, ends: Mapping[TP, End]) -> None:
        """Notes the ends of the inputs, after a fetch."""
        self._ends = ends
        self._open_transactions.note(ends)

    def end_of(self, place: Place) -> End | None:
        """Returns the end of a partition of a topic; None if no fetch has reported it."""
        return self._ends.get(TP(*place))

    def lag(self) -> dict[str, int]:
        """Returns the number of unread records of each topic in the owned partitions, as of the last fetch."""
        found = dict.fromkeys(self._topics, 0) if self._lanes else {}
        for lane in self._lanes.values():
            for place in lane.places.values():
                if (end := self.end_of(place)) is not None:
                    found[place.topic] += end.stable - end.position
        return found

    def age_s(self) -> dict[str, float]:
        """Returns the age of the oldest record of each input that no checkpoint contains, in seconds; 0: there is none.

        The age is at least that by which Kafka decides whether it deletes the record (`UnreadTimes`). The partition with the
        oldest one counts.
        """
        now = seconds_now() * 1000
        found: dict[str, list[int | None]] = {topic: [] for topic in self._topics if self._lanes}
        for lane in self._lanes.values():
            for source, place in lane.places.items():
                found[place.topic].append(lane.unread_since(source, self.end_of(place)))
        return {
            topic: max((max(0.0, now - each) / 1000 for each in since if each is not None), default=0.0)
            for topic, since in found.items()
        }

    def held_back_s(self) -> dict[str, float]:
        """Returns for how long an open transaction has held back records, in seconds by input; 0: none does."""
        return self._open_transactions.ages_s()
