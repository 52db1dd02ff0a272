"""Nobody waits for a model that is down: neither who comes while it is, nor who waited before."""

from __future__ import annotations

import asyncio

import pytest

from traceweir.streams.judges.circuit_breaker import CircuitBreaker
from traceweir.streams.judges.errors import Refused

LIMIT_S = 20
"""What would wait for ever fails a test after so long; no test takes it."""


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def in_line(breaker: CircuitBreaker, turn: asyncio.Event) -> None:
    async with breaker.waiting():
        await turn.wait()


async def told(waiting: asyncio.Task[None]) -> str:
    async with asyncio.timeout(LIMIT_S):
        with pytest.raises(Refused) as caught:
            await waiting
    return str(caught.value)


async def test_who_waits_for_a_turn_is_refused_when_it_opens() -> None:
    breaker, turn = CircuitBreaker(2, 30, Hand()), asyncio.Event()
    waiting = [asyncio.create_task(in_line(breaker, turn)) for _ in range(3)]
    await asyncio.sleep(0)
    breaker.failed("once")
    await asyncio.sleep(0)
    assert not any(each.done() for each in waiting)
    breaker.failed("twice")
    breaker.failed("by one that was still being asked")
    whys = [await told(each) for each in waiting]
    assert all("not asked" in why and "by one that was still being asked" in why for why in whys)


async def test_who_comes_while_it_is_open_is_refused_before_waiting() -> None:
    clock = Hand()
    breaker, turn = CircuitBreaker(1, 30, clock), asyncio.Event()
    breaker.failed("down")
    assert "again in 30 s" in await told(asyncio.create_task(in_line(breaker, turn)))
    clock.now = 31
    turn.set()
    await in_line(breaker, turn)
    breaker.enter()  # waiting is no attempt: the one that tries is still to come
    assert "another question tries" in await told(asyncio.create_task(in_line(breaker, turn)))


async def test_who_waits_for_the_one_that_tries_fares_like_it() -> None:
    clock = Hand()
    breaker, turn = CircuitBreaker(1, 30, clock), asyncio.Event()
    breaker.failed("down")
    clock.now = 31
    waiting = asyncio.create_task(in_line(breaker, turn))
    await asyncio.sleep(0)
    breaker.enter()
    breaker.failed("still down")
    assert "still down" in await told(waiting)


async def test_a_turn_that_came_is_kept() -> None:
    breaker, turn = CircuitBreaker(1, 30, Hand()), asyncio.Event()
    turn.set()
    await in_line(breaker, turn)
    breaker.failed("down")
    await asyncio.sleep(0)  # who is no longer in line is not disturbed


async def test_who_goes_from_the_line_goes() -> None:
    breaker = CircuitBreaker(1, 30, Hand())
    waiting = asyncio.create_task(in_line(breaker, asyncio.Event()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    breaker.failed("down")
