"""A worker of which something stands still: `python -m tests.support.stuck_worker WHAT worker ...`, with the arguments of `tracegate`.

`fetch`: partition 1 of `traces` is assigned, and never asked for. `checkpoint`: none ever ends. `catch-up`: it never goes on.
`loop`: after the first partition is taken over, something holds the event loop.
"""

from __future__ import annotations

import asyncio
import sys
import time
from types import SimpleNamespace
from typing import Any

from aiokafka.consumer.fetcher import Fetcher

from tracegate.streams import watchdog, worker
from tracegate.streams.catch_up import CatchUp
from tracegate.streams.checkpoint import Checkpoints
from tracegate.streams.cli import main

LIMIT_S = 2.0


async def hang(self: Any, *args: Any) -> None:
    """Never come back."""
    await asyncio.Event().wait()


def fetch_all_but_one() -> None:
    """Leave one partition out of every request."""
    real = Fetcher._get_actions_per_node

    def actions(self: Any, assignment: Any) -> Any:
        tps = [tp for tp in assignment.tps if (tp.topic, tp.partition) != ("tracegate.traces", 1)]
        return real(self, SimpleNamespace(tps=tps, state_value=assignment.state_value))

    Fetcher._get_actions_per_node = actions


def hold_the_loop() -> None:
    """Hold it as soon as records may come."""

    def fetched(self: Any, ends: Any) -> None:
        while True:
            time.sleep(1)

    Checkpoints.fetched = fetched  # type: ignore[method-assign]


def arm(what: str) -> None:
    """Make it stand still."""
    if what == "fetch":
        fetch_all_but_one()
    elif what == "checkpoint":
        Checkpoints._commit = hang  # type: ignore[method-assign]
    elif what == "catch-up":
        CatchUp._to_the_end = hang  # type: ignore[method-assign, assignment]
    elif what == "loop":
        hold_the_loop()
    else:
        raise SystemExit(f"{what!r} is nothing that can stand still here")


class Impatient(watchdog.Watch):
    """The same, sooner."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args[:-1], LIMIT_S, **kwargs)


if __name__ == "__main__":
    arm(sys.argv[1])
    worker.Watch = Impatient  # type: ignore[misc]
    main(sys.argv[2:])
