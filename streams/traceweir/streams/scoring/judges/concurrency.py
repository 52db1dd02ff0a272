"""Adapts the number of questions in flight to what a model can answer, by additive increase, multiplicative decrease.

The algorithm is the congestion control of TCP, "Reno": slow start, congestion avoidance, and one halving per window
(RFC 5681, sections 3.1 and 3.2). Netflix's concurrency-limits applies it to calls of a server (`AIMDLimit`): as there,
the limit grows only while at least half of it is used.
"""

from __future__ import annotations

import asyncio
from collections import deque

FIRST_LIMIT = 5
"""Questions in flight to a model that has not answered yet, if the configured maximum allows as many."""


class AdaptiveConcurrency:
    """Limits the questions in flight to one model; further questions wait in arrival order.

    Each answer raises the limit by 1, so that it doubles with each round of answers; above the value to which an
    overload has halved it, a whole round raises it by 1. An overload halves the questions in flight, to 1 at least.

    Args:
        most: The configured maximum, which the limit never exceeds.
        timeout_s: Seconds after which an attempt ends without an answer.
    """

    def __init__(self, most: int, timeout_s: float) -> None:
        self._most = most
        self._slow_s = timeout_s / 4
        self._fastest_s = timeout_s
        self._limit = float(min(most, FIRST_LIMIT))
        self._slow_start_ends = float(most)
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.overloads = 0
        """How often the limit was halved; a question that is sent notes this number for `overloaded`."""

    @property
    def limit(self) -> int:
        """The number of questions that can be in flight now, from 1 to the maximum."""
        return int(self._limit)

    async def acquire(self) -> None:
        """Waits for a place among the questions in flight; the caller must release it."""
        if not self._waiting and self._in_flight < self.limit:
            self._in_flight += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._waiting = deque(each for each in self._waiting if each is not turn)
            else:
                # The place was given in the same moment.
                self.release()
            raise

    def release(self) -> None:
        """Gives a place to the next question."""
        self._in_flight -= 1
        self._admit()

    def answered(self, seconds: float) -> None:
        """Notes that the model has answered after some seconds, even if it refuses the question."""
        self._fastest_s = min(seconds, self._fastest_s)
        is_queued = seconds > max(self._slow_s, 2 * self._fastest_s)
        if is_queued or self._in_flight * 2 < self._limit:
            return
        step = 1.0 if self._limit < self._slow_start_ends else 1 / self._limit
        self._limit = min(self._limit + step, float(self._most))
        self._admit()

    def overloaded(self, overloads_when_sent: int) -> None:
        """Notes that the model was busy, or did not answer in time.

        Args:
            overloads_when_sent: `overloads` when the question was sent; if the limit was halved since then, this
                question tells of the same overload, and nothing changes.
        """
        if overloads_when_sent != self.overloads:
            return
        self.overloads += 1
        self._limit = max(1.0, min(self._limit, self._in_flight) / 2)
        self._slow_start_ends = self._limit

    def _admit(self) -> None:
        while self._waiting and self._in_flight < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._in_flight += 1
