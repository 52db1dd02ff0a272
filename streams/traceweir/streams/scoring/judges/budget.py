"""Limits the spending on judges: checked before each question, per UTC minute and UTC day."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from traceweir.schemas.judge_config import Budget
from traceweir.scorers.judge import BudgetSpent
from traceweir.streams.scoring.judges.models import Use

log = logging.getLogger(__name__)

MINUTES_A_DAY = 1_440
NEARLY_SPENT = 0.8
"""Part of a limit from which a warning is logged."""
_RESIDUE_USD = 1e-9
"""Float sums of USD leave a rounding residue below this amount."""


_ALL = "all"


class Paid(NamedTuple):
    """The tokens and USD paid within one minute; `minute` counts whole minutes since 1970."""

    minute: int
    tokens: int
    usd: float


class Share(NamedTuple):
    """The share of partitions that a worker owns: the worker can spend this fraction of every limit."""

    partitions: int = 1
    of: int = 1


class Spending:
    """Sums all spending, and that of the latest minute and of the latest day for which a payment is known."""

    def __init__(self) -> None:
        self.in_all = Use()
        self.minute = 0
        self.in_minute = Use()
        self.day = 0
        self.in_day = Use()

    def add(self, paid: Paid) -> None:
        """Adds a payment to the sums of its minute and its day; a payment of an earlier minute or day is ignored there."""
        use = Use(paid.tokens, paid.usd)
        self.in_all = _not_negative(self.in_all + use)
        self.advance_to(paid.minute)
        if paid.minute == self.minute:
            self.in_minute = _not_negative(self.in_minute + use)
        if paid.minute // MINUTES_A_DAY == self.day:
            self.in_day = _not_negative(self.in_day + use)

    def advance_to(self, minute: int) -> None:
        """Advances to this minute; the sums of earlier minutes and days are dropped."""
        if minute > self.minute:
            self.minute = minute
            self.in_minute = Use()
        if minute // MINUTES_A_DAY > self.day:
            self.day = minute // MINUTES_A_DAY
            self.in_day = Use()

    def entries(self) -> list[Paid]:
        """Returns payments that add up to the sums: of earlier days, of the rest of the latest day, of the latest minute."""
        rest = self.in_day
        found = []
        if self.minute // MINUTES_A_DAY == self.day:
            rest -= self.in_minute
            found.append(Paid(self.minute, *self.in_minute))
        if rest != Use():
            found.insert(0, Paid(self.day * MINUTES_A_DAY, *rest))
        earlier = self.in_all - self.in_day
        if earlier.tokens or earlier.usd > _RESIDUE_USD:
            found.insert(0, Paid(0, *earlier))
        return [each for each in found if each.tokens or each.usd]


class Reservation:
    """The amount reserved for a question while the question is asked."""

    def __init__(self) -> None:
        self.actual = Use()

    def record_use(self, use: Use) -> None:
        """Adds the use of one attempt."""
        self.actual += use


class JudgeBudget:
    """The budget of a process: the whole budget, or a share.

    A question is asked only if the amount paid so far plus the question's estimate fit every limit. Amounts that other
    questions have reserved count as well, but most of a reservation is returned: a question that does not fit because
    of reservations waits, and later questions wait behind it in arrival order (FIFO).

    Args:
        limits: The limits of the config.
        clock: Returns the current time.
    """

    def __init__(self, limits: Budget, clock: Callable[[], datetime]) -> None:
        self._limits = limits
        self._clock = clock
        self._spending = Spending()
        self._share = Share()
        self._reserved = Use()
        self._open = 0
        self._queue = asyncio.Lock()
        self._returned = asyncio.Event()
        self._warned: dict[str, int] = {}
        """By limit, the number of the minute or day for which a warning was logged."""

    def record_spend(self, paid: Paid) -> None:
        """Adds spending from before this process; negative when a partition has moved to another worker."""
        self._spending.add(paid)
        self._warn_if_nearly_spent()

    def set_share(self, share: Share) -> None:
        """Sets the share of every limit that belongs to this process."""
        self._share = share
        # So that waiting questions are checked against the new share.
        self._returned.set()

    @asynccontextmanager
    async def reserve(
        self, most: Use, paid: Callable[[Paid], object], waiting: AbstractAsyncContextManager[None] | None = None
    ) -> AsyncIterator[Reservation]:
        """Reserves the most that a question can use while the `async with` block runs; records the actual use at its end.

        Args:
            most: The most that the question can use.
            paid: Called with the actual use, unless it is zero.
            waiting: Context in which the question waits in the queue.

        Raises:
            BudgetSpent: the question does not fit the rest of the budget.
        """
        self._check(most)
        # A returned reservation wakes only the first waiter.
        async with waiting or nullcontext(), self._queue:
            while not self._fits(most + self._reserved):
                self._check(most)
                self._returned.clear()
                await self._returned.wait()
            self._reserved = self._reserved + most
            self._open = self._open + 1
        reservation = Reservation()
        try:
            yield reservation
        finally:
            self._open -= 1
            # Float sums of USD leave a rounding residue, which no reservation would return.
            self._reserved = self._reserved - most if self._open else Use()
            if reservation.actual != Use():
                spend = Paid(self._minute(), *reservation.actual)
                self._spending.add(spend)
                self._warn_if_nearly_spent()
                paid(spend)
            self._returned.set()

    def check_price(self, model: str) -> None:
        """Checks that no limit in USD has to hold for a model without a price.

        Raises:
            BudgetSpent: there is such a limit.
        """
        named = [name for name in ("usd_per_minute", "usd_per_day", "usd") if getattr(self._limits, name) is not None]
        if named:
            raise BudgetSpent(
                f"the price of {model} is unknown, so budget.{named[0]} cannot limit it: set its price in judge.prices, or "
                "judge.budget.unknown_price to count_tokens"
            )

    def left(self) -> dict[str, float]:
        """Returns what is left of each limit, from 0 to 1 of this process's share.

        >>> budget = JudgeBudget(Budget(usd_per_day=2.0), lambda: datetime.fromtimestamp(600, UTC))
        >>> budget.record_spend(Paid(10, 100, 0.5))
        >>> budget.left()
        {'usd_per_day': 0.75}
        """
        found = {}
        for name, limit, spent, _ in self._windows(Use()):
            period, unit = name.split()
            found[unit if period == _ALL else f"{unit}_per_{period}"] = max(0.0, 1 - spent / limit) if limit else 0.0
        return found

    def _warn_if_nearly_spent(self) -> None:
        """Logs each limit that is nearly spent, once per minute or day of the limit."""
        for name, limit, spent, _ in self._windows(Use()):
            period, unit = name.split()
            current = {"day": self._spending.day, "minute": self._spending.minute}.get(period, 0)
            if spent < NEARLY_SPENT * limit or self._warned.get(name) == current:
                continue
            self._warned[name] = current
            per = "in all" if period == _ALL else f"per {period}"
            log.warning(
                "%s of the %s %s of the judges' budget are spent; when it is spent, judged scores are NOT_EVALUATED budget: "
                "raise judge.budget, or sample fewer sessions",
                _amount(spent, unit),
                _amount(limit, unit),
                per,
            )

    def _minute(self) -> int:
        return int(self._clock().timestamp() // 60)

    def _fits(self, use: Use) -> bool:
        return not any(spent + wanted > limit for _, limit, spent, wanted in self._windows(use))

    def _check(self, use: Use) -> None:
        for name, limit, spent, wanted in self._windows(use):
            if spent + wanted > limit:
                period, unit = name.split()
                left = max(0, limit - spent)
                share = self._share
                share_text = (
                    f" (share of {share.partitions} of {share.of} partitions)" if share.partitions < share.of else ""
                )
                if period == _ALL:
                    reset_text = "this budget does not reset"
                    per = "in all"
                else:
                    reset_text = f"the budget resets at {self._next_reset(period):%Y-%m-%d %H:%M} UTC"
                    per = f"per {period}"
                raise BudgetSpent(
                    f"{_amount(left, unit)} of the {_amount(limit, unit)} {per}{share_text} are left, and this question "
                    f"can use {_amount(wanted, unit)}; "
                    f"{reset_text if wanted <= limit else 'the question exceeds the whole limit: raise the budget'}"
                )

    def _windows(self, use: Use) -> Iterator[tuple[str, float, float, float]]:
        self._spending.advance_to(self._minute())
        limits = self._limits
        spent = self._spending
        for name, limit, used, wanted in (
            (f"{_ALL} usd", limits.usd, spent.in_all.usd, use.usd),
            ("day tokens", limits.tokens_per_day, spent.in_day.tokens, use.tokens),
            ("day usd", limits.usd_per_day, spent.in_day.usd, use.usd),
            ("minute tokens", limits.tokens_per_minute, spent.in_minute.tokens, use.tokens),
            ("minute usd", limits.usd_per_minute, spent.in_minute.usd, use.usd),
        ):
            if limit is not None:
                yield name, limit * self._share.partitions / self._share.of, used, wanted

    def _next_reset(self, period: str) -> datetime:
        now = self._clock().astimezone(UTC)
        if period == "day":
            return now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        return now.replace(second=0, microsecond=0) + timedelta(minutes=1)


def _not_negative(use: Use) -> Use:
    return use - Use()


def _amount(value: float, unit: str) -> str:
    return f"{value:.4f} USD" if unit == "usd" else f"{value:.0f} tokens"
