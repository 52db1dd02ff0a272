"""Reports a background task of an aiokafka consumer that ended, whatever the task raised.

aiokafka raises the error of a coordination task at the next fetch, and the errors of the other tasks nowhere. A worker
without partitions does not fetch, so it would stand still outside its group until its watchdog ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from traceweir.schemas.text import printable
from traceweir.streams.base.errors import WorkerError

_TASKS = (
    ("coordinates the consumer group", "_coordinator", "_coordination_task"),
    ("fetches records", "_fetcher", "_fetch_task"),
    ("follows the list of brokers", "_client", "_sync_task"),
)
"""What each task does, the part of a consumer that runs the task, and the attribute of the task."""


class ConsumerTaskEndedError(WorkerError):
    """A background task of a consumer ended while the consumer was in use."""


def watch_tasks(consumer: Any, ended: Callable[[ConsumerTaskEndedError], object]) -> None:
    """Calls `ended`, in the event loop of the consumer, when a background task of a started consumer ends by itself."""

    def report(name: str, task: asyncio.Task[None]) -> None:
        error = _of_ended(consumer, name, task)
        if error is not None:
            ended(error)

    for name, task in _tasks(consumer):
        task.add_done_callback(partial(report, name))


@asynccontextmanager
async def failing_with_tasks(consumer: Any) -> AsyncIterator[None]:
    """Ends its block when a background task of a started consumer ends by itself: the block could wait without end.

    Raises:
        ConsumerTaskEndedError: a task ended.
    """
    async with ending_early() as end:
        watch_tasks(consumer, end)
        yield


@asynccontextmanager
async def ending_early() -> AsyncIterator[Callable[[Exception], None]]:
    """Yields a function that ends the block with an error, whatever the block waits for; the first call counts."""
    block = asyncio.current_task()
    errors = list[Exception]()
    left = False

    def end(error: Exception) -> None:
        if not left and not errors and block is not None:
            errors.append(error)
            block.cancel()

    try:
        yield end
    except asyncio.CancelledError:
        if not errors or block is None:
            raise
        # Somebody else has cancelled the block, too.
        if block.uncancel() > 0:
            raise
        raise errors[0] from None
    finally:
        left = True


def _tasks(consumer: Any) -> Iterator[tuple[str, asyncio.Task[None]]]:
    for name, part, attribute in _TASKS:
        # A consumer without a group has no coordination task.
        task = getattr(getattr(consumer, part), attribute, None)
        if task is not None:
            yield name, task


def _of_ended(consumer: Any, name: str, task: asyncio.Task[None]) -> ConsumerTaskEndedError | None:
    """Returns the error for a task that has ended; None for a task that ended because the consumer stops."""
    # A stop sets this before it cancels the tasks.
    if consumer._closed:
        return None
    error = None if task.cancelled() else task.exception()
    cause = (error.__cause__ or error) if error is not None else None
    reason = f"{type(cause).__name__}: {printable(str(cause), 200)}" if cause is not None else "without an error"
    if task.cancelled():
        reason = "cancelled"
    return ConsumerTaskEndedError(
        f"the task of Kafka's client that {name} has ended ({reason}), so the worker would stand still. No data is lost: "
        "start the worker again"
    )
