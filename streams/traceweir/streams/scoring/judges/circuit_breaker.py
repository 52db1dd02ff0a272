"""Provides a circuit breaker, which stops asking a model that keeps failing, so that no question waits for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from traceweir.schemas.judge_config import Breaker
from traceweir.streams.scoring.judges.errors import FinalFailure

NO_ATTEMPT = 0
"""Stands for a failure that is not the end of one attempt."""


class CircuitBreaker:
    """Opens by the share of failed attempts; after `open_s` one attempt is let through (half-open) and decides.

    The share is that of the attempts of the last `window_s` seconds, and at least of the last `failures` attempts. A
    model that answers some of its questions is not down: the breaker stays closed, and the concurrency adapts.

    Traceweir has its own code here because each library on PyPI either reads the clock itself, lets all waiting calls
    through at once when half-open, or has had no release for years.

    Args:
        limits: When the breaker opens, and for how long.
        clock: Returns monotonic seconds.
    """

    def __init__(self, limits: Breaker, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._ended: deque[_Ended] = deque()
        self._failures = 0
        self._refusals = 0
        self._opened_after = ""
        self._opened_at_s: float | None = None
        self._attempts = 0
        # The number of the attempt that tests the model.
        self._probe: int | None = None
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
                f"not asked: the circuit breaker opened while this question waited; last failure: {self._last_failure}",
                down=True,
            ) from None

    def enter(self) -> int:
        """Begins an attempt, and returns its number; the caller must then call `failed`, `succeeded` or `abandoned`.

        An attempt that began before the breaker opened is no probe, and its end lets no second probe through.

        Raises:
            Refused: the breaker is open.
        """
        self._check()
        self._attempts += 1
        if self._opened_at_s is not None:
            self._probe = self._attempts
        return self._attempts

    def _check(self) -> None:
        if self._opened_at_s is None:
            return
        remaining_s = self._opened_at_s + self._limits.open_s - self._clock()
        if remaining_s > 0:
            raise FinalFailure(
                f"not asked: the circuit breaker opened after {self._opened_after}; "
                f"next attempt possible in {remaining_s:.0f} s; last failure: {self._last_failure}",
                down=True,
            )
        if self._probe is not None:
            raise FinalFailure(
                "not asked: the circuit breaker is half-open and another question tests the model; "
                f"last failure: {self._last_failure}",
                down=True,
            )

    def failed(self, reason: str, attempt: int | None = None) -> None:
        """Records an attempt that failed, and that a later attempt can repeat with success.

        Args:
            reason: Message for a person.
            attempt: The number from `enter`; None: the probe, if there is one.
        """
        self._last_failure = reason
        self._end_attempt(is_failure=True)
        limits = self._limits
        is_down = self._failures >= limits.failures and self._failures >= limits.failure_rate * len(self._ended)
        if self._ends_probe(attempt) or is_down:
            self.open()

    def refused(self, reason: str, attempt: int | None = None) -> None:
        """Records an attempt that was refused in a way in which every other question would be refused, for a long time.

        Answers before it say nothing about the next question, so `failures` refusals in a row open the breaker.
        """
        self._refusals += 1
        self.failed(reason, attempt)
        if self._refusals >= self._limits.failures:
            self.open()

    def open(self) -> None:
        """Opens the breaker, whatever the attempts before."""
        if self._opened_at_s is None:
            attempts = len(self._ended)
            self._opened_after = (
                f"{attempts} consecutive failures"
                if attempts == self._failures
                else f"{self._failures} failures of the last {attempts} attempts"
            )
        self._opened_at_s = self._clock()
        self._expire_waiting()

    def succeeded(self, attempt: int | None = None) -> None:
        """Records an attempt that the model answered, and closes the breaker.

        A refusal that concerns only this question counts as an answer.
        """
        self._refusals = 0
        if self._opened_at_s is not None:
            self._opened_at_s = None
            self._ended.clear()
            self._failures = 0
            # Whatever the probe says: nothing is left to be tested.
            self._probe = None
        self._end_attempt(is_failure=False)

    def abandoned(self, attempt: int | None = None) -> None:
        """Records an attempt without information about the model, for example because the caller was cancelled."""
        self._ends_probe(attempt)

    def _ends_probe(self, attempt: int | None) -> bool:
        """Returns whether an attempt that ends is the probe, after which the next one can begin."""
        is_probe = self._probe is not None and attempt in (None, self._probe)
        if is_probe:
            self._probe = None
        return is_probe

    def _end_attempt(self, *, is_failure: bool) -> None:
        now = self._clock()
        self._ended.append(_Ended(now, is_failure))
        self._failures += is_failure
        while len(self._ended) > self._limits.failures and self._ended[0].at_s < now - self._limits.window_s:
            self._failures -= self._ended.popleft().is_failure

    def _expire_waiting(self) -> None:
        waiting = self._waiting
        self._waiting = {}
        for wait in waiting:
            # A deadline in the past: raises TimeoutError in the waiting task.
            wait.reschedule(0)


class _Ended(NamedTuple):
    at_s: float
    is_failure: bool
