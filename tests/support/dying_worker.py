"""A worker that kills itself once, at a drawn step of a checkpoint: a kill from outside rarely hits these moments.

`python -m tests.support.dying_worker STEP MOMENT COUNT worker ...`: at the COUNT-th call of STEP in this process, `before` it,
`midway` (the request is under way) or `after` it. What follows are the arguments of `tracegate`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from aiokafka import AIOKafkaProducer

STEPS = ("begin_transaction", "send_batch", "send_offsets_to_transaction", "commit_transaction", "store")
MOMENTS = ("before", "midway", "after")


def arm(step: str, moment: str, count: int) -> None:
    """Make the process kill itself at that step."""
    left = count

    def due() -> bool:
        nonlocal left
        left -= 1
        return left == 0

    if step == "store":
        from tracegate.streams.faust_seam import Table

        write = Table.write

        def write_rows(table: Any, partition: int, rows: Any, offset: int) -> Any:
            if not due():
                return write(table, partition, rows, offset)
            if moment != "before":  # a batch of rows is written whole, or not at all
                write(table, partition, rows, offset)
            return die(step, moment)

        Table.write = write_rows  # type: ignore[method-assign]
        return

    real = getattr(AIOKafkaProducer, step)

    async def call(producer: Any, *args: Any, **options: Any) -> Any:
        if not due():
            return await real(producer, *args, **options)
        if moment == "midway":
            under_way = asyncio.ensure_future(real(producer, *args, **options))
            await asyncio.wait({under_way}, timeout=0.002)
        elif moment == "after":
            await real(producer, *args, **options)
        return die(step, moment)

    setattr(AIOKafkaProducer, step, call)


def die(step: str, moment: str) -> None:
    """End the process as SIGKILL does."""
    os.write(2, f"killing itself: {step}, {moment}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    from tracegate.streams.cli import main

    arm(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    main(sys.argv[4:])
