"""Tests that neither a new question nor a waiting question waits for a model that is down."""

from __future__ import annotations

import asyncio

import pytest

from traceweir.schemas.judge_config import Breaker
from traceweir.streams.scoring.judges.circuit_breaker import CircuitBreaker
from traceweir.streams.scoring.judges.errors import FinalFailure

LIMIT_S = 20
"""Seconds after which a hanging test fails; no test takes this long."""


class ManualClock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def wait_in_queue(breaker: CircuitBreaker, turn: asyncio.Event) -> None:
    async with breaker.waiting():
        await turn.wait()


async def refusal_of(waiting: asyncio.Task[None]) -> str:
    async with asyncio.timeout(LIMIT_S):
        with pytest.raises(FinalFailure) as caught:
            await waiting
    return str(caught.value)


async def test_waiting_questions_are_refused_when_the_breaker_opens() -> None:
    breaker, turn = CircuitBreaker(Breaker(failures=2), ManualClock()), asyncio.Event()
    waiting = [asyncio.create_task(wait_in_queue(breaker, turn)) for _ in range(3)]
    await asyncio.sleep(0)
    breaker.failed("once")
    await asyncio.sleep(0)
    assert not any(each.done() for each in waiting)
    breaker.failed("twice")
    breaker.failed("by one that was still being asked")
    reasons = [await refusal_of(each) for each in waiting]
    assert all("not asked" in reason and "by one that was still being asked" in reason for reason in reasons)


async def test_a_new_question_is_refused_at_once_while_the_breaker_is_open() -> None:
    clock = ManualClock()
    breaker, turn = CircuitBreaker(Breaker(failures=1), clock), asyncio.Event()
    breaker.failed("down")
    assert "next attempt possible in 30 s" in await refusal_of(asyncio.create_task(wait_in_queue(breaker, turn)))
    clock.now = 31
    turn.set()
    await wait_in_queue(breaker, turn)
    breaker.enter()  # waiting does not count as the attempt of the half-open breaker
    assert "another question tests the model" in await refusal_of(asyncio.create_task(wait_in_queue(breaker, turn)))


async def test_waiting_questions_are_refused_when_the_half_open_attempt_fails() -> None:
    clock = ManualClock()
    breaker, turn = CircuitBreaker(Breaker(failures=1), clock), asyncio.Event()
    breaker.failed("down")
    clock.now = 31
    waiting = asyncio.create_task(wait_in_queue(breaker, turn))
    await asyncio.sleep(0)
    breaker.enter()
    breaker.failed("still down")
    assert "still down" in await refusal_of(waiting)


async def test_a_question_that_has_left_the_queue_is_not_refused() -> None:
    breaker, turn = CircuitBreaker(Breaker(failures=1), ManualClock()), asyncio.Event()
    turn.set()
    await wait_in_queue(breaker, turn)
    breaker.failed("down")
    await asyncio.sleep(0)  # a task outside the waiting block is not cancelled


async def test_a_cancelled_waiter_leaves_the_queue() -> None:
    breaker = CircuitBreaker(Breaker(failures=1), ManualClock())
    waiting = asyncio.create_task(wait_in_queue(breaker, asyncio.Event()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    breaker.failed("down")


def ended(breaker: CircuitBreaker, clock: ManualClock, attempts: str, every_s: float = 1.0) -> bool:
    """Records attempts (`.` an answer, `x` a failure), and returns whether the breaker is open."""
    for each in attempts:
        clock.now += every_s
        if each == ".":
            breaker.succeeded()
        else:
            breaker.failed("down")
    return breaker.is_open


@pytest.mark.parametrize(
    ("attempts", "is_open"),
    [("xxx", False), ("xxxx", True), (".xxxx", False), (".xxxxxxxxx", True), ("xxx.xxx.xxx", False)],
)
def test_the_breaker_opens_by_the_share_of_failures_and_their_number(attempts: str, is_open: bool) -> None:
    clock = ManualClock()
    assert ended(CircuitBreaker(Breaker(failures=4), clock), clock, attempts) is is_open


def test_a_smaller_share_opens_earlier() -> None:
    clock = ManualClock()
    assert ended(CircuitBreaker(Breaker(failures=4, failure_rate=0.5), clock), clock, "....xxxx")


def test_answers_before_the_window_do_not_count() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker(Breaker(failures=4, window_s=60), clock)
    assert not ended(breaker, clock, "." * 100 + "x" * 4)
    clock.now += 60
    assert ended(breaker, clock, "x")


def test_the_last_failures_count_however_rare_attempts_are() -> None:
    clock = ManualClock()
    assert ended(CircuitBreaker(Breaker(failures=4, window_s=60), clock), clock, ".xxxx", every_s=600)


async def test_refusals_of_every_question_open_the_breaker_in_spite_of_answers_before() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker(Breaker(failures=2), clock)
    ended(breaker, clock, "." * 50)
    breaker.refused("the key is wrong")
    assert not breaker.is_open
    breaker.refused("the key is wrong")
    assert "opened after 2 failures of the last 52 attempts" in await refusal_of(
        asyncio.create_task(wait_in_queue(breaker, asyncio.Event()))
    )


def test_an_answer_ends_a_row_of_refusals() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker(Breaker(failures=2), clock)
    for _ in range(5):
        breaker.refused("the question is not allowed")
        breaker.succeeded()
    assert not breaker.is_open


@pytest.mark.parametrize("end", ["failed", "abandoned"])
def test_the_end_of_an_attempt_before_the_breaker_opened_lets_no_second_probe_through(end: str) -> None:
    clock = ManualClock()
    breaker = CircuitBreaker(Breaker(failures=2, open_s=30), clock)
    before = breaker.enter()
    breaker.failed("down")
    breaker.failed("down")
    clock.now = 31
    probe = breaker.enter()
    if end == "failed":
        breaker.failed("late", before)
    else:
        breaker.abandoned(before)
    clock.now = 70
    with pytest.raises(FinalFailure, match="another question tests the model"):
        breaker.enter()
    breaker.succeeded(probe)
    assert not breaker.is_open
    breaker.enter()
