"""How many questions are asked at the same time, and how many in a minute."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from traceweir.schemas.judge_config import JudgeConfig

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

PARTS = 10
"""A minute's requests are handed out over parts of it: all of them at its beginning would be refused by most providers."""
START_EVERY_S = 0.004
"""Between two questions, at least: about what asking one takes of the processor. Begun all at once they hold each other up, are sent
all at once, and their answers come so, too: then nothing is done while one waits for them, and all at once again."""


class Limits:
    """The limits of a process. Made of aiolimiter's leaky buckets: whoever exceeds a limit waits, in the order of coming.

    A bucket lets the smallest of those who wait at it go first, and a long prompt might wait for ever: so there is never more than one.
    """

    def __init__(self, config: JudgeConfig) -> None:
        self.slots = asyncio.Semaphore(config.concurrency)
        self._next_start_s = 0.0
        self._line = asyncio.Lock()
        self._requests = self._tokens = None
        if config.requests_per_minute is not None:
            self._requests = _bucket(config.requests_per_minute, PARTS)
        if config.tokens_per_minute is not None:
            self._tokens = _bucket(config.tokens_per_minute, 1)  # a long prompt may be a good part of the minute's

    async def start(self) -> None:
        """Wait until the next question may be begun; to be called with a slot."""
        # Not a bucket: in one, each waits for the one before to have waited, and how late each was adds up.
        now = asyncio.get_running_loop().time()
        start_s = max(now, self._next_start_s)
        self._next_start_s = start_s + START_EVERY_S
        await asyncio.sleep(start_s - now)

    async def wait(self, tokens: int) -> None:
        """Wait until one more question of so many tokens may be asked."""
        async with self._line:
            if self._requests is not None:
                await self._requests.acquire()
            while self._tokens is not None and tokens > 0:
                taken = min(tokens, self._tokens.max_rate)  # the bucket takes no more at once
                await self._tokens.acquire(taken)
                tokens -= int(taken)


def _bucket(a_minute: int, parts: int) -> AsyncLimiter:
    from aiolimiter import AsyncLimiter

    at_once = max(1, a_minute // parts)
    return AsyncLimiter(at_once, 60 * at_once / a_minute)
