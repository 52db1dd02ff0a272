"""Tests that no client lets a broker create topics by asking for them."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import UnknownTopicOrPartitionError
from confluent_kafka.admin import AdminClient

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.client_options import aiokafka_options, confluent_options
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_creation import create_no_topics

pytestmark = pytest.mark.broker


@pytest.fixture
def settings(embedded_broker: EmbeddedBroker) -> Settings:
    """Returns the settings of a broker that creates a topic for everybody who asks for it, except for who forbids it."""
    return Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers)


def topics(settings: Settings) -> set[str]:
    """Returns the names of all topics of the broker."""
    return set(AdminClient(confluent_options(settings)).list_topics(timeout=60).topics)


async def test_a_producer_of_aiokafka_that_asks_for_a_topic_does_not_create_it(settings: Settings) -> None:
    producer = AIOKafkaProducer(**aiokafka_options(settings), request_timeout_ms=500)
    create_no_topics(producer)
    await producer.start()
    with pytest.raises(UnknownTopicOrPartitionError):
        await producer.partitions_for("asked-by-aiokafka")
    await producer.stop()
    assert "asked-by-aiokafka" not in topics(settings)


def test_a_client_of_confluent_kafka_that_asks_for_a_topic_does_not_create_it(settings: Settings) -> None:
    AdminClient(confluent_options(settings)).list_topics("asked-by-librdkafka", timeout=60)
    assert "asked-by-librdkafka" not in topics(settings)
