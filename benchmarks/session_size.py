"""Measures the bytes that a session leaves: in each topic of Kafka, and in a DuckDB store. Needs Apache Kafka.

A worker with all stages processes the load of `throughput`. The sizes are those of the broker's files, so batches, headers
and the marks of transactions count. Nothing is compacted in this time: the changelog has all that was written.
"""

import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from benchmarks import throughput
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.topics import STAGES, Topics, application_id
from traceweir.streams.board.store.duckdb_store import DuckDBStore
from traceweir.streams.board.store.rows import Batch, RowReader, SourcePartition

SESSIONS = 20_000
PARTITIONS = 4
IN_BATCH = 10_000
CODECS = ("none", "zstd")
STORED = {"results": "results", "sessions": "sessions", "network": "network"}
_TIMEOUT_S = 30.0
"""Time without a record of a topic, in seconds, after which the benchmark fails."""


class Read(NamedTuple):
    """The attributes of a record that the store reads."""

    offset: int
    value: bytes | None
    partition: int
    timestamp: int
    key: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def run(servers: str, logs: Path, sessions: int = SESSIONS) -> None:
    """Prints bytes a session by topic, for each codec of the workers, and those of a store.

    Args:
        servers: The address of the cluster.
        logs: The folder with the broker's logs.
        sessions: Number of sessions.
    """
    topics: Topics | None = None
    for codec in CODECS:
        found: list[str] = []
        measured = throughput.one(
            servers, "all stages", sessions, variables={"TRACEWEIR_KAFKA_COMPRESSION": codec}, prefixes=found
        )
        topics = Topics.of(found[0])
        sizes = _sizes(logs, topics, found[0])
        listed = ", ".join(f"{name} {size / sessions:,.0f}" for name, size in sizes.items() if size)
        cpu_us = measured["cpu_us"] + measured["children_us"]
        print(f"  {codec}: bytes a session: {listed}; {cpu_us:.1f} us CPU a record with scoring", flush=True)
    assert topics is not None
    print(f"  DuckDB: {_stored(servers, topics) / sessions:,.0f} bytes a session")


def _sizes(logs: Path, topics: Topics, prefix: str) -> Mapping[str, int]:
    """Returns the bytes of each topic in the broker's files."""
    names = {
        "traces": topics.traces,
        "invocations": topics.invocations,
        "sessions": topics.sessions,
        "candidates": topics.candidates,
        "results": topics.results,
        "network": topics.network,
        "dead-letters": topics.dead_letters,
        "changelog": f"{application_id(prefix, STAGES)}-state-changelog",
    }
    return {
        name: sum(file.stat().st_size for file in logs.glob(f"{topic}-[0-9]*/*.log")) for name, topic in names.items()
    }


def _stored(servers: str, topics: Topics) -> int:
    """Returns the bytes of a DuckDB file with all that a dashboard keeps of these topics."""
    tables: Any = {getattr(topics, name): table for name, table in STORED.items()}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store.duckdb"
        store = DuckDBStore(file, "this benchmark", utc_now())
        reader = RowReader(tables)
        for topic in tables:
            for records in _batches(servers, topic):
                batch = Batch(offsets={SourcePartition(topic, each.partition): each.offset + 1 for each in records})
                reader.add(batch, topic, records)
                store.write(batch)
        store.close()
        return file.stat().st_size


def _batches(servers: str, topic: str) -> Iterator[list[Read]]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "session-size",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    left = PARTITIONS
    last_at = time.monotonic()
    while left:
        messages = consumer.consume(IN_BATCH, 1.0)
        if messages:
            last_at = time.monotonic()
        elif time.monotonic() - last_at > _TIMEOUT_S:
            raise TimeoutError(f"{topic}: no record and no end of a partition came for {_TIMEOUT_S:g} s")
        errors = [error for message in messages if (error := message.error()) is not None]
        for error in errors:
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
        left -= len(errors)
        records = [
            Read(
                message.offset(),
                message.value(),
                message.partition(),
                message.timestamp()[1],
                message.key(),
                tuple(message.headers() or ()),
            )
            for message in messages
            if message.error() is None
        ]
        if records:
            yield records
    consumer.close()
