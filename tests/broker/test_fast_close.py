"""Consumers stop whole when their broker has gone."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock, MagicMock

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from traceweir.streams.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.kafka.fast_close import install_fast_close

pytestmark = pytest.mark.broker

LIMIT_S = 20
"""What would go on for ever fails the test after so long; it never takes it."""


async def test_a_consumer_whose_fetch_waits_to_be_tried_again_stops_and_leaves_nothing(
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

    await consumer.stop()  # aiokafka's own raises CancelledError
    others = asyncio.all_tasks() - before
    assert not others or not (await asyncio.wait(others, timeout=LIMIT_S))[1]


async def test_who_is_told_to_end_while_a_consumer_stops_ends_and_its_client_is_closed() -> None:
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


async def test_every_fetch_that_waits_ends_and_the_client_is_closed_whatever_the_stop_says() -> None:
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
