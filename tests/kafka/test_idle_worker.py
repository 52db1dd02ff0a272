"""A worker that was idle for so long that Kafka has forgotten its producer takes a new one, and scores what comes next."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.kafka import NEEDS_NODES, kafka_home
from tests.support.kafka_cluster import KafkaCluster
from tests.support.ledger import PARTITIONS
from tests.support.workers import Fleet, Worker

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import application_id
from traceweir.streams.testing import event
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = pytest.mark.kafka

EXPIRES_MS = 3_000
DEADLINE_S = 90
_LIST_TRANSACTIONS, _DESCRIBE_PRODUCERS = (66, 0), (61, 0)
"""Key and version of the requests."""
_EMPTY = b"\x01"
"""A list without an entry, in the compact form of Kafka's protocol, which adds 1 to each length."""
_NO_TAGS = b"\0"
FORGETS_TRANSACTIONS: dict[str, object] = {
    "transactional.id.expiration.ms": EXPIRES_MS,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 500,
}
FORGETS_PRODUCERS: dict[str, object] = {
    "producer.id.expiration.ms": EXPIRES_MS,
    "producer.id.expiration.check.interval.ms": 500,
}


def knows_the_writer(cluster: KafkaCluster, prefix: str) -> bool:
    """Returns whether the cluster knows the transactional id of a worker."""
    answer = cluster.ask(_header(*_LIST_TRANSACTIONS) + _EMPTY + _EMPTY + _NO_TAGS)
    return application_id(prefix, ["assemble"]).encode() + b"-writer-" in answer


def knows_a_producer(cluster: KafkaCluster, prefix: str) -> bool:
    """Returns whether a partition of the changelog knows a producer."""
    topic = f"{application_id(prefix, ['assemble'])}-state-changelog".encode()
    numbers = bytes([PARTITIONS + 1]) + b"".join(struct.pack(">i", number) for number in range(PARTITIONS))
    named = bytes([2, len(topic) + 1]) + topic + numbers + _NO_TAGS
    answer = cluster.ask(_header(*_DESCRIBE_PRODUCERS) + named + _NO_TAGS)
    no_error, no_message = b"\0\0", b"\0"
    without = [
        struct.pack(">i", number) + no_error + no_message + _EMPTY + _NO_TAGS in answer for number in range(PARTITIONS)
    ]
    return not all(without)


def _header(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, -1) + _NO_TAGS


Case = tuple[KafkaCluster, Callable[[KafkaCluster, str], bool]]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((FORGETS_TRANSACTIONS | FORGETS_PRODUCERS, knows_the_writer), id="transactional ids"),
        pytest.param((FORGETS_PRODUCERS, knows_a_producer), id="producers of partitions"),
    ],
)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    options, knows = request.param
    home = kafka_home() or pytest.skip(NEEDS_NODES)
    with KafkaCluster(home, options=options) as cluster:
        yield cluster, knows


def test_a_worker_whose_producer_kafka_has_forgotten_takes_a_new_one(case: Case, tmp_path: Path) -> None:
    cluster, knows = case
    servers, prefix = cluster.bootstrap_servers, "idle."
    assert create_topics(Settings(kafka_bootstrap_servers=servers, topic_prefix=prefix), ["assemble"]).wrong == ()
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    config = tmp_path / "config.json"
    config.write_text("{}")

    def send(name: str) -> None:
        record = json.dumps(event("session.ended", name, 0))
        producer.produce(f"{prefix}invocations", record, name, partition_of(name.encode(), PARTITIONS))
        producer.flush(30)

    with (
        Fleet(servers, prefix, tmp_path, config) as fleet,
        Committed(servers, prefix, application_id(prefix, ["assemble"])) as committed,
    ):
        worker = fleet.start("worker", stages="assemble")
        worker.until_ready()
        for name in ("before", "after"):
            send(name)
            until_found(committed, worker, name)
            wait_while(lambda: knows(cluster, prefix), worker)
        worker.terminate(DEADLINE_S)
    assert sorted(session["session_id"] for session in committed.sessions()) == ["after", "before"]
    assert "Traceback" not in worker.log.read_text()


def until_found(committed: Committed, worker: Worker, name: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while name not in [session["session_id"] for session in committed.sessions()]:
        assert not worker.ended, worker.log.read_text()
        assert time.monotonic() < deadline, worker.log.read_text()
        committed.read(0.2)


def wait_while(holds: Callable[[], bool], worker: Worker) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while holds():
        assert time.monotonic() < deadline, worker.log.read_text()
        time.sleep(0.1)
