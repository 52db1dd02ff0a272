"""The committed offsets of a group can be asked while a transaction that moves them is open."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.consumer_group import GroupOffsets

pytestmark = [pytest.mark.kafka]


def test_an_open_transaction_does_not_hide_the_offsets_before_it(settings: Settings) -> None:
    topic, group = settings.topics.sessions, f"{settings.topic_prefix}group"
    servers = {"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0}
    consumer = Consumer(servers | {"group.id": group})
    producer = Producer(servers | {"transactional.id": f"{group}-0"})
    awaiting = GroupOffsets(settings, group, topic)
    offsets = GroupOffsets(settings, group, topic, awaits_transactions=False)
    try:
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.send_offsets_to_transaction([TopicPartition(topic, 1, 5)], consumer.consumer_group_metadata(), 30)
        assert offsets.committed() == {}
        producer.commit_transaction(30)
        assert awaiting.committed() == {1: 5}  # waits until the commit is visible

        producer.begin_transaction()
        producer.send_offsets_to_transaction([TopicPartition(topic, 1, 9)], consumer.consumer_group_metadata(), 30)
        assert offsets.committed() == {1: 5}
        producer.abort_transaction(30)
    finally:
        awaiting.close()
        offsets.close()
        consumer.close()
