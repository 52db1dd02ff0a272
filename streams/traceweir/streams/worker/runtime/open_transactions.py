"""Measures for how long an open transaction of any producer holds back the records of an input."""

from __future__ import annotations

from collections.abc import Mapping

from aiokafka import TopicPartition

from traceweir.streams.base.stages.base import End


class OpenTransactions:
    """Notes since when the last stable offset of each partition has stood still behind the end of its log.

    >>> place, open_transactions = TopicPartition("sessions", 0), OpenTransactions()
    >>> open_transactions.note({place: End(5, 5, 100.0, held_back=True)})
    >>> open_transactions.note({place: End(5, 5, 130.0, held_back=True)})
    >>> open_transactions.ages_s()
    {'sessions': 30.0}
    """

    def __init__(self) -> None:
        self._since: dict[TopicPartition, tuple[int, float]] = {}
        self._ages: dict[TopicPartition, float] = {}

    def note(self, ends: Mapping[TopicPartition, End]) -> None:
        """Notes the ends of all fetched partitions; partitions that are missing are not fetched any more."""
        since = self._since
        self._since = {}
        self._ages = {}
        for place, end in ends.items():
            if not end.held_back:
                self._ages[place] = 0.0
                continue
            stable, at = since.get(place, (end.stable, end.at))
            # A stable offset that moves shows transactions that end: under load one is open at nearly every moment.
            self._since[place] = stable, at = (stable, at) if stable == end.stable else (end.stable, end.at)
            self._ages[place] = end.at - at

    def ages_s(self) -> dict[str, float]:
        """Returns the longest time of each topic, in seconds; 0 where nothing is held back."""
        longest: dict[str, float] = {}
        for place, age in self._ages.items():
            longest[place.topic] = max(age, longest.get(place.topic, 0.0))
        return longest
