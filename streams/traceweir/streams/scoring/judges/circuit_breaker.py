"""Provides a circuit breaker, which stops asking a model that keeps failing, so that no question waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from traceweir.streams.scoring.judges.errors import FinalFailure


class CircuitBreaker:
    """Opens after a number of consecutive failures; after `open_s` one attempt is let through (half-open) and decides.

    Traceweir has its own code here because each library on PyPI either reads the clock itself, lets all waiting calls
    through at once when half-open, or has had no release for years.

    Args:
        failures: Consecutive failures after which the breaker opens.
        open_s: Seconds that the breaker stays open.
        clock: Returns monotonic seconds.
    """

    def __init__(self, failures: int, open_s: float, clock: Callable[[], float]) -> None:
        self._limit = failures
        self._open_s = open_s
        self._clock = clock
        self._consecutive_failures = 0
        self._opened_at_s: float | None = None
        self._probing = False
        self._last_failure = ""
        # In arrival order, in which they are cancelled.
        self._waiting: dict[asyncio.Timeout, None] = {}

    @property
    def is_open(self) -> bool:
        """Whether the breaker refuses questions."""
        return self._opened_at_s is not None

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """Guards the block in which a question waits for its attempt; waiting does not count as an attempt.

        Raises:
            Refused: the breaker is open, or opened while the block ran.
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
            raise FinalFailure(
                f"not asked: the circuit breaker opened while this question waited; last failure: {self._last_failure}"
            ) from None

    def enter(self) -> None:
        """Begins an attempt; the caller must then call `failed`, `succeeded` or `abandoned`.

        Raises:
            Refused: the breaker is open.
        """
        self._check()
        self._probing = self._opened_at_s is not None

    def _check(self) -> None:
        if self._opened_at_s is None:
            return
        remaining_s = self._opened_at_s + self._open_s - self._clock()
        if remaining_s > 0:
            raise FinalFailure(
                f"not asked: the circuit breaker opened after {self._consecutive_failures} consecutive failures; "
                f"next attempt possible in {remaining_s:.0f} s; last failure: {self._last_failure}"
            )
        if self._probing:
            raise FinalFailure(
                "not asked: the circuit breaker is half-open and another question tests the model; "
                f"last failure: {self._last_failure}"
            )

    def failed(self, reason: str) -> None:
        """Records an attempt that failed in a way in which other questions would fail too."""
        self._consecutive_failures += 1
        self._last_failure = reason
        if self._probing or self._consecutive_failures >= self._limit:
            self.open()
        self._probing = False

    def open(self) -> None:
        """Opens the breaker, however many failures there were."""
        self._opened_at_s = self._clock()
        self._expire_waiting()

    def succeeded(self) -> None:
        """Records an attempt that the model answered, and closes the breaker.

        A refusal that concerns only this question counts as an answer.
        """
        self._consecutive_failures = 0
        self._opened_at_s = None
        self._probing = False

    def abandoned(self) -> None:
        """Records an attempt without information about the model, for example because the caller was cancelled."""
        self._probing = False

    def _expire_waiting(self) -> None:
        waiting = self._waiting
        self._waiting = {}
        for wait in waiting:
            # A deadline in the past: raises TimeoutError in the waiting task.
            wait.reschedule(0)
