"""Limits how many answers are computed at a time, and how many wait."""

from __future__ import annotations

import asyncio
from types import TracebackType

AT_ONCE = 4
"""Answers that are computed at a time; the store uses every core for one."""
MAX_WAITING = 32
"""Answers that wait to be computed; a further one is refused."""


class TooManyWaitError(Exception):
    """No further answer may wait. The message is for who asked."""


class AnswerTurns:
    """Gives the answers to compute their turns, first come, first served; `async with` waits for a turn.

    Args:
        at_once: Maximum number of answers that are computed at a time.
        most: Maximum number of answers that wait.
    """

    def __init__(self, at_once: int = AT_ONCE, most: int = MAX_WAITING) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._most = most
        self._waiting = 0

    async def __aenter__(self) -> None:
        if self._free.locked() and self._waiting >= self._most:
            raise TooManyWaitError(f"{self._waiting} answers wait to be computed, which is the most: try again later")
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._free.release()
