"""Limits the concurrent questions, and the requests and tokens per minute."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from traceweir.schemas.judge_config import JudgeConfig

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

PARTS_PER_MINUTE = 10
"""A minute's requests are released in this many parts: most providers refuse a whole minute's requests at once."""
START_EVERY_S = 0.004
"""Minimum number of seconds between the starts of two questions: about the CPU time of one question.

Questions that start at the same moment delay each other and are sent together. Their answers arrive together too, so
that the process alternates between idle waiting and bursts of work.
"""


class Limits:
    """The limits of a process, made of aiolimiter's leaky buckets: a question above a limit waits, in arrival order.

    A bucket serves its smallest waiter first, so a long prompt could starve. A lock therefore admits only one waiter
    to the buckets at a time.
    """

    def __init__(self, config: JudgeConfig) -> None:
        self.slots = asyncio.Semaphore(config.concurrency)
        self._next_start_s = 0.0
        self._queue = asyncio.Lock()
        self._requests = self._tokens = None
        if config.requests_per_minute is not None:
            self._requests = _bucket(config.requests_per_minute, PARTS_PER_MINUTE)
        if config.tokens_per_minute is not None:
            # One part: a long prompt can use much of the minute.
            self._tokens = _bucket(config.tokens_per_minute, 1)

    async def start(self) -> None:
        """Waits until the next question can start; the caller must hold a slot."""
        # A bucket would accumulate delays, because each waiter starts its wait after the previous waiter.
        now = asyncio.get_running_loop().time()
        start_s = max(now, self._next_start_s)
        self._next_start_s = start_s + START_EVERY_S
        await asyncio.sleep(start_s - now)

    async def wait(self, tokens: int) -> None:
        """Waits until the limits per minute admit one more question of this many tokens."""
        async with self._queue:
            if self._requests is not None:
                await self._requests.acquire()
            while self._tokens is not None and tokens > 0:
                # The bucket accepts at most its capacity in one call.
                part = min(tokens, self._tokens.max_rate)
                await self._tokens.acquire(part)
                tokens -= int(part)


def _bucket(per_minute: int, parts: int) -> AsyncLimiter:
    from aiolimiter import AsyncLimiter

    at_once = max(1, per_minute // parts)
    return AsyncLimiter(at_once, 60 * at_once / per_minute)
