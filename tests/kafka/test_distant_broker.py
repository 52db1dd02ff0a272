"""Workers take over partitions from a broker in another region, where each answer takes a second."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from tests.support.kafka import NEEDS_NODES, kafka_home
from tests.support.kafka_cluster import KafkaCluster
from tests.support.workers import Fleet

from traceweir.streams.clock import utc_now
from traceweir.streams.kafka.topic_admin import create_topics
from traceweir.streams.settings import Settings

pytestmark = pytest.mark.kafka

PREFIX, SESSIONS = "distant.", 60
DELAY_S = 0.5
"""Time that each byte is under way in each direction, in seconds."""
WITHIN_S = 240.0
DEFAULTS = {"TRACEWEIR_SESSION_TIMEOUT_S": "10", "TRACEWEIR_HEARTBEAT_INTERVAL_S": "1"}
"""The defaults of the product, in place of those of other tests."""


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    home = kafka_home() or pytest.skip(NEEDS_NODES)
    with KafkaCluster(home, distant=True) as cluster:
        assert (
            create_topics(Settings(kafka_bootstrap_servers=cluster.bootstrap_servers, topic_prefix=PREFIX)).wrong == ()
        )
        yield cluster


def send_sessions(servers: str) -> None:
    """Sends sessions of one event each, which close at once."""
    producer = Producer({"bootstrap.servers": servers})
    now = utc_now().isoformat()
    for number in range(SESSIONS):
        event = {
            "type": "session.ended",
            "session_id": f"chat-{number}",
            "occurred_at": now,
            "expects": {"events": 1, "traces": 0},
        }
        producer.produce(f"{PREFIX}invocations", key=f"chat-{number}", value=json.dumps(event))
    assert producer.flush(30) == 0


def closed_sessions(servers: str) -> list[str]:
    """Returns the ids of the closed sessions in the order of the topic, once all have come or the time is over."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([f"{PREFIX}sessions"])
    found: list[str] = []
    deadline = time.monotonic() + WITHIN_S
    while len(set(found)) < SESSIONS and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found.append(json.loads(message.value() or b"")["session_id"])
    consumer.close()
    return found


def test_workers_far_from_their_broker_take_over_partitions_and_stay_in_their_group(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    send_sessions(cluster.bootstrap_servers)
    for network in cluster.networks:
        network.delay_s = DELAY_S
    with Fleet(cluster.distant_servers, PREFIX, tmp_path, config, variables=DEFAULTS) as fleet:
        workers = [fleet.start("a"), fleet.start("b")]
        found = closed_sessions(cluster.bootstrap_servers)
        logs = "".join(worker.log.read_text() for worker in workers)
        assert sorted(found) == sorted(f"chat-{number}" for number in range(SESSIONS)), logs
        assert [worker.process.poll() for worker in workers] == [None, None]
    assert "member_id was not recognized" not in logs
