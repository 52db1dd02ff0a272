"""A request to the brokers runs in a thread of its own, and a program that ends does not wait for it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from traceweir.streams.worker.kafka.request_thread import in_request_thread


async def test_the_answer_and_the_arguments_are_passed_on() -> None:
    assert await in_request_thread(divmod, 7, 2) == (3, 1)


async def test_an_error_of_the_request_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_request_thread(divmod, 7, 0)


def test_an_event_loop_ends_while_a_request_has_no_answer() -> None:
    begun, never = threading.Event(), threading.Event()

    def request() -> None:
        begun.set()
        never.wait()

    async def ask() -> None:
        asking = asyncio.create_task(in_request_thread(request))
        await asyncio.to_thread(begun.wait)
        asking.cancel()
        await asyncio.wait({asking})
        assert asking.cancelled()

    asyncio.run(ask())
    never.set()
