"""A bound on the work that a process has in flight, first come first served over all partitions."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

_SLICE_S = 0.003
"""How long one worker may hold the event loop when its work never waits."""


class WorkPool:
    """Runs at most `limit` pieces of work at a time. Work that never waits gives way to others every few milliseconds."""

    def __init__(self, limit: int = 64, failed: Callable[[BaseException], object] | None = None) -> None:
        self._limit, self.failed = limit, failed
        self._queue: deque[tuple[Callable[[Any], Awaitable[None]], Any]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = 0  # less than the tasks for a moment: one that has ended is no longer there for new work

    def add(self, work: Callable[[T], Awaitable[None]], item: T) -> None:
        """Do this piece of work when its turn comes."""
        self._queue.append((work, item))
        if self._running < self._limit:
            self._running += 1
            task = asyncio.get_running_loop().create_task(self._run())
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    async def idle(self) -> None:
        """Wait until nothing is left to do."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self) -> None:
        until = time.monotonic() + _SLICE_S
        try:
            while self._queue:
                work, item = self._queue.popleft()
                await work(item)
                if time.monotonic() > until:
                    await asyncio.sleep(0)
                    until = time.monotonic() + _SLICE_S
        finally:
            self._running -= 1

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error: BaseException | None
        if task.cancelled():
            # Of its own accord: a client cancelled something that the work waited for, and the work is not done. A worker that
            # crashes with a CancelledError would end in a traceback, so it is told in another way.
            error = None if task.cancelling() else RuntimeError("work was cancelled by what it waited for")
        else:
            error = task.exception()
        if error is not None and self.failed is not None:
            self.failed(error)
