"""Tests that small work overtakes large work that waits, and that large work waits for no more than its own size."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from traceweir.streams.tools.endpoint.turns import Turns


async def order(sizes: list[int], later: list[int]) -> list[int]:
    """Returns the sizes in the order of their turns: the first has its turn at once, `later` ones come during the turns."""
    turns, found, coming = Turns(), list[int](), list(later)
    tasks: list[asyncio.Task[None]] = []

    async def work(size: int) -> None:
        async with turns.turn(size):
            found.append(size)
            if coming:
                tasks.append(asyncio.create_task(work(coming.pop(0))))
            for _ in range(3):
                await asyncio.sleep(0)

    tasks += [asyncio.create_task(work(size)) for size in sizes]
    while pending := [task for task in tasks if not task.done()]:
        await asyncio.gather(*pending)
    return found


async def test_a_small_piece_overtakes_large_ones_that_wait() -> None:
    assert await order([20, 20, 20, 20, 1], []) == [20, 1, 20, 20, 20]


async def test_equal_pieces_have_their_turns_in_the_order_of_their_arrival() -> None:
    assert await order([3, 3, 3], [3]) == [3, 3, 3, 3]


async def test_a_large_piece_waits_for_at_most_its_size_of_later_ones() -> None:
    found = await order([1, 20], [1] * 100)
    assert found.index(20) <= 21


async def test_a_cancelled_piece_passes_its_turn_on() -> None:
    turns, begun = Turns(), list[int]()

    async def work(number: int) -> None:
        async with turns.turn(number):
            begun.append(number)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(work(number)) for number in range(1, 5)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.sleep(0)
    # The turn of the third was just given.
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert begun[0] == 1
    assert begun[-1] == 4


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), max_size=8), st.lists(st.integers(0, 50), max_size=8))
def test_every_piece_has_one_turn(sizes: list[int], later: list[int]) -> None:
    found = asyncio.run(order(sizes, later))
    assert sorted(found) == sorted(sizes + later[: len(found)])
