"""A worker that can follow the references and configs no more ends, and does not score by former ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from traceweir.schemas.reference import Reference
from traceweir.streams.kafka.followed_topics import FollowedTopics


class NoReferences:
    """Takes no reference."""

    def put(self, reference_id: str, reference: Reference | None) -> None:
        raise AssertionError(reference_id)


class WaitingConsumer:
    """Waits for a record that does not come."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def getmany(self, *, timeout_ms: int) -> Mapping[Any, Any]:
        self.asked.set()
        await asyncio.Event().wait()
        return {}

    async def stop(self) -> None:
        """Does nothing."""


class Following(FollowedTopics):
    """Follows topics that have been read to their ends."""

    def __init__(self) -> None:
        super().__init__(NoReferences(), None, ("references", "configs"), 1, {})
        self.failures: list[BaseException] = []
        self.failed = self.failures.append
        self.consumer = WaitingConsumer()

    async def on_start(self) -> None:
        self._consumer = self.consumer


@pytest.fixture
async def following() -> AsyncIterator[Following]:
    found = Following()
    await found.start()
    await found.consumer.asked.wait()
    yield found
    await found.stop()


async def test_a_worker_fails_whose_task_is_cancelled(following: Following) -> None:
    (task,) = [task for task in asyncio.all_tasks() if "_execute_task" in repr(task.get_coro())]
    task.cancel()
    await asyncio.wait([task])
    (failure,) = following.failures
    assert "start the worker again" in str(failure)


async def test_a_worker_that_stops_does_not_fail(following: Following) -> None:
    await following.stop()
    assert following.failures == []
