"""On a cluster that takes fewer bytes a second than it gives, a backlog is committed in transactions of a bounded size."""

from __future__ import annotations

import base64
import json
import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.kafka import NEEDS_NODES, kafka_home
from tests.support.kafka_cluster import KafkaCluster
from tests.support.ledger import PARTITIONS
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import application_id
from traceweir.streams.testing import event
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = pytest.mark.kafka

SESSIONS, EVENTS, EVENT_BYTES = 60, 50, 10_000
"""30 MB: the worker writes them twice, as rows and as sessions."""
BYTES_PER_S = 2_000_000
TIMEOUT_S = 10
WITHIN_S = 180.0
"""Time limit for the sessions, in seconds."""
DEADLINE_S = 90
_ALTER_CLIENT_QUOTAS = (49, 0)
"""Key and version of the request."""
SOON = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000, "quota.window.num": 3}
"""Lets a node soon notice a transaction that is overdue, and a client that is above its quota.

Kafka's defaults are ten seconds for both.
"""


def limit_producers(cluster: KafkaCluster, bytes_per_s: int) -> None:
    """Gives each client a quota for the bytes that it produces.

    The request is written out, because confluent-kafka has none for quotas, and not every distribution has the tool.
    """
    entity = _array(_text("client-id") + struct.pack(">h", -1))
    operation = _array(_text("producer_byte_rate") + struct.pack(">d?", bytes_per_s, False))
    header = struct.pack(">hhi", *_ALTER_CLIENT_QUOTAS, 1) + _text("test")
    answer = cluster.ask(header + _array(entity + operation) + b"\0")
    _, _, entries, error = struct.unpack_from(">iiih", answer)
    assert (entries, error) == (1, 0), answer


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _array(item: bytes) -> bytes:
    return struct.pack(">i", 1) + item


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    home = kafka_home() or pytest.skip(NEEDS_NODES)
    with KafkaCluster(home, options=SOON) as cluster:
        yield cluster


def test_a_backlog_of_large_records_is_committed_on_a_cluster_that_takes_few_bytes_a_second(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    servers, prefix = cluster.bootstrap_servers, "slow."
    assert create_topics(Settings(kafka_bootstrap_servers=servers, topic_prefix=prefix), ["assemble"]).wrong == ()
    rnd = random.Random(1)
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for at in range(EVENTS):
        for number in range(SESSIONS):
            name, kind = f"session {number}", "session.ended" if at == EVENTS - 1 else "model.called"
            note = base64.b64encode(rnd.randbytes(EVENT_BYTES * 3 // 4)).decode()
            record = json.dumps(event(kind, name, at, note=note))
            producer.produce(f"{prefix}invocations", record, name, partition_of(name.encode(), PARTITIONS))
        producer.flush(30)
    limit_producers(cluster, BYTES_PER_S)
    config = tmp_path / "config.json"
    config.write_text("{}")

    with (
        Fleet(servers, prefix, tmp_path, config) as fleet,
        Committed(servers, prefix, application_id(prefix, ["assemble"])) as committed,
    ):
        variables = {"TRACEWEIR_TRANSACTION_TIMEOUT_S": f"{TIMEOUT_S}"}
        worker = fleet.start("worker", stages="assemble", variables=variables)
        worker.until_ready()
        deadline = time.monotonic() + WITHIN_S
        while len(committed.rows["sessions"]) < SESSIONS:
            assert not worker.ended, worker.log.read_text()
            assert time.monotonic() < deadline, worker.log.read_text()
            committed.read(0.5)
        worker.terminate(DEADLINE_S)
    found = sorted((session["session_id"], len(session["events"])) for session in committed.sessions())
    assert found == sorted((f"session {number}", EVENTS) for number in range(SESSIONS))
