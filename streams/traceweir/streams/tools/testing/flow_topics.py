"""Keeps the topics and the table of a flow: what a test sends, and what the stages have committed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from traceweir.schemas.dead_letter import DeadLetter, Headers
from traceweir.streams.base.stages.counters import COUNTERS_ROW
from traceweir.streams.base.topics import Topics
from traceweir.streams.tools.testing.builders import START_S
from traceweir.streams.tools.testing.memory import MemoryTable, Message


class FlowTopics:
    """Holds the records of topics and the rows of a table in memory, and the time."""

    def __init__(self, topics: Topics, partitions: int) -> None:
        self.topics = topics
        self.partitions = partitions
        self.now = START_S
        """The flow's time, in seconds since 1970."""
        self.logs: dict[tuple[str, int], list[Message]] = defaultdict(list)
        """The records by topic and partition; the index of a record is its offset."""
        self.table = MemoryTable()

    def clock(self) -> datetime:
        """Returns the flow's time; scores contain this time in `evaluated_at`."""
        return datetime.fromtimestamp(self.now, UTC)

    def send(
        self,
        topic: str,
        value: bytes | Mapping[str, Any] | None,
        key: bytes | None = None,
        *,
        partition: int = 0,
        headers: Headers = (),
        at: float | None = None,
    ) -> Message:
        """Appends a record to a topic and returns the record; the stages read the record later.

        Args:
            topic: The full name of the topic, such as `flow.topics.traces`.
            value: Bytes, an object that is serialised as JSON, or None for a tombstone.
            key: The record's key.
            partition: The partition of the record. As in a worker, the assemble stage forwards a record to the
                partition of its session.
            headers: The record's headers.
            at: The record's timestamp, in seconds after the start; by default the current time of the flow.
        """
        log = self.logs[topic, partition]
        timestamp = round(((self.now - START_S if at is None else at) + START_S) * 1000)
        raw = orjson.dumps(value) if isinstance(value, Mapping) else value
        log.append(Message(topic, partition, len(log), timestamp, key, raw, headers))
        return log[-1]

    def read(self, topic: str) -> list[Message]:
        """Returns all records of a topic, ordered by partition and offset."""
        return [message for partition in range(self.partitions) for message in self.logs[topic, partition]]

    def sessions(self) -> list[Any]:
        """Returns the closed sessions in all revisions, parsed from JSON."""
        return [message.json for message in self.read(self.topics.sessions)]

    def results(self, metric: str | None = None) -> list[Any]:
        """Returns the scores of one metric or of all metrics in all revisions, parsed from JSON."""
        scores = [message.json for message in self.read(self.topics.results)]
        return [score for score in scores if metric in (None, score["metric"])]

    def challenger_results(self, name: str, metric: str | None = None) -> list[Any]:
        """Returns the scores of a challenger, as `results` returns those of the champion."""
        scores = [message.json for message in self.read(self.topics.shadow_results(name))]
        return [score for score in scores if metric in (None, score["metric"])]

    def dead_letters(self) -> list[DeadLetter]:
        """Returns the dead letters, each with its record and the reason."""
        return [message.dead_letter for message in self.read(self.topics.dead_letters)]

    def counters(self, stage: str) -> dict[str, int]:
        """Returns the counters of a stage at the last checkpoint, summed over all partitions."""
        total: dict[str, int] = defaultdict(int)
        for partition in range(self.partitions):
            row = self.table.read(partition, stage.encode() + b"/" + COUNTERS_ROW)
            for name, count in orjson.loads(row or b"{}").items():
                total[name] += count
        return dict(total)

    def rows(self, prefix: bytes = b"", partition: int = 0) -> dict[bytes, bytes]:
        """Returns the rows of a partition with this key prefix at the last checkpoint.

        The keys of a stage's rows begin with the stage's name.
        """
        return {key: row for key, row in self.table.rows(partition).items() if key.startswith(prefix)}
