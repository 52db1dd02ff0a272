"""Runs a request to the brokers in a thread that nobody has to wait for.

A request that no broker answers blocks its thread for up to its time limit. asyncio and the interpreter wait at their end
for the threads of `asyncio.to_thread`, so that a process without a broker would end as late.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Answer = TypeVar("Answer")


async def in_request_thread(request: Callable[..., Answer], *arguments: object) -> Answer:
    """Calls a function that asks brokers, and returns what it returns; a caller that is cancelled does not wait for the thread.

    Args:
        request: The function. It must change nothing that is closed or read after a cancellation.
        arguments: Its arguments.

    Raises:
        BaseException: what the function raises.
    """
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Answer] = loop.create_future()

    def settle(answer: Answer | None, error: BaseException | None) -> None:
        if answered.cancelled():
            return
        if error is not None:
            answered.set_exception(error)
        else:
            answered.set_result(answer)  # type: ignore[arg-type]  # None only if the function returns it

    def run() -> None:
        answer = None
        error = None
        try:
            answer = request(*arguments)
        except BaseException as raised:  # noqa: BLE001  # whatever it is, the caller gets it
            error = raised
        # The loop is closed: nobody waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, answer, error)

    threading.Thread(target=run, name="kafka request", daemon=True).start()
    return await answered
