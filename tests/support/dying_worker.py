"""Runs a worker that kills itself at a chosen step of a checkpoint; a kill from outside rarely hits that moment.

`python -m tests.support.dying_worker worker ...` takes the arguments of `traceweir`. The file that the variable
`TRACEWEIR_TESTS_DEATH` names contains `STEP MOMENT COUNT`. When the file exists, the worker kills itself at the
COUNT-th call of STEP from then on: `before` the call, `midway` (the request is in flight) or `after` the call.
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
from tests.support import stumbling_stages

STEPS = ("begin_transaction", "send_batch", "send_offsets_to_transaction", "commit_transaction", "store")
WITHOUT_TRANSACTIONS = ("send_batch", "store")
"""The steps of a checkpoint on an embedded broker."""
MOMENTS = ("before", "midway", "after")
VARIABLE = "TRACEWEIR_TESTS_DEATH"


class Death:
    """When the process kills itself: never, until `draw` is called or the file exists."""

    def __init__(self, file: Path | None = None) -> None:
        self._file, self._step, self._moment, self._left = file, "", "", 0

    def draw(self, step: str, moment: str, count: int) -> None:
        """Sets the step, the moment and the number of the call at which the process kills itself."""
        self._step, self._moment, self._left = step, moment, count

    def due(self, step: str) -> bool:
        """Counts a call of a step; returns whether the process must kill itself at this call."""
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
        """Kills the process with SIGKILL."""
        os.write(2, f"killing itself: {self._step}, {self._moment}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def install(death: Death) -> None:
    """Wraps the steps of a checkpoint in this process, so that `death` can kill the process there."""
    from traceweir.streams.worker.kafka.partition_table import PartitionTable

    write = PartitionTable.write

    def write_rows(
        self: PartitionTable,
        partition: int,
        rows: Iterable[tuple[bytes, bytes | None]],
        offset: int,
        current_at: float | None = None,
    ) -> None:
        if not death.due("store"):
            write(self, partition, rows, offset, current_at)
            return
        if death.moment != "before":  # RocksDB writes a batch of rows completely or not at all, so `midway` is `after`
            write(self, partition, rows, offset, current_at)
        death.come()

    PartitionTable.write = write_rows  # type: ignore[method-assign]
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
    stumbling_stages.install(Path(os.environ[stumbling_stages.VARIABLE]))
    main(sys.argv[1:])
