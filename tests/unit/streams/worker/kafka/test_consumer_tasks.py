"""Tests that the end of a consumer's background task is reported, whatever the task raised."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka.errors import KafkaError

from traceweir.streams.worker.kafka.consumer_tasks import ConsumerTaskEndedError, failing_with_tasks, watch_tasks

SENTENCES = {
    "coordination": "the task of Kafka's client that coordinates the consumer group has ended",
    "fetch": "the task of Kafka's client that fetches records has ended",
    "brokers": "the task of Kafka's client that follows the list of brokers has ended",
}


class Consumer:
    """Has the parts of aiokafka's consumer that the product watches; `fates` end its tasks."""

    def __init__(self, *, group: bool = True) -> None:
        loop = asyncio.get_running_loop()
        self.fates: dict[str, asyncio.Future[None]] = {name: loop.create_future() for name in SENTENCES}
        tasks = {name: loop.create_task(self._run(name)) for name in SENTENCES}
        self.tasks = tasks
        self._closed = False
        self._coordinator = SimpleNamespace(**{"_coordination_task": tasks["coordination"]} if group else {})
        self._fetcher = SimpleNamespace(_fetch_task=tasks["fetch"])
        self._client = SimpleNamespace(_sync_task=tasks["brokers"])

    async def _run(self, name: str) -> None:
        await self.fates[name]

    async def stop(self) -> None:
        """Ends the tasks as aiokafka does: one by a return, the others by a cancellation."""
        self._closed = True
        if not self.fates["coordination"].done():
            self.fates["coordination"].set_result(None)
        for task in self.tasks.values():
            task.cancel()
        await asyncio.wait(self.tasks.values())


@pytest.mark.parametrize("name", SENTENCES)
@pytest.mark.parametrize("raised", [AssertionError("Did we not perform bootstrap?"), KeyError("x"), None])
async def test_a_task_that_ends_is_reported_with_what_it_raised(name: str, raised: Exception | None) -> None:
    consumer, reported = Consumer(), asyncio.get_running_loop().create_future()
    watch_tasks(consumer, reported.set_result)
    if raised is None:
        consumer.fates[name].set_result(None)
    else:
        consumer.fates[name].set_exception(raised)
    error = str(await reported)
    how = f"{type(raised).__name__}: {raised}" if raised else "without an error"
    assert error.startswith(f"{SENTENCES[name]} ({how}), so the worker would stand still.")
    await consumer.stop()


@pytest.mark.parametrize("name", SENTENCES)
async def test_a_task_that_is_cancelled_by_itself_is_reported(name: str) -> None:
    consumer, reported = Consumer(), asyncio.get_running_loop().create_future()
    watch_tasks(consumer, reported.set_result)
    consumer.tasks[name].cancel()
    assert str(await reported).startswith(f"{SENTENCES[name]} (cancelled), so the worker would stand still.")
    await consumer.stop()


async def test_the_cause_is_named_where_aiokafka_wraps_it() -> None:
    consumer, reported = Consumer(group=False), asyncio.get_running_loop().create_future()
    watch_tasks(consumer, reported.set_result)
    wrapped = KafkaError("Unexpected error during data retrieval")
    wrapped.__cause__ = AssertionError("no\x1b[31m node")
    consumer.fates["fetch"].set_exception(wrapped)
    assert "(AssertionError: no\\x1b[31m node)" in str(await reported)
    await consumer.stop()


async def test_the_tasks_of_a_consumer_that_stops_are_not_reported() -> None:
    consumer, reported = Consumer(), list[ConsumerTaskEndedError]()
    watch_tasks(consumer, reported.append)
    await consumer.stop()
    await asyncio.sleep(0)
    assert reported == []


async def test_a_block_that_waits_for_a_consumer_ends_with_its_task() -> None:
    consumer = Consumer()
    asyncio.get_running_loop().call_soon(consumer.fates["fetch"].set_exception, AssertionError("gone"))
    with pytest.raises(ConsumerTaskEndedError, match="AssertionError: gone"):
        async with failing_with_tasks(consumer):
            await asyncio.Event().wait()
    await asyncio.sleep(0)  # the task of this test is not cancelled any more
    await consumer.stop()


async def test_a_block_that_is_cancelled_from_outside_stays_cancelled() -> None:
    consumer, begun = Consumer(), asyncio.Event()

    async def block() -> None:
        async with failing_with_tasks(consumer):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(block())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await consumer.stop()
