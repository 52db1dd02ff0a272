"""Sets up garbage collection and the event loop in each process of a worker."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def tune_gc() -> None:
    """Excludes all imported objects from garbage collection and makes collections rare.

    A collection stops all lanes and frees almost nothing: almost all objects that stages create are in no reference
    cycle, so reference counting frees them. With Python's default thresholds, garbage collection took 5 % of the run time
    and made the slowest 1 % of sessions wait 20 % longer; with 20,000 objects it still took 3 % of the CPU of a worker.
    Cycles are costly with 100,000: one in the score stage made `traceweir score` hold 717 MB.
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
    except ImportError:
        # uvloop does not exist for Windows.
        return None
    make: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return make
