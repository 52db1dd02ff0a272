"""Fetches of a light load are spaced, and the wait comes before the request, not after the answer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.structs import TopicPartition

from traceweir.streams.worker.kafka import fetch_pace
from traceweir.streams.worker.kafka.fetch_pace import FEW_BYTES, PAUSE_S, space_fetches
from traceweir.streams.worker.kafka.fetch_times import FetchTimes

FETCH = FetchRequest(max_wait_time=20, min_bytes=1, max_bytes=1_000, isolation_level=1, topics=[])


class Client:
    """A client that answers at once, with batches of a size in two of three partitions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
        self.now, self.size, self.is_down = 50.0, size, False
        self.asked: list[tuple[int, float]] = []
        monkeypatch.setattr(fetch_pace, "monotonic", lambda: self.now)
        monkeypatch.setattr(asyncio, "sleep", self.sleep)
        self.times = FetchTimes(self, lambda: self.now, max_wait_s=1.0)
        space_fetches(self)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def send(self, node_id: int, request: Any, **options: Any) -> Any:
        self.asked.append((node_id, self.now))
        if self.is_down:
            raise KafkaConnectionError
        parts = [
            (0, 0, 7, 7, b"a" * (self.size // 2)),
            (1, 0, 7, 7, b"a" * (self.size - self.size // 2)),
            (2, 0, 7, 7, None),
        ]
        return SimpleNamespace(topics=[("t", parts)])


async def test_a_fetch_waits_after_an_answer_with_few_records(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(monkeypatch, FEW_BYTES - 1)
    await client.send(1, FETCH)
    assert client.now == 50.0  # the records of the answer are processed without a wait
    client.now += PAUSE_S / 4
    await client.send(1, FETCH)
    client.now += PAUSE_S * 2
    await client.send(1, FETCH)
    first, second = 50.0, 50.0 + PAUSE_S
    assert client.asked == [(1, first), (1, pytest.approx(second)), (1, pytest.approx(second + PAUSE_S * 2))]


async def test_a_fetch_does_not_wait_for_another_broker_or_after_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(monkeypatch, FEW_BYTES)
    await client.send(1, FETCH)
    await client.send(1, FETCH)
    client.size = 0
    await client.send(1, FETCH)
    await client.send(2, FETCH)
    await client.send(1, MetadataRequest([]))
    assert client.asked == [(1, 50.0)] * 3 + [(2, 50.0), (1, 50.0)]


async def test_a_fetch_is_sent_after_its_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(monkeypatch, 2)
    await client.send(1, FETCH)
    await client.send(1, FETCH)
    assert client.times.read_at(TopicPartition("t", 0)) == pytest.approx(50.0 + PAUSE_S)


async def test_a_fetch_that_fails_leaves_no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(monkeypatch, 0)
    client.is_down = True
    for _ in range(2):
        with pytest.raises(KafkaConnectionError):
            await client.send(1, FETCH)
    assert client.asked == [(1, 50.0)] * 2
