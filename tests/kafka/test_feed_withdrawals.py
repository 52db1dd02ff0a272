"""A store that was away while compaction removed a withdrawal from its topic does not keep the withdrawn trace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from tests.support.kafka import NEEDS_NODES, kafka_home
from tests.support.kafka_cluster import KafkaCluster
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard.feed import Feed
from traceweir.streams.board.store.duckdb_store import DuckDBStore
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = pytest.mark.kafka

WITHIN_S = 120.0
CLEANED_SOON = {"log.cleaner.backoff.ms": 200}
"""Lets a node look every 0.2 s for logs to compact; Kafka's default is 15 s."""
COMPACTED_SOON = {
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "max.compaction.lag.ms": "100",
    "delete.retention.ms": "100",
}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    home = kafka_home() or pytest.skip(NEEDS_NODES)
    with KafkaCluster(home, options=CLEANED_SOON) as cluster:
        yield cluster.bootstrap_servers


def put(servers: str, topic: str, trace_id: str, value: bytes | None) -> None:
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, value, trace_id, 0)
    assert producer.flush(30) == 0


def keys(servers: str, topic: str) -> list[str]:
    """Returns the keys of all records of the first partition."""
    found: list[str] = []
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none", "enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            record = consumer.poll(30)
            assert record is not None
            if record.error() is not None:
                return found
            found.append((record.key() or b"").decode())
    finally:
        consumer.close()


def compact(servers: str, topic: str) -> None:
    """Lets the cluster compact a topic until it does not contain the trace `withdrawn` any more, nor its withdrawal."""
    admin = AdminClient({"bootstrap.servers": servers})
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in COMPACTED_SOON.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result()
    deadline = time.monotonic() + WITHIN_S
    while "withdrawn" in keys(servers, topic):
        assert time.monotonic() < deadline
        # The open segment is not compacted, and a record closes it.
        put(servers, topic, "other", b"{}")
        time.sleep(0.2)


async def feed(settings: Settings, store: DuckDBStore, last: str, *, away: timedelta = timedelta()) -> None:
    """Feeds a store until it has the trace that was written last."""
    stored = asyncio.Event()
    feed = Feed(settings, store, keep={}, now=lambda: NOW + away, changed=stored.set)
    running = asyncio.create_task(feed.run())
    async with asyncio.timeout(WITHIN_S):
        while (last, True) not in traces(store):
            await stored.wait()
            stored.clear()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def traces(store: DuckDBStore) -> list[tuple[str, bool]]:
    found = store.query("SELECT trace_id, accepted FROM network ORDER BY ALL")
    return [(row["trace_id"], row["accepted"]) for row in found]


async def test_a_trace_that_was_withdrawn_while_the_store_was_away_is_removed(
    servers: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(kafka_bootstrap_servers=servers)
    assert create_topics(settings).wrong == ()
    store, topic = open_store(tmp_path / "store.duckdb"), settings.topics.network
    put(servers, topic, "withdrawn", b"{}")
    put(servers, topic, "kept", b"{}")
    await feed(settings, store, "kept")
    assert traces(store) == [("kept", True), ("withdrawn", True)]

    put(servers, topic, "withdrawn", None)
    compact(servers, topic)
    await feed(settings, store, "other", away=timedelta(seconds=1))

    assert traces(store) == [("kept", True), ("other", True)]
    assert "its 2 stored traces are removed first" in caplog.text
