"""Consumers stop completely when their broker is gone."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock, MagicMock

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.fast_close import install_fast_close

pytestmark = pytest.mark.broker

LIMIT_S = 20
"""The limit after which a wait without end fails the test, in seconds; a passing test needs far less."""


async def test_a_consumer_with_a_fetch_in_backoff_stops_and_leaves_no_task(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = asyncio.all_tasks()
    with EmbeddedBroker() as broker:
        consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=60_000)
        install_fast_close(consumer)
        await consumer.start()
        place = TopicPartition("t", 0)
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        await consumer.getmany(timeout_ms=1)
    async with asyncio.timeout(LIMIT_S):
        while "Failed fetch messages" not in caplog.text:
            await consumer.getmany(timeout_ms=10)

    await consumer.stop()  # Without `install_fast_close`, `stop` raises CancelledError.
    others = asyncio.all_tasks() - before
    assert not others or not (await asyncio.wait(others, timeout=LIMIT_S))[1]


async def test_cancelling_the_stop_of_a_consumer_still_closes_its_client() -> None:
    closed = AsyncMock()
    consumer = MagicMock(_fetcher=None, _client=MagicMock(close=closed))
    consumer.stop = AsyncMock(side_effect=asyncio.Event().wait)
    install_fast_close(consumer)
    stopping = asyncio.create_task(consumer.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    closed.assert_awaited()


async def test_a_failed_stop_still_cancels_every_fetch_and_closes_the_client() -> None:
    fetches = [asyncio.create_task(asyncio.Event().wait()) for _ in range(3)]
    closed = AsyncMock()
    fetcher = MagicMock(_pending_tasks={*fetches}, close=AsyncMock())
    consumer = MagicMock(_fetcher=fetcher, _client=MagicMock(close=closed))
    consumer.stop = AsyncMock(side_effect=RuntimeError("no group"))
    install_fast_close(consumer)
    with pytest.raises(RuntimeError, match="no group"):
        await consumer.stop()
    closed.assert_awaited()
    await asyncio.wait(fetches, timeout=LIMIT_S)
    assert all(fetch.cancelled() for fetch in fetches)
