"""The end of an input carries a time at which no later record had been appended yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.structs import TopicPartition

from traceweir.streams.kafka.fetch_times import FetchTimes


class SlowClient:
    """A client whose node takes 45 s for each answer."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.is_down = False
        self.error_code = 0

    async def send(self, node_id: int, request: Any, **options: Any) -> Any:
        self.now += 45.0
        if self.is_down:
            raise KafkaConnectionError
        asked = getattr(request, "topics", None) or []
        topics = [(topic, [(each[0], self.error_code, 7, 7) for each in parts]) for topic, parts in asked]
        return SimpleNamespace(node=node_id, topics=topics)


def fetch(topic: str, *partitions: int) -> FetchRequest:
    return FetchRequest(
        max_wait_time=20,
        min_bytes=1,
        max_bytes=1_000,
        isolation_level=1,
        topics=[(topic, [(partition, 7, 1_000) for partition in partitions])],
    )


async def test_a_slow_answer_has_the_time_of_its_request() -> None:
    client = SlowClient()
    times = FetchTimes(client, lambda: client.now)
    assert (await client.send(3, fetch("t", 0, 2))).node == 3
    assert [times.sent_at(TopicPartition("t", number)) for number in range(3)] == [1_000.0, 0.0, 1_000.0]
    await client.send(3, fetch("t", 2))
    assert [times.sent_at(TopicPartition("t", number)) for number in range(3)] == [1_000.0, 0.0, 1_045.0]


async def test_only_answered_fetches_count() -> None:
    client = SlowClient()
    times = FetchTimes(client, lambda: client.now)
    await client.send(3, MetadataRequest([]))
    client.error_code = 6  # NOT_LEADER_FOR_PARTITION
    await client.send(3, fetch("t", 0))
    client.is_down = True
    with pytest.raises(KafkaConnectionError):
        await client.send(3, fetch("t", 0))
    assert times.sent_at(TopicPartition("t", 0)) == 0.0
