"""A worker that kills itself at a step of a checkpoint, when it is told to: a kill from outside rarely hits these moments.

`python -m tests.support.dying_worker worker ...`, with the arguments of `traceweir`. Once there is the file that `TRACEWEIR_TESTS_DEATH`
names, which says `STEP MOMENT COUNT`, it dies at the COUNT-th call of STEP from then on, `before` it, `midway` (the request is under way)
or `after` it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer

STEPS = ("begin_transaction", "send_batch", "send_offsets_to_transaction", "commit_transaction", "store")
WITHOUT_TRANSACTIONS = ("send_batch", "store")
"""The steps that there are on an embedded broker."""
MOMENTS = ("before", "midway", "after")
VARIABLE = "TRACEWEIR_TESTS_DEATH"


class Death:
    """When to die: never, until it is drawn, or until the file that says so is there."""

    def __init__(self, file: Path | None = None) -> None:
        self._file, self._step, self._moment, self._left = file, "", "", 0

    def draw(self, step: str, moment: str, count: int) -> None:
        """Die at that step."""
        self._step, self._moment, self._left = step, moment, count

    def due(self, step: str) -> bool:
        """Count a call of a step, and say whether it is the one."""
        if self._file is not None and self._file.exists():
            drawn, moment, count = self._file.read_text().split()
            self._file.unlink()
            self.draw(drawn, moment, int(count))
        if step != self._step:
            return False
        self._left -= 1
        return self._left == 0

    @property
    def moment(self) -> str:
        """`before`, `midway` or `after` the call."""
        return self._moment

    def come(self) -> None:
        """End the process as SIGKILL does."""
        os.write(2, f"killing itself: {self._step}, {self._moment}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def install(death: Death) -> None:
    """Put the steps of this process under its control."""
    from traceweir.streams.kafka.faust_adapter import Table

    write = Table.write

    def write_rows(self: Table, partition: int, rows: Iterable[tuple[bytes, bytes | None]], offset: int) -> None:
        if not death.due("store"):
            write(self, partition, rows, offset)
            return
        if death.moment != "before":  # a batch of rows is written whole, or not at all
            write(self, partition, rows, offset)
        death.come()

    Table.write = write_rows  # type: ignore[method-assign]
    for step in STEPS[:-1]:
        setattr(AIOKafkaProducer, step, _watched(step, getattr(AIOKafkaProducer, step), death))


def _watched(step: str, real: Any, death: Death) -> Any:
    async def call(producer: Any, *args: Any, **options: Any) -> Any:
        if not death.due(step):
            return await real(producer, *args, **options)
        if death.moment == "midway":
            under_way = asyncio.ensure_future(real(producer, *args, **options))
            await asyncio.wait({under_way}, timeout=0.002)
        elif death.moment == "after":
            await real(producer, *args, **options)
        return death.come()

    return call


if __name__ == "__main__":
    from traceweir.streams.cli.main import main

    install(Death(Path(os.environ[VARIABLE])))
    main(sys.argv[1:])
