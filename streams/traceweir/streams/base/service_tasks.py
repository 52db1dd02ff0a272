"""Makes the tasks of services, of which none ends unnoticed: mode ends a cancelled task in silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

from mode import Service

from traceweir.streams.base.errors import WorkerError

S = TypeVar("S", bound=Service)


class TaskCancelledError(WorkerError):
    """A task was cancelled although its service was running.

    Args:
        what: What the task does, as the end of a sentence that begins with "the task that".
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the task that {what} was cancelled, so the worker would go on without it. No data is lost: start the worker "
            "again"
        )


def service_task(what: str) -> Callable[[Callable[[S], Awaitable[None]]], Any]:
    """Returns a decorator that makes a method a task of its service, which begins when the service has started.

    A task that raises ends the worker, as with mode's own decorator; one that is cancelled while its service runs does
    too. Nobody cancels such a task but a fault of a library, and the worker would go on without what the task does.

    Args:
        what: What the task does, as the end of a sentence that begins with "the task that".
    """

    def decorated(work: Callable[[S], Awaitable[None]]) -> Any:
        @Service.task  # type: ignore[untyped-decorator]
        @wraps(work)
        async def run(self: S) -> None:
            try:
                await work(self)
            except asyncio.CancelledError:
                if self.should_stop:
                    raise
                raise TaskCancelledError(what) from None

        return run

    return decorated


async def intervals(service: Service, every_s: float) -> AsyncIterator[None]:
    """Yields after each interval, until the service stops.

    `sleep` of a service returns when the service stops, and takes the cancellation of the task with it. A task that then
    did its work once more could make the stop wait for a broker that is away.

    Args:
        service: The service whose task this is.
        every_s: The interval, in seconds.
    """
    while True:
        await service.sleep(every_s)
        if service.should_stop:
            return
        yield
