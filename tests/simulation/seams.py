"""Replaces what connects a worker to the real world: clocks, UUIDs, threads, exits and RocksDB. Import this before the worker.

The replacements hold for the whole Python process, so that simulations run in processes of their own.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
import uuid
from contextvars import copy_context
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from tests.simulation.disk import Batch, Disk
from tests.simulation.loop import START_S, Process, ProcessEnded, SimulatedLoop, in_consumer_thread, process_of_context

REQUEST_S = 0.005
"""Time of a request in a thread, in seconds."""
real_monotonic, real_exit = time.monotonic, os._exit


class World:
    """The simulated world of this Python process."""

    loop: SimulatedLoop | None = None
    disks: dict[Process, Disk] = {}


def seconds() -> float:
    """Returns the virtual time since the start of the loop; the real time outside a simulation."""
    return World.loop.time() if World.loop is not None else real_monotonic()


def wall_clock() -> float:
    """Returns the wall clock of the running process in seconds since 1970."""
    process = process_of_context.get()
    return START_S + seconds() + (process.clock_offset_s if process is not None else 0.0)


def utc_now() -> datetime:
    """Returns the wall clock of the running process."""
    return datetime.fromtimestamp(wall_clock(), UTC)


def end_process(code: int) -> NoReturn:
    """Ends the running simulated process, as `os._exit` does.

    Raises:
        ProcessEnded: always, so that the running code stops.
    """
    process = process_of_context.get()
    if process is None:
        real_exit(code)
    process.end(code)
    raise ProcessEnded


class _Timer:
    """Stands for `threading.Timer`."""

    daemon = True

    def __init__(self, interval: float, function: Any, args: Any = None) -> None:
        self._interval, self._function, self._args = interval, function, args or ()

    def start(self) -> None:
        """Calls the function after the interval."""
        asyncio.get_running_loop().call_later(self._interval, self._function, *self._args)


class RequestThread:
    """Stands for the thread of a request to the brokers that a client in C would send: the answer comes a moment later."""

    def __init__(self, *, target: Any, **options: Any) -> None:
        self._target = target

    def start(self) -> None:
        """Calls the function a moment later."""
        loop = World.loop
        assert loop is not None
        loop.call_later(REQUEST_S * loop.slowness, self._target)


class _NoThread:
    """Stands for the thread of a watchdog. No event loop is blocked for as long as the watchdog allows."""

    def __init__(self, **options: Any) -> None:
        pass

    def start(self) -> None:
        """Does nothing."""


def put(owner: Any, name: str, new: object) -> None:
    """Replaces an attribute of a class or a module of this Python process.

    Raises:
        AttributeError: the owner has no attribute of this name, so that the replacement would replace nothing.
    """
    if not hasattr(owner, name):
        raise AttributeError(
            f"{getattr(owner, '__qualname__', owner)!r} has no attribute {name!r} to replace; "
            "name the one that the product has now"
        )
    setattr(owner, name, new)


def replace_clocks_and_uuids() -> None:
    """Replaces what would be different in every run. Call this before any other module binds it."""
    for name, now in ("monotonic", seconds), ("perf_counter", seconds), ("time", wall_clock):
        put(time, name, now)
    from traceweir.streams.base import clock

    put(clock, "utc_now", utc_now)
    put(clock, "seconds_now", wall_clock)
    # A name of a transactional producer decides which node coordinates its transactions.
    put(uuid, "uuid4", lambda: uuid.UUID(int=random.getrandbits(128), version=4))
    put(os, "_exit", end_process)


def replace_parts(seed: int) -> None:
    """Replaces threads and RocksDB, after all modules were imported.

    Args:
        seed: Seeds the random numbers of libraries.
    """
    import faust.stores.rocksdb as rocksdb
    import mode.threads
    from aiokafka.producer.message_accumulator import BatchBuilder

    from traceweir.streams.worker.kafka import faust_adapter, partition_table
    from traceweir.streams.worker.runtime import checkpoint, watchdog

    random.seed(seed)
    put(gc, "collect", lambda *args: 0)  # Faust collects garbage when it closes a database: half of all time
    gc.disable()
    threads = SimpleNamespace(Timer=_Timer, Thread=_NoThread)
    for module in checkpoint, watchdog:
        put(module, "threading", threads)
    put(partition_table, "WriteBatch", Batch)
    append = BatchBuilder.append

    def append_now(self: Any, *, timestamp: int | None, **record: Any) -> Any:
        # aiokafka's code in C would read the real clock.
        return append(self, timestamp=int(wall_clock() * 1000) if timestamp is None else timestamp, **record)

    put(BatchBuilder, "append", append_now)
    put(rocksdb.RocksDBOptions, "open", lambda self, path, **options: _disk().open(Path(path)))
    put(asyncio, "new_event_loop", asyncio.get_running_loop)  # the thread of Faust's consumer shares the loop
    put(mode.threads.ServiceThread, "_gather_remaining_tasks", _nothing)
    put(faust_adapter._Thread, "Worker", _InLoop)


async def _nothing(self: Any) -> None:
    """Cancels nothing: the other tasks of the loop belong to others."""


class _InLoop:
    """Stands for the thread of a `mode.ServiceThread`: the service runs as a task of the same loop."""

    def __init__(self, service: Any) -> None:
        self._service = service
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the service."""
        context = copy_context()
        context.run(in_consumer_thread.set, True)
        self._task = asyncio.get_running_loop().create_task(self._run(), context=context)

    async def _run(self) -> None:
        try:
            await self._service._serve()
        except Exception as error:  # noqa: BLE001  # as in `faust_adapter`
            self._service.intake.report_end(error)
            self._service.set_shutdown()

    def stop(self) -> None:
        """Does nothing: the service has said that it has ended."""


def _disk() -> Disk:
    process = process_of_context.get()
    assert process is not None
    return World.disks[process]
