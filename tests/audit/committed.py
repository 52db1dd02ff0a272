"""Reads the committed records. Uses plain JSON and a consumer, and shares no code with the worker."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.ledger import PARTITIONS

Document = dict[str, Any]

INPUTS = ("traces", "invocations", "strays", "sessions", "candidates")
OUTPUTS = ("results", "network", "dead-letters")
CONFIGS = "configs"
CHANGELOG = "changelog"
STAGES = ("assemble", "score", "gate")
SPAN_INPUTS = ("otlp_spans", "otlp_logs", "spans")
"""The inputs of the stage collect."""
STAGE_OF = dict(zip(INPUTS, ("assemble", "assemble", "assemble", "score", "gate"), strict=True))
STAGE_OF |= dict.fromkeys(SPAN_INPUTS, "collect")


class Row(NamedTuple):
    """A committed record."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]
    timestamp: int
    """Milliseconds since 1970."""

    @property
    def document(self) -> Document:
        """The value, which must be a JSON object."""
        found: Document = json.loads(self.value or b"")
        return found


class CommittedRecords:
    """The committed records read so far from the topics of a prefix and from its applications' changelogs.

    Args:
        names: The short name of each topic, by its full name.
        spans: Whether the stage collect runs too.
    """

    def __init__(self, names: Mapping[str, str], *, spans: bool = False) -> None:
        self.names = names
        """The short name of each topic, by its full name."""
        self.inputs = (*SPAN_INPUTS, *INPUTS) if spans else INPUTS
        """The inputs of the stages."""
        self.stages = ("collect", *STAGES) if spans else STAGES
        """The stages of the workers."""
        self.sources = ("otlp_spans", "otlp_logs") if spans else ("traces", "invocations")
        """The topics that the load is sent to."""
        self.rows: dict[str, list[Row]] = {topic: [] for topic in names.values()}
        self._counts: dict[tuple[str, int], Document] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self._latest: dict[tuple[int, bytes], bytes | None] = {}

    def last_rows(self, prefix: bytes) -> dict[tuple[int, bytes], bytes | None]:
        """Returns the last value of each row of the changelogs whose key begins with a prefix, by partition and key."""
        return {place: value for place, value in self._latest.items() if place[1].startswith(prefix)}

    def keep(self, topic: str, row: Row) -> None:
        """Keeps a record of a topic, which has its short name."""
        self.rows[topic].append(row)
        self._ends[topic, row.partition] = row.offset
        if topic == CHANGELOG and row.key is not None:
            self._latest[row.partition, row.key] = row.value
        if topic == CHANGELOG and row.key is not None and row.key.endswith(b"/#"):
            self._counts[row.key.decode().removesuffix("/#"), row.partition] = row.document

    def offsets(self) -> dict[tuple[str, int], int]:
        """Returns the committed offsets of the groups by short topic name and partition."""
        raise NotImplementedError

    def unread(self) -> list[str]:
        """Returns the inputs with a committed record above the group's committed offset.

        Raises:
            KafkaException: no broker reported the offsets.
        """
        offsets = self.offsets()
        return [
            f"{topic}[{partition}]: committed {offsets.get((topic, partition))}, last record {last}"
            for (topic, partition), last in sorted(self._ends.items())
            if topic in self.inputs and offsets.get((topic, partition), -1) <= last
        ]

    def counts(self) -> dict[str, Counter[str]]:
        """Returns the counts of each stage over all partitions, by stage."""
        total: dict[str, Counter[str]] = {stage: Counter() for stage in self.stages}
        for (stage, _), counted in self._counts.items():
            total[stage].update(counted)
        return total

    def counted_partitions(self, stage: str) -> set[int]:
        """Returns the partitions in which a stage has finished a checkpoint."""
        return {partition for name, partition in self._counts if name == stage}

    def progress(self) -> tuple[dict[str, int], dict[str, int]]:
        """Returns the number of records that each stage has consumed, and the number in its inputs."""
        counts = self.counts()
        waiting = {
            stage: sum(len(self.rows[topic]) for topic in self.inputs if STAGE_OF[topic] == stage)
            for stage in self.stages
        }
        return {stage: counts[stage]["consumed"] for stage in self.stages}, waiting

    def is_at_rest(self) -> bool:
        """Returns whether every stage has consumed all records read from its inputs, and no session or trace is open."""
        counts = self.counts()
        consumed, waiting = self.progress()
        assemble, collect = counts["assemble"], counts.get("collect", Counter())
        return (
            consumed == waiting
            and assemble["opened"] + assemble["reopened"] == assemble["closed"]
            and collect["traces"] + collect["reopened"] == collect["published"]
        )

    def arrived(self) -> int:
        """Returns how many records of the load have been read."""
        return sum(len(self.rows[topic]) for topic in self.sources)

    def sessions(self) -> Iterator[Document]:
        """Returns the closed segments."""
        return (row.document for row in self.rows["sessions"])


class Committed(CommittedRecords):
    """Reads the records of a Kafka cluster.

    With `spans`, the stage collect runs too, and the prefix is also before the names of the OTLP topics.
    """

    def __init__(self, bootstrap_servers: str, prefix: str, *applications: str, spans: bool = False) -> None:
        topics = (*(SPAN_INPUTS if spans else ()), *INPUTS, *OUTPUTS, CONFIGS)
        changelogs = {f"{application}-state-changelog": CHANGELOG for application in applications}
        super().__init__({f"{prefix}{topic}": topic for topic in topics} | changelogs, spans=spans)
        self._applications = applications
        quiet = {"bootstrap.servers": bootstrap_servers, "log_level": 0, "error_cb": lambda _: None}
        self._admin = AdminClient(quiet)
        self._consumer = Consumer(
            {
                **quiet,
                "group.id": "reader-of-tests",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._consumer.assign(
            [TopicPartition(name, number, OFFSET_BEGINNING) for name in self.names for number in range(PARTITIONS)]
        )

    def __enter__(self) -> Committed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def read(self, seconds: float) -> int:
        """Reads on for a time; returns the number of records.

        The number excludes changelog rows, because state is cleared much later.
        """
        until, count = time.monotonic() + seconds, 0
        while (left := until - time.monotonic()) > 0:
            for message in self._consumer.consume(5_000, min(0.5, left)):
                if error := message.error():
                    if error.retriable() or not error.fatal():  # a broker was killed; the client retries
                        continue
                    raise RuntimeError(error)
                topic = self.names[message.topic()]
                count += topic != CHANGELOG
                self.keep(topic, _row(message))
        return count

    def offsets(self) -> dict[tuple[str, int], int]:
        """Returns the committed offsets of the groups.

        Raises:
            KafkaException: no broker reported the offsets.
        """
        found: dict[tuple[str, int], int] = {}
        for application in self._applications:
            asked = ConsumerGroupTopicPartitions(application)
            answer = self._admin.list_consumer_group_offsets([asked])[application].result(timeout=30)
            found |= {(self.names[place.topic], place.partition): place.offset for place in answer.topic_partitions}
        return found

    def everything_is_read(self) -> bool:
        """Returns whether the groups' offsets are at the end of every input, as far as a broker reports them."""
        try:
            return not self.unread()
        except KafkaException:
            return False


def _row(message: Any) -> Row:
    _, timestamp = message.timestamp()
    return Row(
        message.partition(), message.offset(), message.key(), message.value(), message.headers() or [], timestamp
    )
