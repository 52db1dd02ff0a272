"""Questions wait in a FIFO queue for budget that other questions have reserved but not spent."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime

import pytest
from tests.support.judged import Clock

from traceweir.schemas.judge_config import Budget
from traceweir.scorers.judge import BudgetSpent
from traceweir.streams.scoring.judges.budget import JudgeBudget, Paid, Share
from traceweir.streams.scoring.judges.models import Use

A_DAY = 100


class Asking:
    """Questions that reserve tokens of one budget and end when a test calls `end`."""

    def __init__(self, clock: Clock) -> None:
        self.budget = JudgeBudget(Budget(tokens_per_day=A_DAY), clock)
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}

    def ask(self, name: str, tokens: int, takes: int = 0) -> asyncio.Task[None]:
        """Starts a question that reserves `tokens` and then uses `takes`."""
        self._ends[name] = asyncio.Event()
        return asyncio.create_task(self._ask(name, tokens, takes))

    def end(self, name: str) -> None:
        """Ends this question, as an answer of the model does."""
        self._ends[name].set()

    async def _ask(self, name: str, tokens: int, takes: int) -> None:
        async with self.budget.reserve(Use(tokens), lambda paid: None) as reservation:
            self.begun.append(name)
            await self._ends[name].wait()
            reservation.record_use(Use(takes))


async def settled() -> None:
    """Lets every task run until it blocks; no task in these tests waits for a clock or a socket."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def asking() -> Asking:
    return Asking(Clock())


async def test_a_large_question_is_not_overtaken_by_small_ones_that_fit(asking: Asking) -> None:
    asked = [asking.ask(name, tokens) for name, tokens in (("a", 60), ("large", 90), ("b", 10), ("c", 10))]
    await settled()
    assert asking.begun == ["a"]
    for name in ("a", "large", "b", "c"):
        asking.end(name)
    await asyncio.gather(*asked)
    assert asking.begun == ["a", "large", "b", "c"]


async def test_all_questions_that_fit_start_when_a_reservation_returns(asking: Asking) -> None:
    asked = [asking.ask(name, tokens) for name, tokens in (("a", 100), ("b", 50), ("c", 50), ("d", 50))]
    await settled()
    asking.end("a")
    await settled()
    assert asking.begun == ["a", "b", "c"]
    for name in "bcd":
        asking.end(name)
    await asyncio.gather(*asked)


async def test_a_cancelled_waiter_lets_the_next_question_start(asking: Asking) -> None:
    running, large, small = asking.ask("a", 60), asking.ask("large", 90), asking.ask("small", 10)
    await settled()
    large.cancel()
    await settled()
    assert asking.begun == ["a", "small"]
    asking.end("a")
    asking.end("small")
    await asyncio.gather(running, small)


async def test_a_refused_waiter_lets_the_next_question_start(asking: Asking) -> None:
    running, large, small = asking.ask("a", 60, takes=60), asking.ask("large", 90), asking.ask("small", 10)
    await settled()
    asking.end("a")
    with pytest.raises(BudgetSpent):
        await large
    asking.end("small")
    await asyncio.gather(running, small)


async def test_spent_budget_refuses_a_question_before_it_queues(asking: Asking) -> None:
    paid = asking.ask("paid", 50, takes=50)
    asking.end("paid")
    await paid
    running, waiting = asking.ask("a", 40), asking.ask("b", 40)
    await settled()
    with pytest.raises(BudgetSpent):
        await asking.ask("too much", 60)
    assert asking.begun == ["paid", "a"]
    asking.end("a")
    asking.end("b")
    await asyncio.gather(running, waiting)


async def test_a_returned_reservation_wakes_only_the_first_waiter() -> None:
    looked = 0

    class Counted(Clock):
        def __call__(self) -> datetime:
            nonlocal looked
            looked += 1
            return super().__call__()

    many = 500
    asking = Asking(Counted())
    asked = [asking.ask(str(number), A_DAY) for number in range(many)]
    for number in range(many):
        await settled()
        asking.end(str(number))
    await asyncio.gather(*asked)
    assert looked < 10 * many  # each question reads the clock a few times, independent of the number of waiters


async def test_rounding_residue_of_usd_sums_blocks_no_question() -> None:
    budget = JudgeBudget(Budget(usd_per_day=0.3), Clock())
    first, second = Use(1, 0.018), Use(1, 0.3 * 78 / 100)
    assert first.usd + second.usd - first.usd - second.usd > 0
    async with AsyncExitStack() as held:
        for use in (second, first):  # the context entered last ends first
            await held.enter_async_context(budget.reserve(use, lambda paid: None))
    async with asyncio.timeout(20), budget.reserve(Use(1, 0.3), lambda paid: None):
        pass


async def test_a_share_bounds_every_limit_and_is_named(asking: Asking) -> None:
    asking.budget.set_share(Share(1, 4))
    with pytest.raises(
        BudgetSpent, match=r"^25 tokens of the 25 tokens per day \(share of 1 of 4 partitions\) are left"
    ):
        await asking.ask("too much", 26)
    paid = asking.ask("fits", 25, takes=25)
    asking.end("fits")
    await paid
    asking.budget.set_share(Share(4, 4))
    with pytest.raises(BudgetSpent, match=r"^75 tokens of the 100 tokens per day are left"):
        await asking.ask("too much", 76)


async def test_a_new_share_applies_to_waiting_questions(asking: Asking) -> None:
    asking.budget.set_share(Share(2, 4))
    running, waiting = asking.ask("a", 30), asking.ask("b", 30)
    await settled()
    asking.budget.set_share(Share(4, 4))
    await settled()
    assert asking.begun == ["a", "b"]
    refused = asking.ask("c", 50)
    await settled()
    asking.budget.set_share(Share(1, 4))
    with pytest.raises(BudgetSpent):
        await refused
    asking.end("a")
    asking.end("b")
    await asyncio.gather(running, waiting)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage().partition(" of the judges'")[0] for each in caplog.records]


def test_a_limit_that_is_nearly_spent_is_logged_once_per_period(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    budget = JudgeBudget(Budget(tokens_per_day=100, usd=10), clock)
    minute = int(clock().timestamp() // 60)

    budget.record_spend(Paid(minute, 79, 7.9))
    assert warnings_of(caplog) == []

    budget.record_spend(Paid(minute, 1, 0.2))
    budget.record_spend(Paid(minute, 5, 0.2))
    assert warnings_of(caplog) == [
        "8.1000 USD of the 10.0000 USD in all",
        "80 tokens of the 100 tokens per day",
    ]

    clock.go(days=1)
    budget.record_spend(Paid(minute + 1_440, 90, 0.1))
    assert warnings_of(caplog)[2:] == ["90 tokens of the 100 tokens per day"]


LIMITED = Budget.model_validate(
    {"tokens_per_day": 1_000, "apps": {"rail": {"tokens_per_day": 100}}, "metrics": {"safety_v1": {"usd": 1.0}}}
)


async def spend(budget: JudgeBudget, use: Use, *accounts: str) -> list[Paid]:
    """Lets a question use what it has reserved; returns what was paid."""
    paid: list[Paid] = []
    async with budget.reserve(use, paid.append, accounts=accounts) as reservation:
        reservation.record_use(use)
    return paid


@pytest.mark.parametrize(
    ("use", "accounts", "message"),
    [
        (
            Use(61, 0.0),
            ["apps.rail"],
            (
                "60 tokens of the 100 tokens per day for the app rail are left, and this question can use 61 tokens; the budget "
                "resets at"
            ),
        ),
        (
            Use(101, 0.0),
            ["apps.rail"],
            (
                "60 tokens of the 100 tokens per day for the app rail are left, and this question can use 101 tokens; the question "
                "exceeds the whole limit: raise judge.budget.apps.rail"
            ),
        ),
        (
            Use(1, 0.75),
            ["apps.other", "metrics.safety_v1"],
            (
                "0.5000 USD of the 1.0000 USD in all for the metric safety_v1 are left, and this question can use 0.7500 USD; this "
                "budget does not reset"
            ),
        ),
        (Use(961, 0.0), ["apps.other"], "960 tokens of the 1000 tokens per day are left"),
    ],
)
async def test_a_question_has_to_fit_the_limits_of_its_app_and_metric_and_the_message_names_which(
    use: Use, accounts: list[str], message: str
) -> None:
    budget = JudgeBudget(LIMITED, Clock())
    await spend(budget, Use(40, 0.5), "apps.rail", "metrics.safety_v1")

    with pytest.raises(BudgetSpent) as refused:
        await spend(budget, use, *accounts)

    assert str(refused.value).startswith(message)


async def test_an_app_whose_budget_is_spent_leaves_the_other_apps_theirs() -> None:
    budget = JudgeBudget(LIMITED, Clock())
    paid = await spend(budget, Use(100, 0.0), "apps.rail")

    assert {(each.account, each.tokens) for each in paid} == {("apps.rail", 100), ("", 100)}
    assert await spend(budget, Use(500, 0.0), "apps.other")
    assert budget.left() == {"apps.rail.tokens_per_day": 0.0, "metrics.safety_v1.usd": 1.0, "tokens_per_day": 0.4}


async def test_payments_of_accounts_are_counted_where_they_are_limited_and_moved() -> None:
    budget = JudgeBudget(LIMITED, Clock())
    minute = int(Clock()().timestamp() // 60)
    for paid in (Paid(minute, 30, 0.0, "apps.rail"), Paid(minute, 30, 0.0), Paid(minute, 9, 0.0, "apps.unlimited")):
        budget.record_spend(paid)
    assert (budget.left()["apps.rail.tokens_per_day"], budget.left()["tokens_per_day"]) == (0.7, 0.97)

    budget.record_spend(Paid(minute, 30, 0.0, "apps.rail").taken_back)
    assert (budget.left()["apps.rail.tokens_per_day"], budget.left()["tokens_per_day"]) == (1.0, 0.97)


async def test_questions_of_an_app_that_wait_for_its_budget_hold_up_no_other_app() -> None:
    budget = JudgeBudget(LIMITED, Clock())
    async with AsyncExitStack() as asked, asyncio.timeout(10):
        await asked.enter_async_context(budget.reserve(Use(90), lambda paid: None, accounts=["apps.rail"]))
        waiting = asyncio.create_task(spend(budget, Use(90), "apps.rail"))
        await settled()

        assert await spend(budget, Use(90), "apps.other")
        assert not waiting.done()
    assert await waiting


def test_a_limit_of_an_app_that_is_nearly_spent_is_logged_with_the_app(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    budget = JudgeBudget(LIMITED, clock)

    budget.record_spend(Paid(int(clock().timestamp() // 60), 80, 0.0, "apps.rail"))

    assert warnings_of(caplog) == ["80 tokens of the 100 tokens per day for the app rail"]
    assert "raise judge.budget.apps.rail" in caplog.text


def test_a_model_without_a_price_is_refused_where_the_limit_of_its_metric_is_in_usd() -> None:
    budget = JudgeBudget(LIMITED, Clock())

    budget.check_price("m", ["metrics.hallucinations_v1"])
    with pytest.raises(BudgetSpent, match=r"so budget.metrics.safety_v1.usd cannot limit it"):
        budget.check_price("m", ["metrics.safety_v1"])
