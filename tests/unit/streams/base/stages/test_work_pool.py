"""Tests the work pool: it limits concurrent tasks, and starts a task at once while there is room."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from traceweir.streams.base.stages.work_pool import WorkCancelledError, WorkPool


class Record:
    """A record of which the pool reads no field."""

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


async def test_a_hanging_task_delays_no_other_task() -> None:
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


async def test_a_task_added_while_the_last_task_ends_is_run() -> None:
    pool, done, loop = WorkPool(), list[str](), asyncio.get_running_loop()

    # call_soon runs after the task has ended and before its done callback.
    pool.add(work(done, "first", lambda: loop.call_soon(pool.add, work(done, "second"), Record())), Record())
    await turns(10)

    assert done == ["first", "second"]


async def test_the_number_of_concurrent_tasks_does_not_exceed_the_limit() -> None:
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


async def test_a_failing_task_is_reported_and_other_tasks_continue() -> None:
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


async def test_a_task_that_raises_cancelled_error_by_itself_is_reported() -> None:
    failures = list[BaseException]()
    pool = WorkPool(limit=1, failed=failures.append)

    async def cancelled(_: object) -> None:
        raise asyncio.CancelledError

    pool.add(cancelled, Record())
    await pool.idle()
    await turns()

    # A worker can crash only with an Exception, and CancelledError is not an Exception.
    assert [type(error) for error in failures] == [WorkCancelledError]


async def test_work_that_is_cancelled_from_outside_is_reported_because_nobody_does_it_again() -> None:
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

    assert [str(error) for error in failures] == ["work was cancelled"]


async def test_a_limit_that_changes_holds_for_the_next_work() -> None:
    limit, done, released = 1, 0, asyncio.Semaphore(0)
    pool = WorkPool(limit=lambda: limit)

    async def wait(_: object) -> None:
        nonlocal done
        await released.acquire()
        done += 1

    def release(count: int) -> None:
        for _ in range(count):
            released.release()

    for _ in range(10):
        pool.add(wait, Record())
    await turns()
    assert pool.running == 1
    limit = 4
    release(1)
    await turns(10)
    assert (pool.running, done) == (4, 1)
    limit = 2
    release(2)
    await turns(10)
    assert (pool.running, done) == (2, 3)
    release(10)
    await pool.idle()
    assert (pool.running, done) == (0, 10)
