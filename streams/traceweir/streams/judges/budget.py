"""What judging may cost: checked before each question, in whole minutes and days of UTC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from traceweir.schemas.judge_config import Budget
from traceweir.scorers.judge import BudgetSpent
from traceweir.streams.judges.models import Use

MINUTES_A_DAY = 1_440


class Paid(NamedTuple):
    """What was paid within one minute, counted in whole minutes since 1970."""

    minute: int
    tokens: int
    usd: float


class Share(NamedTuple):
    """How many of all partitions a worker has, and so which part of every limit is its own."""

    partitions: int = 1
    of: int = 1


class Spending:
    """What was paid in the latest minute and on the latest day of which anything is known."""

    def __init__(self) -> None:
        self.minute, self.in_minute = 0, Use()
        self.day, self.in_day = 0, Use()

    def add(self, paid: Paid) -> None:
        """Something was paid."""
        use = Use(paid.tokens, paid.usd)
        self.at(paid.minute)
        if paid.minute == self.minute:
            self.in_minute = _not_negative(self.in_minute + use)
        if paid.minute // MINUTES_A_DAY == self.day:
            self.in_day = _not_negative(self.in_day + use)

    def at(self, minute: int) -> None:
        """It is this minute; of former ones, and former days, nothing counts any more."""
        if minute > self.minute:
            self.minute, self.in_minute = minute, Use()
        if minute // MINUTES_A_DAY > self.day:
            self.day, self.in_day = minute // MINUTES_A_DAY, Use()

    def entries(self) -> list[Paid]:
        """What adds up to it: of the latest minute, and of the rest of the latest day."""
        rest, found = self.in_day, []
        if self.minute // MINUTES_A_DAY == self.day:
            rest -= self.in_minute
            found.append(Paid(self.minute, *self.in_minute))
        if rest != Use():
            found.insert(0, Paid(self.day * MINUTES_A_DAY, *rest))
        return [each for each in found if each.tokens or each.usd]


class Reservation:
    """What is set aside for a question while it is asked."""

    def __init__(self) -> None:
        self.actual = Use()

    def took(self, use: Use) -> None:
        """An attempt has taken so much."""
        self.actual += use


class JudgeBudget:
    """The budget of a process: the whole of it, or a share.

    A question is asked only if all that was paid, and its estimate, fit every limit. What others have set aside meanwhile counts, too, but
    it is no reason to give up: most of it comes back, so a question waits for that, and others behind it, in the order of coming.

    Args:
        limits: The config's.
        clock: The time.
    """

    def __init__(self, limits: Budget, clock: Callable[[], datetime]) -> None:
        self._limits, self._clock = limits, clock
        self._spending, self._share = Spending(), Share()
        self._reserved, self._open = Use(), 0
        self._line = asyncio.Lock()
        self._returned = asyncio.Event()

    def record_spend(self, paid: Paid) -> None:
        """Count what was paid before this process, or (less than 0) what is somebody else's now."""
        self._spending.add(paid)

    def set_share(self, share: Share) -> None:
        """From now on so much of every limit is this process's."""
        self._share = share
        self._returned.set()  # who waits may fit now, or never

    @asynccontextmanager
    async def reserve(
        self, most: Use, paid: Callable[[Paid], object], waiting: AbstractAsyncContextManager[None] | None = None
    ) -> AsyncIterator[Reservation]:
        """Set aside what a question takes at most, for as long as the `async with` block lasts; then what it took is counted.

        Args:
            most: What it takes at most.
            paid: Told what it took, if it took anything.
            waiting: In which it waits for its turn.

        Raises:
            BudgetSpent: it does not fit any more.
        """
        self._check(most)
        async with waiting or nullcontext(), self._line:  # an answer wakes only the first in it, and not everybody
            while not self._fits(most + self._reserved):
                self._check(most)
                self._returned.clear()
                await self._returned.wait()
            self._reserved, self._open = self._reserved + most, self._open + 1
        reservation = Reservation()
        try:
            yield reservation
        finally:
            self._open -= 1
            # Sums of USD leave a rest, which nobody would give back.
            self._reserved = self._reserved - most if self._open else Use()
            if reservation.actual != Use():
                taken = Paid(self._minute(), *reservation.actual)
                self._spending.add(taken)
                paid(taken)
            self._returned.set()

    def _minute(self) -> int:
        return int(self._clock().timestamp() // 60)

    def _fits(self, use: Use) -> bool:
        return not any(spent + wanted > limit for _, limit, spent, wanted in self._windows(use))

    def _check(self, use: Use) -> None:
        for name, limit, spent, wanted in self._windows(use):
            if spent + wanted > limit:
                every, unit = name.split()
                begins = self._begins(every)
                left, share = max(0, limit - spent), self._share
                whose = f" of {share.partitions} of {share.of} partitions" if share.partitions < share.of else ""
                anew = f"the budget begins anew at {begins:%Y-%m-%d %H:%M} UTC"
                raise BudgetSpent(
                    f"{_amount(left, unit)} of the {_amount(limit, unit)} a {every}{whose} are left, and this question may take "
                    f"{_amount(wanted, unit)}; {anew if wanted <= limit else 'raise the budget, for it never fits'}"
                )

    def _windows(self, use: Use) -> Iterator[tuple[str, float, float, float]]:
        self._spending.at(self._minute())
        limits, spent = self._limits, self._spending
        for name, limit, taken, wanted in (
            ("day tokens", limits.tokens_per_day, spent.in_day.tokens, use.tokens),
            ("day usd", limits.usd_per_day, spent.in_day.usd, use.usd),
            ("minute tokens", limits.tokens_per_minute, spent.in_minute.tokens, use.tokens),
            ("minute usd", limits.usd_per_minute, spent.in_minute.usd, use.usd),
        ):
            if limit is not None:
                yield name, limit * self._share.partitions / self._share.of, taken, wanted

    def _begins(self, every: str) -> datetime:
        now = self._clock().astimezone(UTC)
        if every == "day":
            return now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        return now.replace(second=0, microsecond=0) + timedelta(minutes=1)


def _not_negative(use: Use) -> Use:
    return use - Use()


def _amount(value: float, unit: str) -> str:
    return f"{value:.4f} USD" if unit == "usd" else f"{value:.0f} tokens"
