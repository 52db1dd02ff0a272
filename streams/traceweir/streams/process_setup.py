"""Sets up garbage collection and the event loop in each process of a worker."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def tune_gc() -> None:
    """Excludes all imported objects from garbage collection and makes collections rare.

    A collection stops all lanes and frees almost nothing: almost no objects that stages create have reference cycles, so
    reference counting frees them. With Python's default thresholds, garbage collection took 5 % of the run time and
    made the slowest 1 % of sessions wait 20 % longer. A backlog lets the records in progress grow and shrink by tens of
    thousands of objects: a worker at full load collected for 4 % of its CPU time with a threshold of 20,000 objects,
    1 % with 100,000.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)


@contextmanager
def paused_gc() -> Iterator[None]:
    """Pauses garbage collection during a large import, which creates many objects and almost no garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def event_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Returns the factory of uvloop's event loop, None for asyncio's own loop if uvloop is not installed."""
    try:
        import uvloop
    except ImportError:  # uvloop does not exist for Windows
        return None
    make: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return make
