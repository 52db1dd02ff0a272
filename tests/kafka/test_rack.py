"""Consumers read from the replica in their own rack, and a worker that does so scores every session once."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.kafka import NEEDS_NODES, kafka_home
from tests.support.kafka_cluster import KafkaCluster
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import STAGES, application_id
from traceweir.streams.testing import event
from traceweir.streams.worker.kafka.client_options import consumer_options
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = pytest.mark.kafka

PREFIX, RACK, NODE = "rack.", "rack-2", 2
DEADLINE_S = 90
SESSIONS = [f"s{number}" for number in range(40)]


@pytest.fixture(scope="module")
def settings() -> Iterator[Settings]:
    home = kafka_home() or pytest.skip(NEEDS_NODES)
    with KafkaCluster(home, nodes=3) as cluster:
        settings = Settings(
            kafka_bootstrap_servers=cluster.bootstrap_servers,
            topic_prefix=PREFIX,
            replication_factor=3,
            kafka_client_rack=RACK,
        )
        assert create_topics(settings).wrong == ()
        producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
        for name in SESSIONS:
            producer.produce(f"{PREFIX}invocations", json.dumps(event("session.ended", name)).encode(), name)
        assert producer.flush(30) == 0
        yield settings


async def test_a_consumer_reads_each_partition_from_the_node_in_its_rack(settings: Settings) -> None:
    places = [TopicPartition(f"{PREFIX}invocations", number) for number in range(settings.partitions)]
    async with AIOKafkaConsumer(**consumer_options(settings), auto_offset_reset="earliest") as consumer:
        consumer.assign(places)
        found = 0
        async with asyncio.timeout(DEADLINE_S):
            while found < len(SESSIONS):
                found += sum(map(len, (await consumer.getmany(timeout_ms=1_000)).values()))
        leaders = {consumer._client.cluster.leader_for_partition(place) for place in places}  # noqa: SLF001
        assert leaders > {NODE}
        assert {consumer._fetcher._select_read_replica(place) for place in places} == {NODE}  # noqa: SLF001  # no public name


def test_a_worker_scores_every_session_once_from_the_replicas_in_its_rack(settings: Settings, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    servers = settings.kafka_bootstrap_servers
    with Fleet(servers, PREFIX, tmp_path, config, variables={"TRACEWEIR_KAFKA_CLIENT_RACK": RACK}) as fleet:
        worker = fleet.start("worker")
        with Committed(servers, PREFIX, application_id(PREFIX, STAGES)) as committed:
            deadline = time.monotonic() + DEADLINE_S
            while committed.counts()["score"]["scored"] < len(SESSIONS):
                assert not worker.ended, worker.log.read_text()
                assert time.monotonic() < deadline, worker.log.read_text()
                committed.read(0.1)
            worker.terminate(DEADLINE_S)
            while committed.read(1.0):
                pass
    assert Counter(each["session_id"] for each in committed.sessions()) == Counter(SESSIONS)
    assert committed.rows["dead-letters"] == []
