"""Lets one piece of work run at a time, so that nobody waits for much more work than its own."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Gives turns to pieces of work of known size, by fair queueing.

    The next turn is that of the smallest piece, where each piece counts as smaller by the work that was done since it came.
    So a small piece overtakes large ones that wait, and a large one waits for at most its own size of others that came
    after it.
    """

    def __init__(self) -> None:
        self._is_busy = False
        self._done = 0
        self._arrivals = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncIterator[None]:
        """Waits for the turn of a piece of work, which lasts as long as the block."""
        if self._is_busy:
            turn = asyncio.get_running_loop().create_future()
            self._arrivals += 1
            heapq.heappush(self._waiting, (self._done + size, self._arrivals, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._next()
                raise
        self._is_busy = True
        try:
            yield
        finally:
            self._done += size
            self._next()

    def _next(self) -> None:
        self._is_busy = False
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.cancelled():
                self._is_busy = True
                turn.set_result(None)
                return
