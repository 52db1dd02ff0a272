"""Reads something again and again while somebody looks, and keeps what was read last. No request waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Generic, NoReturn, TypeVar

from traceweir.schemas.text import printable

log = logging.getLogger(__name__)

PAUSES = 20
"""How many times the duration of a look passes before the next one, if this is longer than the stated pause."""
ASK_EVERY_S = 2.0
"""Seconds between two questions whether a look is due."""
Known = TypeVar("Known")


@dataclass(frozen=True)
class LookPace:
    """When is looked."""

    every_s: float
    """Least seconds between two looks."""
    first_after_s: float = 0.0
    """Seconds from the start to the first look, so that the feed begins first, and results are stored sooner."""
    is_watched: Callable[[], bool] = lambda: True
    """Returns whether somebody looks at the dashboard; nothing is read while nobody does."""


class RepeatedLook(Generic[Known]):
    """What a function has read, as it was when it was last called.

    Args:
        what: What is read, as the log names it.
        read: Reads it; its argument is the present time.
        known: What is known before the first look.
        with_problem: Returns what was known, with the reason why it cannot be read now.
        pace: When is looked.
        now: The clock.
        clock: Seconds of a monotonic clock.
    """

    def __init__(
        self,
        what: str,
        read: Callable[[datetime], Awaitable[Known]],
        known: Known,
        with_problem: Callable[[Known, str], Known],
        pace: LookPace,
        now: Callable[[], datetime],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._what = what
        self._read = read
        self._with_problem = with_problem
        self._pace = pace
        self._now = now
        self._clock = clock
        self._due_at_s = clock() + pace.first_after_s
        self._problem: str | None = None
        self.known = known
        """What was read last."""

    @property
    def is_due(self) -> bool:
        """Whether it has to be read now."""
        return self._clock() >= self._due_at_s and self._pace.is_watched()

    async def run(self) -> NoReturn:
        """Looks again and again, until it is cancelled."""
        while True:
            if self.is_due:
                await self.look()
            await asyncio.sleep(ASK_EVERY_S)

    async def look(self) -> None:
        """Looks once. A failure leaves what was known as it is, with the problem, which is logged once."""
        began_at_s = self._clock()
        try:
            self.known = await self._read(self._now())
        except Exception as error:  # noqa: BLE001  # whatever it is, the dashboard goes on, and says it
            problem = printable(_sentence(error), 1_000)
            if problem != self._problem:
                log.warning("%s cannot be read now: %s; trying again", self._what, problem)
            self._problem = problem
            self.known = self._with_problem(self.known, problem)
        else:
            self._problem = None
        ended_at_s = self._clock()
        self._due_at_s = ended_at_s + max(self._pace.every_s, PAUSES * (ended_at_s - began_at_s))


def _sentence(error: Exception) -> str:
    # What Python itself raises, unlike the system, is a fault here; KeyError has as text nothing but the key.
    is_fault = type(error).__module__ == "builtins" and not isinstance(error, OSError)
    return repr(error) if is_fault else str(error) or repr(error)
