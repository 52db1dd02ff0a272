"""Orders the records of a stage's inputs before the stage takes them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence

from traceweir.streams.base.stages.base import End, Record, Stage, TellsOutputs, WorksLater
from traceweir.streams.worker.runtime.append_times import AppendTimes

QUEUE = 4_000
"""Number of records of an input that can wait for another input that is behind."""
QUEUE_BYTES = 16 << 20
"""Bytes of values of an input that can wait for another input that is behind."""


class Inbox:
    """Orders the records of a stage's inputs: while an input is behind, by timestamp, then by input.

    Therefore a backlog reaches the stage in the same order as live records, even if the broker returns one input faster
    than another. Records of one topic keep their order, with any timestamps. A record from the future is passed on at
    once: if the record waited for its time, the other inputs would overtake all records behind it.
    """

    def __init__(self, name: str, stage: Stage, topics: Sequence[str], max_records: int) -> None:
        self.name = name
        self.stage = stage
        self.max_records = max_records
        # Decided once: `isinstance` with a protocol takes about 10 µs.
        self.has_outputs: Callable[[], bool] = stage.has_outputs if isinstance(stage, TellsOutputs) else lambda: True
        """Returns whether the stage has outputs; true for a stage that does not tell."""
        self.in_flight: Callable[[], int] = (lambda: stage.in_flight) if isinstance(stage, WorksLater) else lambda: 0
        """Returns the number of records on which the stage works."""
        self.latest = math.inf
        """The current time in milliseconds since 1970; later timestamps count as future."""
        self.behind: Collection[str] = topics
        self.pending = 0
        """Number of records that the stage has taken since the last cut."""
        self.pending_offsets: dict[str, tuple[int, int]] = {}
        """Their first and last offset, by topic."""
        self.waiting: dict[str, deque[Record]] = {topic: deque() for topic in topics}
        self._seen = dict.fromkeys(topics, 0)
        self._position = dict.fromkeys(topics, 0)
        self._append_times = {topic: AppendTimes() for topic in topics}

    def put(self, topic: str, records: Sequence[Record]) -> None:
        """Queues records of a topic."""
        self.waiting[topic].extend(records)
        self._position[topic] = records[-1].offset + 1
        if records[-1].timestamp <= self.latest:
            self._seen[topic] = max(self._seen[topic], records[-1].timestamp)

    def note_end(self, topic: str, end: End) -> None:
        """Notes the end of a topic after a fetch whose records were queued."""
        self._append_times[topic].note(end.stable, end.at)
        # The last offsets can be markers of transactions, which are no records.
        if end.position >= end.stable:
            self._position[topic] = max(self._position[topic], end.stable)

    def newer_than(self, topic: str) -> float:
        """Returns the time after which all records of a topic were appended that the stage has not taken.

        The time is in seconds since 1970; 0 if it is unknown.
        """
        queue = self.waiting[topic]
        return self._append_times[topic].next_after(queue[0].offset if queue else self._position[topic])

    def full(self, topic: str) -> bool:
        """Returns whether the queue of a topic is full, so that the consumer should stop fetching the topic."""
        queue = self.waiting[topic]
        # The queue is nearly always empty, so its bytes are counted only here.
        return len(queue) >= QUEUE or (bool(queue) and sum(len(r.value or b"") for r in queue) >= QUEUE_BYTES)

    def next_run(self, limit: int) -> tuple[str, list[Record]]:
        """Returns the topic and the next records for the stage, at most `limit`; no records if all records must wait."""
        turn = min(
            ((self._due(queue), place) for place, queue in enumerate(self.waiting.values()) if queue), default=None
        )
        if turn is None:
            return "", []
        topics = list(self.waiting)
        first = topics[turn[1]]
        queue = self.waiting[first]
        until = min(
            (self._next_of(topic) - (place < turn[1]) for place, topic in enumerate(topics) if topic != first),
            default=math.inf,
        )
        run: list[Record] = []
        latest = self.latest
        while queue and ((at := queue[0].timestamp) <= until or at > latest) and len(run) < limit:
            run.append(queue.popleft())
        return first, run

    def put_back(self, topic: str, records: Sequence[Record]) -> None:
        """Queues records of the last run again, before the others of their topic."""
        self.waiting[topic].extendleft(reversed(records))

    def take_up(self, topic: str, records: Sequence[Record]) -> None:
        """Notes that the stage takes these records."""
        first = records[0].offset
        last = records[-1].offset
        self.pending_offsets[topic] = self.pending_offsets.get(topic, (first,))[0], last
        self.pending += len(records)

    def _next_of(self, topic: str) -> float:
        """Returns the lowest timestamp that the next record of a topic can have.

        A record that is appended after a time, and has an earlier timestamp, comes late in any case. The other inputs do
        not wait for such records: otherwise an input with old timestamps would keep the others waiting as long as it is
        behind.
        """
        if self.waiting[topic]:
            return self._due(self.waiting[topic])
        return max(self._seen[topic], self.newer_than(topic) * 1000) if topic in self.behind else math.inf

    def _due(self, queue: deque[Record]) -> float:
        """Returns the timestamp that orders the first record of a queue."""
        at = queue[0].timestamp
        return at if at <= self.latest else 0.0
