"""Fixtures that give a test a broker: Apache Kafka, or the embedded one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.kafka_cluster import KafkaCluster

from tracegate.streams.embedded import EmbeddedBroker


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """Bootstrap servers of an Apache Kafka that the whole run shares: choose a topic prefix of your own."""
    if servers := os.environ.get("TRACEGATE_KAFKA_BOOTSTRAP_SERVERS"):
        yield servers
    elif home := os.environ.get("KAFKA_HOME"):
        with KafkaCluster(Path(home).absolute()) as cluster:
            yield cluster.bootstrap_servers
    else:
        pytest.skip(
            "needs an Apache Kafka: set KAFKA_HOME to an unpacked download (kafka.apache.org, needs Java 17), or "
            "TRACEGATE_KAFKA_BOOTSTRAP_SERVERS to a running cluster, for example after `docker compose up`"
        )


@pytest.fixture
def embedded_broker() -> Iterator[EmbeddedBroker]:
    """An embedded broker of the test's own."""
    with EmbeddedBroker() as broker:
        yield broker
