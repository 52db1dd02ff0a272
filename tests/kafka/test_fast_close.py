"""A TLS consumer stops at once in the middle of a large fetch."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import uvloop
from aiokafka import AIOKafkaConsumer
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_security import Certificates

from traceweir.streams.worker.kafka.fast_close import install_fast_close

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

STOPS_WITHIN_S = 15
"""Limit of one stop in seconds; asyncio waits 30 s for the peer's TLS shutdown."""
TIMES = 12
"""Number of stops; without `install_fast_close` about one stop in three waits."""


def test_a_tls_consumer_stops_without_waiting_for_the_close_of_the_broker(
    secured_kafka: KafkaCluster, certificates: Certificates
) -> None:
    topic = "hanging-up"
    admin = AdminClient({"bootstrap.servers": secured_kafka.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(topic, 4, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": secured_kafka.bootstrap_servers, "log_level": 0})
    for _ in range(20_000):
        producer.produce(topic, os.urandom(1_000))
        producer.poll(0)
    assert producer.flush(60) == 0

    async def read_and_stop() -> None:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=secured_kafka.tls_servers,
            security_protocol="SSL",
            ssl_context=_context(certificates.authority, certificates.client, certificates.client_key),
            auto_offset_reset="earliest",
        )
        install_fast_close(consumer)
        await consumer.start()
        await consumer.getmany(timeout_ms=1_000)
        await consumer.stop()

    for _ in range(TIMES):
        thread = threading.Thread(target=lambda: uvloop.run(read_and_stop()), daemon=True)
        thread.start()
        thread.join(STOPS_WITHIN_S)
        assert not thread.is_alive()


def _context(authority: Path, client: Path, key: Path) -> object:
    context = create_ssl_context(cafile=str(authority))
    context.load_cert_chain(str(client), str(key))
    return context
