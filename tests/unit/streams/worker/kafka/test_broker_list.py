"""Tests that a client starts only with a list of brokers, on connections that answer without a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import aiokafka.client
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError

from traceweir.streams.worker.kafka import broker_list
from traceweir.streams.worker.kafka.broker_list import require_broker_list

BROKER = (1, "kafka", 9092, None)


class Connection:
    """A connection to a node that answers every request with the same list of brokers."""

    def __init__(self, brokers: Sequence[object]) -> None:
        self._brokers, self.closed = brokers, False

    async def send(self, request: object) -> object:
        return SimpleNamespace(API_VERSION=1, brokers=self._brokers, topics=[], controller_id=1)

    def close(self, **reason: object) -> asyncio.Future[None]:
        self.closed = True
        closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        closed.set_result(None)
        return closed


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """Returns the connections that clients open, in order; the first two nodes name no broker."""
    opened: list[Connection] = []

    async def create_conn(*address: Any, **options: Any) -> Connection:
        opened.append(Connection([] if len(opened) < 2 else [BROKER]))
        return opened[-1]

    monkeypatch.setattr(aiokafka.client, "create_conn", create_conn)
    monkeypatch.setattr(broker_list, "ASK_AGAIN_AFTER_S", 0.0)
    return opened


async def test_a_client_asks_again_until_a_node_names_a_broker(opened: list[Connection]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers="kafka:9092")
    require_broker_list(producer)

    await producer.client.bootstrap()

    assert [broker.nodeId for broker in producer.client.cluster.brokers()] == [1]
    assert [connection.closed for connection in opened] == [True, True, True]
    await producer.stop()


async def test_a_client_that_gets_no_list_in_time_raises(
    opened: list[Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_list, "LISTED_WITHIN_S", 0.0)
    producer = AIOKafkaProducer(bootstrap_servers="kafka:9092")
    require_broker_list(producer)
    with pytest.raises(KafkaConnectionError, match="the nodes have named no broker for 0 s"):
        await producer.client.bootstrap()
    await producer.stop()
