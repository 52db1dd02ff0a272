"""Deletes a topic and creates it again, or removes all of its records, as administrators do."""

from __future__ import annotations

import time

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.topic_admin import create_topics

WITHIN_S = 90.0


def make_again(settings: Settings, topic: str) -> None:
    """Deletes a topic of Traceweir, and creates it again."""
    admin = AdminClient({"bootstrap.servers": settings.kafka_bootstrap_servers})
    admin.delete_topics([topic])[topic].result()
    deadline = time.monotonic() + WITHIN_S
    while topic in admin.list_topics(timeout=60).topics:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert create_topics(settings).wrong == ()


def trim(settings: Settings, topic: str) -> None:
    """Removes all records of a topic, as retention does."""
    admin = AdminClient({"bootstrap.servers": settings.kafka_bootstrap_servers})
    ends = [TopicPartition(topic, number, -1) for number in range(settings.partitions)]
    for trimmed in admin.delete_records(ends).values():
        trimmed.result()
