"""The pool: bounded, and nothing waits while there is room."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from traceweir.streams.stages.work_pool import WorkPool


class Record:
    """The pool looks at nothing of a record."""

    topic, partition, offset, timestamp, key, value, headers = "t", 0, 0, 0, None, None, ()


def work(done: list[str], name: str, after: Callable[[], object] | None = None) -> Callable[[object], Awaitable[None]]:
    async def run(_: object) -> None:
        done.append(name)
        if after is not None:
            after()

    return run


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_one_that_hangs_delays_nobody() -> None:
    pool, done, released = WorkPool(limit=2), list[str](), asyncio.Event()

    async def hang(_: object) -> None:
        await released.wait()

    pool.add(hang, Record())
    await turns()
    pool.add(work(done, "next"), Record())
    await turns()

    assert done == ["next"]
    released.set()
    await pool.idle()


async def test_work_that_comes_while_the_last_piece_ends_is_done() -> None:
    pool, done, loop = WorkPool(), list[str](), asyncio.get_running_loop()

    # Called after the task has ended, and before anybody hears that it has.
    pool.add(work(done, "first", lambda: loop.call_soon(pool.add, work(done, "second"), Record())), Record())
    await turns(10)

    assert done == ["first", "second"]


async def test_no_more_than_the_limit_run_at_once() -> None:
    pool, running, most, released = WorkPool(limit=3), 0, 0, asyncio.Event()

    async def count(_: object) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await released.wait()
        running -= 1

    for _ in range(10):
        pool.add(count, Record())
    await turns()
    assert running == 3
    released.set()
    await pool.idle()
    assert (running, most) == (0, 3)


async def test_a_piece_that_fails_is_reported_and_the_others_go_on() -> None:
    failures, done = list[BaseException](), list[str]()
    pool = WorkPool(limit=1, failed=failures.append)

    async def fail(_: object) -> None:
        raise RuntimeError("broken")

    pool.add(fail, Record())
    await turns()
    pool.add(work(done, "next"), Record())
    await pool.idle()

    assert [str(error) for error in failures] == ["broken"]
    assert done == ["next"]


async def test_a_piece_that_is_cancelled_by_what_it_waits_for_is_reported() -> None:
    failures = list[BaseException]()
    pool = WorkPool(limit=1, failed=failures.append)

    async def cancelled(_: object) -> None:
        raise asyncio.CancelledError

    pool.add(cancelled, Record())
    await pool.idle()
    await turns()

    assert [type(error) for error in failures] == [RuntimeError]  # a worker can only crash with an Exception


async def test_a_piece_that_somebody_cancels_is_not_reported() -> None:
    failures = list[BaseException]()
    pool = WorkPool(limit=1, failed=failures.append)

    async def hang(_: object) -> None:
        await asyncio.Event().wait()

    before = asyncio.all_tasks()
    pool.add(hang, Record())
    await turns()
    for task in asyncio.all_tasks() - before:
        task.cancel()
    await pool.idle()
    await turns()

    assert failures == []
