"""Challengers score sessions in the places that live sessions leave free, and always in one."""

from __future__ import annotations

import asyncio

import pytest

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.work_pool import WorkPool
from traceweir.streams.pipeline.topology import pool_of_challengers


async def settle() -> None:
    """Lets every task begin."""
    for _ in range(100):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("live", "places"), [(0, 14), (5, 9), (13, 1), (14, 1), (16, 1)])
async def test_challengers_get_the_places_that_live_sessions_and_retries_leave_free(live: int, places: int) -> None:
    settings = Settings(score_concurrency=16)
    champions, go = WorkPool(16), asyncio.Event()

    async def wait(item: int) -> None:
        await go.wait()

    for number in range(live):
        champions.add(wait, number)
    await settle()
    pool = pool_of_challengers(settings, champions)
    for number in range(32):
        pool.add(wait, number)
    await settle()
    assert (champions.running, pool.running) == (live, places)
    go.set()
    await pool.idle()
    await champions.idle()
