"""Ends the work of an exporter in time: when it stops, and when partitions move to another process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


class BatchInWork:
    """The batch in work; there is one at a time."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def run(self, work: Coroutine[Any, Any, None], stop: asyncio.Event, stop_within_s: float) -> None:
        """Does the work of a batch; after `stop` it has `stop_within_s` seconds to end, and is cancelled then."""
        self._task = task = asyncio.create_task(work)
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                log.info("waiting up to %g s for the scores in work", stop_within_s)
                await self.end(stop_within_s)
        finally:
            stopping.cancel()
        if not task.cancelled():
            await task

    async def end(self, within_s: float) -> None:
        """Waits up to `within_s` seconds for the batch in work, and then cancels it; its scores are sent again."""
        task = self._task
        if task is None or task.done():
            return
        await asyncio.wait({task}, timeout=within_s)
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


async def done_unless(stop: asyncio.Event, work: Coroutine[Any, Any, object]) -> bool:
    """Does work unless `stop` is set before its end; returns whether it was done."""
    working = asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
            return True
        return False
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.wait({working, stopping})
