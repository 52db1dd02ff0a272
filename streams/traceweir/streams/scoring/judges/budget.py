"""Limits the spending on judges: checked before each question, per UTC minute and UTC day."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from traceweir.schemas.judge_config import Budget, BudgetLimits
from traceweir.scorers.judge import BudgetSpent
from traceweir.streams.scoring.judges.models import Use

log = logging.getLogger(__name__)

MINUTES_A_DAY = 1_440
NEARLY_SPENT = 0.8
"""Part of a limit from which a warning is logged."""
_RESIDUE_USD = 1e-9
"""Float sums of USD leave a rounding residue below this amount."""


_ALL = "all"


ALL_JUDGES = ""
"""The account of all questions."""


class Paid(NamedTuple):
    """The tokens and USD paid within one minute; `minute` counts whole minutes since 1970."""

    minute: int
    tokens: int
    usd: float
    account: str = ALL_JUDGES
    """What they count for: all questions, or those of an app or a metric with limits, as `account_of` names them."""

    @property
    def taken_back(self) -> Paid:
        """The payment that undoes this one."""
        return self._replace(tokens=-self.tokens, usd=-self.usd)


class Share(NamedTuple):
    """The share of partitions that a worker owns: the worker can spend this fraction of every limit."""

    partitions: int = 1
    of: int = 1


class AccountSpending:
    """Sums the spending of an account, and that of the latest minute and of the latest day with a known payment."""

    def __init__(self, account: str = ALL_JUDGES) -> None:
        self.account = account
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
        return [each._replace(account=self.account) for each in found if each.tokens or each.usd]


class Spending:
    """Sums the spending of each account."""

    def __init__(self) -> None:
        self._accounts: dict[str, AccountSpending] = {}

    def add(self, paid: Paid) -> None:
        """Adds a payment to the sums of its account."""
        if (account := self._accounts.get(paid.account)) is None:
            account = self._accounts[paid.account] = AccountSpending(paid.account)
        account.add(paid)

    def entries(self) -> list[Paid]:
        """Returns payments that add up to the sums of all accounts."""
        return [paid for account in self._accounts.values() for paid in account.entries()]

    def entries_of(self, account: str) -> list[Paid]:
        """Returns payments that add up to the sums of one account."""
        return self._accounts[account].entries() if account in self._accounts else []


class Reservation:
    """The amount reserved for a question while the question is asked."""

    def __init__(self) -> None:
        self.actual = Use()

    def record_use(self, use: Use) -> None:
        """Adds the use of one attempt."""
        self.actual += use


class _Account:
    """The limits of an account, what it has spent, and the questions that wait for it.

    A question that does not fit because of reservations waits, and later questions wait behind it in arrival order
    (FIFO). Each account has a queue of its own, so that an app with a small budget holds up no other app.
    """

    def __init__(self, name: str, limits: BudgetLimits, clock: Callable[[], datetime]) -> None:
        self.limits = limits
        self.share = Share()
        self._name = name
        self._clock = clock
        self._spending = AccountSpending(name)
        self._reserved = Use()
        self._open = 0
        self._queue = asyncio.Lock()
        self._returned = asyncio.Event()
        self._warned: dict[str, int] = {}
        """By limit, the number of the minute or day for which a warning was logged."""

    def record_spend(self, paid: Paid) -> None:
        self._spending.add(paid)
        self._warn_if_nearly_spent()

    def set_share(self, share: Share) -> None:
        self.share = share
        # So that waiting questions are checked against the new share.
        self._returned.set()

    async def take(self, most: Use) -> None:
        """Reserves an amount, as soon as it fits; `give_back` ends the reservation.

        Raises:
            BudgetSpent: it does not fit the rest of the budget.
        """
        # A returned reservation wakes only the first waiter.
        async with self._queue:
            while not self._fits(most + self._reserved):
                self.check(most)
                self._returned.clear()
                await self._returned.wait()
            self._reserved = self._reserved + most
            self._open = self._open + 1

    def give_back(self, most: Use) -> None:
        self._open -= 1
        # Float sums of USD leave a rounding residue, which no reservation would return.
        self._reserved = self._reserved - most if self._open else Use()
        self._returned.set()

    def left(self) -> Iterator[tuple[str, float]]:
        """Yields each limit with what is left of it, from 0 to 1 of the share."""
        prefix = f"{self._name}." if self._name else ""
        for name, limit, spent, _ in self._windows(Use()):
            period, unit = name.split()
            shown = unit if period == _ALL else f"{unit}_per_{period}"
            yield f"{prefix}{shown}", max(0.0, 1 - spent / limit) if limit else 0.0

    def _warn_if_nearly_spent(self) -> None:
        """Logs each limit that is nearly spent, once per minute or day of the limit."""
        for name, limit, spent, _ in self._windows(Use()):
            period, unit = name.split()
            current = {"day": self._spending.day, "minute": self._spending.minute}.get(period, 0)
            if spent < NEARLY_SPENT * limit or self._warned.get(name) == current:
                continue
            self._warned[name] = current
            log.warning(
                "%s of the %s %s%s of the judges' budget are spent; when it is spent, judged scores are NOT_EVALUATED budget: "
                "raise %s, or sample fewer sessions",
                _amount(spent, unit),
                _amount(limit, unit),
                _per(period),
                self._for_whom,
                self._place,
            )

    def check(self, use: Use) -> None:
        """Raises `BudgetSpent` if an amount does not fit what is left without reservations."""
        for name, limit, spent, wanted in self._windows(use):
            if spent + wanted > limit:
                period, unit = name.split()
                left = max(0, limit - spent)
                share = self.share
                share_text = (
                    f" (share of {share.partitions} of {share.of} partitions)" if share.partitions < share.of else ""
                )
                if period == _ALL:
                    reset_text = "this budget does not reset"
                else:
                    reset_text = f"the budget resets at {self._next_reset(period):%Y-%m-%d %H:%M} UTC"
                too_large = f"the question exceeds the whole limit: raise {self._place if self._name else 'the budget'}"
                raise BudgetSpent(
                    f"{_amount(left, unit)} of the {_amount(limit, unit)} {_per(period)}{self._for_whom}{share_text} are left, "
                    f"and this question can use {_amount(wanted, unit)}; {reset_text if wanted <= limit else too_large}"
                )

    @property
    def _place(self) -> str:
        """Where the config has the limits."""
        return f"judge.budget.{self._name}" if self._name else "judge.budget"

    @property
    def _for_whom(self) -> str:
        kind, _, name = self._name.partition(".")
        return f" for the {kind.removesuffix('s')} {name}" if name else ""

    def _fits(self, use: Use) -> bool:
        return not any(spent + wanted > limit for _, limit, spent, wanted in self._windows(use))

    def _windows(self, use: Use) -> Iterator[tuple[str, float, float, float]]:
        self._spending.advance_to(_minute(self._clock()))
        limits = self.limits
        spent = self._spending
        for name, limit, used, wanted in (
            (f"{_ALL} usd", limits.usd, spent.in_all.usd, use.usd),
            ("day tokens", limits.tokens_per_day, spent.in_day.tokens, use.tokens),
            ("day usd", limits.usd_per_day, spent.in_day.usd, use.usd),
            ("minute tokens", limits.tokens_per_minute, spent.in_minute.tokens, use.tokens),
            ("minute usd", limits.usd_per_minute, spent.in_minute.usd, use.usd),
        ):
            if limit is not None:
                yield name, limit * self.share.partitions / self.share.of, used, wanted

    def _next_reset(self, period: str) -> datetime:
        now = self._clock().astimezone(UTC)
        if period == "day":
            return now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        return now.replace(second=0, microsecond=0) + timedelta(minutes=1)


class JudgeBudget:
    """The budget of a process: the whole budget, or a share.

    A question is asked only if the amount paid so far plus the question's estimate fit every limit: those of its app, of
    its metric and of all questions. Amounts that other questions have reserved count as well, but most of a reservation
    is returned, so a question that does not fit because of reservations waits.

    Args:
        limits: The limits of the config.
        clock: Returns the current time.
    """

    def __init__(self, limits: Budget, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        named = {
            **{account_of("apps", name): each for name, each in limits.apps.items()},
            **{account_of("metrics", name): each for name, each in limits.metrics.items()},
            ALL_JUDGES: limits,
        }
        self._accounts = {name: _Account(name, each, clock) for name, each in named.items()}

    def record_spend(self, paid: Paid) -> None:
        """Adds spending from before this process; negative when a partition has moved to another worker.

        Spending of an account without limits here is ignored.
        """
        if paid.account in self._accounts:
            self._accounts[paid.account].record_spend(paid)

    def set_share(self, share: Share) -> None:
        """Sets the share of every limit that belongs to this process."""
        for account in self._accounts.values():
            account.set_share(share)

    @asynccontextmanager
    async def reserve(
        self,
        most: Use,
        paid: Callable[[Paid], object],
        waiting: AbstractAsyncContextManager[None] | None = None,
        accounts: Collection[str] = (),
    ) -> AsyncIterator[Reservation]:
        """Reserves the most that a question can use while the `async with` block runs; records the actual use at its end.

        Args:
            most: The most that the question can use.
            paid: Called with the actual use, for each account, unless it is zero.
            waiting: Context in which the question waits in the queue.
            accounts: What `account_of` returns for the question; those without limits are ignored.

        Raises:
            BudgetSpent: the question does not fit the rest of the budget.
        """
        charged = self._charged(accounts)
        for account in charged.values():
            account.check(most)
        async with AsyncExitStack() as reserved:
            async with waiting or nullcontext():
                # In the order of the config, so that no two questions wait for each other.
                for account in charged.values():
                    await account.take(most)
                    reserved.callback(account.give_back, most)
            reservation = Reservation()
            try:
                yield reservation
            finally:
                if reservation.actual != Use():
                    for name, account in charged.items():
                        spend = Paid(_minute(self._clock()), *reservation.actual, name)
                        account.record_spend(spend)
                        paid(spend)

    def check_price(self, model: str, accounts: Collection[str] = ()) -> None:
        """Checks that no limit in USD has to hold for a model without a price.

        Raises:
            BudgetSpent: there is such a limit.
        """
        for account, each in self._charged(accounts).items():
            named = [
                name for name in ("usd_per_minute", "usd_per_day", "usd") if getattr(each.limits, name) is not None
            ]
            if named:
                place = f"budget.{account}.{named[0]}" if account else f"budget.{named[0]}"
                raise BudgetSpent(
                    f"the price of {model} is unknown, so {place} cannot limit it: set its price in judge.prices, or "
                    "judge.budget.unknown_price to count_tokens"
                )

    def left(self) -> dict[str, float]:
        """Returns what is left of each limit, from 0 to 1 of this process's share.

        >>> budget = JudgeBudget(Budget(usd_per_day=2.0, apps={"rail": BudgetLimits(usd=1.0)}), lambda: datetime.fromtimestamp(600, UTC))
        >>> budget.record_spend(Paid(10, 100, 0.5))
        >>> budget.left()
        {'apps.rail.usd': 1.0, 'usd_per_day': 0.75}
        """
        return {name: left for account in self._accounts.values() for name, left in account.left()}

    def _charged(self, accounts: Collection[str]) -> dict[str, _Account]:
        return {name: each for name, each in self._accounts.items() if name in accounts or name == ALL_JUDGES}


def account_of(kind: Literal["apps", "metrics"], name: str) -> str:
    """Returns the account of an app or a metric, which is also the place of its limits below `judge.budget`.

    >>> account_of("apps", "rail")
    'apps.rail'
    """
    return f"{kind}.{name}"


def _minute(now: datetime) -> int:
    return int(now.timestamp() // 60)


def _per(period: str) -> str:
    return "in all" if period == _ALL else f"per {period}"


def _not_negative(use: Use) -> Use:
    return use - Use()


def _amount(value: float, unit: str) -> str:
    return f"{value:.4f} USD" if unit == "usd" else f"{value:.0f} tokens"
