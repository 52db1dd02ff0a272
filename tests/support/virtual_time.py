"""Event loops whose clock jumps to the next timer, so that a test of long pauses takes no time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop that advances its clock instead of waiting for the next timer."""

    def __init__(self) -> None:
        self._ahead = 0.0
        super().__init__()
        select = self._selector.select  # type: ignore[attr-defined]

        def jump(timeout: float | None = None) -> Any:
            self._ahead += timeout or 0.0
            return select(0)

        self._selector.select = jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return super().time() + self._ahead


class TimelessLoop(JumpingLoop):
    """A jumping loop on which computation takes no time."""

    def time(self) -> float:
        return self._ahead


def run_in_virtual_time(main: Coroutine[Any, Any, T], loop: type[JumpingLoop] = TimelessLoop) -> T:
    """Runs a coroutine on a loop of its own, and returns its result."""
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(main)
