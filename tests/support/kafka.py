"""Defines fixtures that provide a broker: Apache Kafka or the embedded broker."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.consumer import fetcher
from aiokafka.record import default_records
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_security import Certificates

from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.fetch import read_as_parsed

SERVERS, HOME = "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", "KAFKA_HOME"
NEEDS_NODES = f"needs nodes of an Apache Kafka: set {HOME} to an unpacked download (kafka.apache.org, needs Java 17)"
NEEDS_KAFKA = f"{NEEDS_NODES}, or {SERVERS} to a running cluster, for example after `docker compose up`"
EACH_BROKER = pytest.mark.parametrize(
    "servers",
    [pytest.param("embedded_broker", marks=pytest.mark.broker), pytest.param("kafka", marks=pytest.mark.kafka)],
    indirect=True,
)
"""Plays a test of tests/kafka on the embedded broker too: one test of a command, because each starts processes."""


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """Yields the bootstrap servers of an Apache Kafka that all tests share; a test needs its own topic prefix."""
    if servers := os.environ.get(SERVERS):
        yield servers
    elif home := kafka_home():
        with KafkaCluster(home) as cluster:
            yield cluster.bootstrap_servers
    else:
        pytest.skip(NEEDS_KAFKA)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Returns the certificates of `secured_kafka`."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def secured_kafka(certificates: Certificates) -> Iterator[KafkaCluster]:
    """Yields a node that also listens for TLS with a client certificate, and for TLS with a password."""
    home = kafka_home() or pytest.skip(NEEDS_NODES)
    with KafkaCluster(home, certificates=certificates) as cluster:
        yield cluster


def kafka_home() -> Path | None:
    """Returns the folder of an unpacked Apache Kafka if the environment names one, otherwise None."""
    home = os.environ.get(HOME)
    return Path(home).absolute() if home else None


@pytest.fixture
def embedded_broker() -> Iterator[EmbeddedBroker]:
    """Yields an embedded broker that only this test uses."""
    with EmbeddedBroker() as broker:
        yield broker


_FETCHER = {name: getattr(fetcher, name) for name in ("MemoryRecords", "PartitionRecords")}


@pytest.fixture
def restored_fetcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begins and ends with aiokafka's own classes of its fetcher, because readers of the product replace them.

    An earlier test of the process can have left them replaced.
    """
    for name, original in _FETCHER.items():
        monkeypatch.setattr(fetcher, name, original)


@pytest.fixture
def limited_decompression(restored_fetcher: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits what a batch becomes when it is decompressed, as every reader of the product does, for this test."""
    for module in (default_records, sys.modules[default_records.DefaultRecordBatch.__module__]):
        for codec in ("gzip", "snappy", "lz4", "zstd"):
            monkeypatch.setattr(module, f"{codec}_decode", getattr(module, f"{codec}_decode"))
    read_as_parsed(())
