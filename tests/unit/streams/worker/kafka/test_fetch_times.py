"""The end of an input carries a time before which no record was appended that the fetch has not read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.structs import TopicPartition

from traceweir.streams.worker.kafka.fetch_times import FetchTimes

MAX_WAIT_S = 0.1


class Client:
    """A client whose node takes some time for each answer."""

    def __init__(self, takes_s: float, **batches: bytes | None) -> None:
        """Takes the time of an answer, and the batches that it has in the partitions of a topic."""
        self.now = 1_000.0
        self.is_down = False
        self.error_code = 0
        self.takes_s, self.batches = takes_s, batches

    async def send(self, node_id: int, request: Any, **options: Any) -> Any:
        self.now += self.takes_s
        if self.is_down:
            raise KafkaConnectionError
        asked = getattr(request, "topics", None) or []
        topics = [
            (topic, [(each[0], self.error_code, 7, 7, self.batches.get(topic)) for each in parts])
            for topic, parts in asked
        ]
        return SimpleNamespace(node=node_id, topics=topics)


def fetch(**partitions: list[int]) -> FetchRequest:
    """Returns a request for partitions, by topic."""
    topics = [(topic, [(number, 7, 1_000) for number in numbers]) for topic, numbers in partitions.items()]
    return FetchRequest(max_wait_time=20, min_bytes=1, max_bytes=1_000, isolation_level=1, topics=topics)


def batch(*timestamps: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for offset, timestamp in enumerate(timestamps):
        builder.append(offset, timestamp, b"key", b"value", [])
    return bytes(builder.build())


async def read_at(client: Client, *topics: str) -> list[float]:
    """Fetches a partition of each topic in one request, and returns up to which time each is read."""
    times = FetchTimes(client, lambda: client.now, MAX_WAIT_S)
    await client.send(3, fetch(**{topic: [0] for topic in topics}))
    return [times.read_at(TopicPartition(topic, 0)) for topic in topics]


async def test_a_slow_answer_has_the_time_of_its_request() -> None:
    client = Client(45.0)
    times = FetchTimes(client, lambda: client.now, MAX_WAIT_S)
    assert (await client.send(3, fetch(t=[0, 2]))).node == 3
    assert [times.read_at(TopicPartition("t", number)) for number in range(3)] == [1_000.0, 0.0, 1_000.0]
    await client.send(3, fetch(t=[2]))
    assert [times.read_at(TopicPartition("t", number)) for number in range(3)] == [1_000.0, 0.0, 1_045.0]


async def test_an_answer_was_given_after_its_newest_record_in_any_partition() -> None:
    batches = batch(1_000_010, 1_000_030) + batch(1_000_020)
    assert await read_at(Client(0.05, t=batches, u=batch(999_000)), "t", "u", "v") == [1_000.031] * 3


@pytest.mark.parametrize(
    ("timestamp", "takes_s", "at"),
    [
        pytest.param(999_000, 0.05, 1_000.0, id="an old record says nothing"),
        pytest.param(1_000_090, 0.05, 1_000.05, id="not after the answer"),
        pytest.param(1_009_000, 45.0, 1_000.1, id="not after the longest wait of the broker"),
        pytest.param(-1, 0.05, 1_000.0, id="a record without a timestamp"),
    ],
)
async def test_a_record_of_another_clock_has_a_bounded_effect(timestamp: int, takes_s: float, at: float) -> None:
    assert await read_at(Client(takes_s, t=batch(timestamp)), "t") == [at]


@pytest.mark.parametrize("kept", [0, 1, 40, 60])
async def test_a_batch_that_is_cut_off_harms_nothing(kept: int) -> None:
    whole = batch(1_000_010)
    assert await read_at(Client(0.05, t=whole + batch(1_000_005)[:kept]), "t") == [1_000.011]


@pytest.mark.parametrize("length", [-12, -5, 2**31 - 1])
async def test_a_batch_with_a_wrong_length_is_passed(length: int) -> None:
    wrong = bytearray(batch(1_000_010))
    wrong[8:12] = length.to_bytes(4, signed=True)
    assert await read_at(Client(0.05, t=bytes(wrong)), "t") == [1_000.011]


async def test_a_batch_of_an_old_format_says_nothing() -> None:
    old = bytearray(batch(1_000_010))
    old[16] = 1
    assert await read_at(Client(0.05, t=bytes(old)), "t") == [1_000.0]


async def test_only_answered_fetches_count() -> None:
    client = Client(45.0)
    times = FetchTimes(client, lambda: client.now, MAX_WAIT_S)
    await client.send(3, MetadataRequest([]))
    client.error_code = 6  # NOT_LEADER_FOR_PARTITION
    await client.send(3, fetch(t=[0]))
    client.is_down = True
    with pytest.raises(KafkaConnectionError):
        await client.send(3, fetch(t=[0]))
    assert times.read_at(TopicPartition("t", 0)) == 0.0
