"""Tests how the number of questions in flight to a model grows and shrinks."""

from __future__ import annotations

import asyncio

import pytest

from traceweir.streams.scoring.judges.concurrency import FIRST_LIMIT, AdaptiveConcurrency


async def filled(concurrency: AdaptiveConcurrency, rounds: int = 0) -> AdaptiveConcurrency:
    """Takes all places; then all of them are answered, and all new places are taken, in each round."""
    taken = 0
    for _ in range(rounds + 1):
        for _ in range(taken):
            concurrency.answered(1)
        while taken < concurrency.limit:
            await concurrency.acquire()
            taken += 1
    return concurrency


async def test_the_limit_doubles_with_each_round_of_answers_up_to_the_maximum() -> None:
    limits = [(await filled(AdaptiveConcurrency(64, 60), rounds)).limit for rounds in range(5)]
    assert limits == [FIRST_LIMIT, 2 * FIRST_LIMIT, 4 * FIRST_LIMIT, 8 * FIRST_LIMIT, 64]


async def test_a_smaller_maximum_holds_from_the_first_question() -> None:
    assert (await filled(AdaptiveConcurrency(3, 60), 2)).limit == 3


async def test_an_overload_halves_the_questions_in_flight_once_for_all_that_were_sent_before() -> None:
    concurrency = await filled(AdaptiveConcurrency(64, 60), 2)
    sent = concurrency.overloads
    for _ in range(20):
        concurrency.overloaded(sent)
    assert concurrency.limit == 2 * FIRST_LIMIT
    concurrency.overloaded(concurrency.overloads)
    assert concurrency.limit == FIRST_LIMIT


async def test_after_an_overload_a_round_of_answers_raises_the_limit_by_one() -> None:
    concurrency = await filled(AdaptiveConcurrency(64, 60), 2)
    concurrency.overloaded(concurrency.overloads)
    before = concurrency.limit
    for _ in range(before + 1):
        concurrency.answered(1)
    assert concurrency.limit == before + 1


async def test_the_limit_is_never_below_one() -> None:
    concurrency = await filled(AdaptiveConcurrency(64, 60))
    for _ in range(20):
        concurrency.overloaded(concurrency.overloads)
    assert concurrency.limit == 1


async def test_a_limit_that_is_not_used_does_not_grow() -> None:
    concurrency = AdaptiveConcurrency(64, 60)
    await concurrency.acquire()
    for _ in range(100):
        concurrency.answered(1)
    assert concurrency.limit == FIRST_LIMIT


@pytest.mark.parametrize(
    ("fastest_s", "seconds", "grows"), [(1, 14, True), (1, 16, False), (20, 39, True), (20, 41, False)]
)
async def test_an_answer_that_has_waited_at_the_model_does_not_raise_the_limit(
    fastest_s: float, seconds: float, grows: bool
) -> None:
    concurrency = await filled(AdaptiveConcurrency(64, 60))
    concurrency.answered(fastest_s)
    before = concurrency.limit
    concurrency.answered(seconds)
    assert (concurrency.limit > before) is grows


async def test_places_are_given_in_arrival_order_and_a_cancelled_waiter_takes_none() -> None:
    concurrency = await filled(AdaptiveConcurrency(2, 60))
    entered = list[int]()

    async def enter(number: int) -> None:
        await concurrency.acquire()
        entered.append(number)

    waiting = [asyncio.create_task(enter(number)) for number in range(4)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    concurrency.release()
    # Its place is given and it is cancelled in the same moment.
    waiting[1].cancel()
    await asyncio.gather(*waiting[:2], return_exceptions=True)
    concurrency.release()
    await asyncio.gather(*waiting[2:])
    assert entered == [2, 3]
