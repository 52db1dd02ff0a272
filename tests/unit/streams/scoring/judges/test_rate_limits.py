"""Tests the limits of requests and tokens per minute, on an event loop whose clock jumps to the next timer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
from tests.support.virtual_time import JumpingLoop, TimelessLoop, run_in_virtual_time

from traceweir.schemas.judge_config import JudgeConfig
from traceweir.streams.scoring.judges.rate_limits import START_EVERY_S, Limits


def start_times_s(
    ask: Callable[[Limits], Awaitable[None]],
    count: int,
    loop: type[JumpingLoop] = JumpingLoop,
    **config: int,
) -> list[float]:
    """Returns the start times of `count` simultaneous questions, in seconds after the first start."""

    async def all_at_once() -> list[float]:
        limits, found = Limits(JudgeConfig.model_validate(config)), list[float]()

        async def one() -> None:
            await ask(limits)
            found.append(asyncio.get_running_loop().time())

        await asyncio.gather(*(one() for _ in range(count)))
        return [each - found[0] for each in found]

    return run_in_virtual_time(all_at_once(), loop)


@pytest.mark.slow
@pytest.mark.parametrize("per_minute", [1, 7, 60, 600])
def test_no_minute_has_more_requests_than_the_limit_plus_a_tenth(per_minute: int) -> None:
    asked = start_times_s(lambda limits: limits.wait(1), 3 * per_minute, requests_per_minute=per_minute)
    most = max(sum(start <= each < start + 60 for each in asked) for start in asked)
    assert most <= per_minute + max(1, per_minute // 10)
    assert asked[-1] >= 60 * (3 * per_minute - max(1, per_minute // 10) - 1) / per_minute - 1e-6


def test_at_most_a_tenth_of_a_minutes_requests_start_at_once() -> None:
    asked = start_times_s(lambda limits: limits.wait(1), 30, requests_per_minute=100)
    assert sum(each < 0.5 for each in asked) == 10


def test_questions_start_one_after_another_even_without_limits() -> None:
    asked = start_times_s(lambda limits: limits.start(), 100, TimelessLoop)
    assert [later - earlier for earlier, later in pairwise(asked)] == pytest.approx([START_EVERY_S] * 99)


def test_the_token_limit_counts_tokens_and_not_questions() -> None:
    asked = start_times_s(lambda limits: limits.wait(250), 8, tokens_per_minute=1_000)
    assert [round(each / 15) for each in asked] == [0, 0, 0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("asked", [(30, 20, 10), (2_500, 20, 10)], ids=["long", "longer than a minute"])
def test_questions_start_in_arrival_order_regardless_of_their_length(asked: tuple[int, ...]) -> None:
    order = []

    async def in_turn(limits: Limits) -> None:
        waiting.append(tokens := asked[len(waiting)] if waiting else 1_000)
        await limits.wait(tokens)
        order.append(tokens)

    waiting: list[int] = []
    asked = (1_000, *asked)  # the first fills the bucket
    start_times_s(in_turn, len(asked), tokens_per_minute=1_000)
    assert order == list(asked)


def test_a_cancelled_waiter_lets_the_next_question_start() -> None:
    async def first_leaves() -> None:
        limits = Limits(JudgeConfig(tokens_per_minute=1_000))
        await limits.wait(1_000)
        first, second = (asyncio.create_task(limits.wait(900)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert first.cancelled()

    run_in_virtual_time(first_leaves(), JumpingLoop)


def test_a_question_longer_than_the_limit_per_minute_waits_several_minutes() -> None:
    asked = start_times_s(lambda limits: limits.wait(2_500), 2, tokens_per_minute=1_000)
    assert 149 <= asked[1] <= 151
