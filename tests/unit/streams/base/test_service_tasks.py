"""A service whose task is cancelled does not go on without it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from mode import Service

from traceweir.streams.base.service_tasks import TaskCancelledError, intervals, service_task


class Following(Service):  # type: ignore[misc]  # mode's services are untyped
    """Has a task that ends when it is told to, and the parent that stands for the worker."""

    def __init__(self) -> None:
        self.worker = Service()
        super().__init__(beacon=self.worker.beacon)
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    @service_task("follows a topic")
    async def _follow(self) -> None:
        self.task = asyncio.current_task()
        self.begun.set()
        await self.may_end.wait()


@pytest.fixture
async def following() -> AsyncIterator[Following]:
    found = Following()
    await found.start()
    await found.begun.wait()
    yield found
    await found.stop()


async def ended(following: Following) -> None:
    assert following.task is not None
    await asyncio.wait([following.task])


async def test_a_cancelled_task_ends_its_worker(following: Following) -> None:
    assert following.task is not None
    following.task.cancel()
    await ended(following)
    error = following.worker.crash_reason
    assert isinstance(error, TaskCancelledError)
    assert "the task that follows a topic was cancelled" in str(error)
    assert "start the worker again" in str(error)


async def test_a_service_that_stops_ends_its_task_in_order(following: Following) -> None:
    await following.stop()
    await ended(following)
    assert following.worker.crash_reason is None


async def test_a_task_can_end_by_itself(following: Following) -> None:
    following.may_end.set()
    await ended(following)
    assert not following.crashed
    assert following.worker.crash_reason is None


class Looking(Service):  # type: ignore[misc]  # mode's services are untyped
    """Looks at something in intervals, and counts its looks."""

    def __init__(self, every_s: float) -> None:
        super().__init__()
        self._every_s, self.looks, self.looked = every_s, 0, asyncio.Event()

    @service_task("looks")
    async def _look(self) -> None:
        async for _ in intervals(self, self._every_s):
            self.looks += 1
            self.looked.set()


async def test_a_task_works_in_intervals() -> None:
    async with Looking(0.001) as looking:
        await looking.looked.wait()


async def test_a_task_in_intervals_does_not_work_once_more_when_its_service_stops() -> None:
    async with Looking(1000) as looking:
        await asyncio.sleep(0)
    assert looking.looks == 0
