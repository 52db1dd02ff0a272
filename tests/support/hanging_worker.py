"""Runs a worker whose last checkpoint never ends.

`python -m tests.support.hanging_worker worker ...` takes the arguments of `traceweir`.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from traceweir.streams.cli.main import main
from traceweir.streams.worker import faust_worker
from traceweir.streams.worker.runtime.checkpoint import Checkpoints


async def hang(self: Any) -> None:
    """Never returns."""
    await asyncio.Event().wait()


if __name__ == "__main__":
    faust_worker.STOP_WITHIN_S = 1.0
    Checkpoints.revoke = hang  # type: ignore[method-assign]
    main(sys.argv[1:])
