"""A circuit breaker: a model that keeps failing is left alone for a while, so that nobody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from traceweir.streams.judges.errors import Refused


class CircuitBreaker:
    """Counts failures in a row. From a number of them on it is open; after a while one attempt is let through, and decides.

    Own code, as what there is on PyPI either keeps time by itself, lets every waiting call through at once when it half opens, or has not
    been released for years.

    Args:
        failures: In a row, after which it opens.
        open_s: For how long.
        clock: Seconds that only grow.
    """

    def __init__(self, failures: int, open_s: float, clock: Callable[[], float]) -> None:
        self._limit, self._open_s, self._clock = failures, open_s, clock
        self._failed = 0
        self._opened: float | None = None
        self._trying = False
        self._last = ""
        self._waiting: dict[asyncio.Timeout, None] = {}  # in the order of coming, in which they are told

    @property
    def is_open(self) -> bool:
        """Whether nothing is to be asked."""
        return self._opened is not None

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Wait in this block until an attempt may begin. Waiting is none yet.

        Raises:
            Refused: nothing is to be asked now, or since it opened meanwhile.
        """
        self._check()
        try:
            async with asyncio.timeout(None) as wait:
                self._waiting[wait] = None
                try:
                    yield
                finally:
                    self._waiting.pop(wait, None)
        except TimeoutError:
            if not wait.expired():
                raise
            raise Refused(f"not asked, as others failed while it waited for its turn. The last: {self._last}") from None

    def enter(self) -> None:
        """Begin an attempt; `failed`, `succeeded` or `left` must follow.

        Raises:
            Refused: nothing is to be asked now.
        """
        self._check()
        self._trying = self._opened is not None

    def _check(self) -> None:
        if self._opened is None:
            return
        left = self._opened + self._open_s - self._clock()
        if left > 0:
            raise Refused(
                f"not asked, after {self._failed} failures in a row; again in {left:.0f} s. The last: {self._last}"
            )
        if self._trying:
            raise Refused(
                f"not asked, while another question tries whether it answers again. The last failure: {self._last}"
            )

    def failed(self, why: str) -> None:
        """An attempt failed in a way that others would, too."""
        self._failed += 1
        self._last = why
        if self._trying or self._failed >= self._limit:
            self._opened = self._clock()
            self._tell()
        self._trying = False

    def succeeded(self) -> None:
        """An attempt was answered, if only to be refused for its own sake."""
        self._failed, self._opened, self._trying = 0, None, False

    def left(self) -> None:
        """An attempt ended without a verdict: who asked has gone."""
        self._trying = False

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for wait in waiting:
            wait.reschedule(0)  # it is over
