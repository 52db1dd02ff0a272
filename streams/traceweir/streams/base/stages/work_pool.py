"""Limits the concurrent work of a process. All partitions share one first-in, first-out queue."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

TIME_SLICE_S = 0.003
"""How long one task can hold the event loop when its work never waits."""


class WorkCancelledError(RuntimeError):
    """Work was cancelled before its end. The end of an event loop cancels all work too."""


class WorkPool:
    """Runs at most `limit` work items at a time.

    Work that never waits yields to the event loop every few milliseconds. The limit is a number, or a function that
    returns the present limit, which is 1 or more.
    """

    def __init__(
        self, limit: int | Callable[[], int] = 64, failed: Callable[[BaseException], object] | None = None
    ) -> None:
        self._limit = limit if callable(limit) else lambda: limit
        self.failed = failed
        self._queue: deque[tuple[Callable[[Any], Awaitable[None]], Any]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = (
            # Can be less than `len(self._tasks)`: a task that has ended takes no new work, but is removed later.
            0
        )

    def add(self, work: Callable[[T], Awaitable[None]], item: T) -> None:
        """Queues `work(item)`."""
        self._queue.append((work, item))
        self._start_task()

    @property
    def running(self) -> int:
        """Number of tasks that run work, or are about to take it from the queue."""
        return self._running

    async def idle(self) -> None:
        """Waits until all queued work has ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _start_task(self) -> None:
        if self._running < self._limit():
            self._running += 1
            task = asyncio.get_running_loop().create_task(self._run())
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    async def _run(self) -> None:
        deadline = time.monotonic() + TIME_SLICE_S
        try:
            while self._queue and self._running <= self._limit():
                work, item = self._queue.popleft()
                if self._queue:
                    # The limit can have grown.
                    self._start_task()
                await work(item)
                # While this task lets others run, it must not keep the stage alive whose work is done.
                del work, item
                if time.monotonic() > deadline:
                    await asyncio.sleep(0)
                    deadline = time.monotonic() + TIME_SLICE_S
        finally:
            self._running -= 1

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error: BaseException | None
        if task.cancelled():
            # Somebody cancelled the task, or a client cancelled a future that the work awaited. The work is not done,
            # and nobody does it again: without a report, its session would never be finished. A worker that fails with
            # a CancelledError would end with a traceback, so the pool reports another error.
            error = WorkCancelledError(
                "work was cancelled" + ("" if task.cancelling() else " because an awaited future was cancelled")
            )
        else:
            error = task.exception()
        if error is not None and self.failed is not None:
            self.failed(error)
