"""Runs a vote: asks a judge the same question several times, because its replies can differ, and counts the replies.

The rules are those of Google ADK 2.13. A reply votes yes, no or neither on each item. An item's verdict is yes if it
has more yes votes than no votes, else no; a tie is no. Neither votes do not count, and an item with neither votes only
has no verdict. If a question fails, the vote fails.

The vote requests replies in waves. A wave contains only replies that are needed in any case to decide every item. The
vote therefore ends as soon as further replies cannot change a verdict, and its verdicts equal those of a full vote.
The number of requested replies depends on the content of the replies only, never on the order of their arrival.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.figures import counted
from traceweir.schemas.score import Cost
from traceweir.schemas.text import printable
from traceweir.scorers.base import Measurement
from traceweir.scorers.judge import AnswerUnusable, Reply
from traceweir.scorers.judged.base import JudgeModelOptions
from traceweir.scorers.judged.copied_reasons import is_copied
from traceweir.scorers.judged.fitting import FittedPrompt

SHOWN_CHARACTERS = 1_000
MAX_NAMED_ITEMS = 5
"""Maximum number of items without a verdict that an error names."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Vote:
    """Holds the vote of one reply on one item; `verdict` is None for a vote that does not count."""

    verdict: bool | None
    rationale: str = ""
    is_copied: bool = field(default=False, repr=False)
    """Whether the rationale is copied from the prompt, so that the vote does not count."""
    category: str = field(default="", repr=False)
    """The category that the reply names, of an answer in categories; several can be the same verdict."""
    turns: Sequence[str] = field(default=(), repr=False)
    """The numbers of the turns on which the verdict rests, as the reply names them."""


@dataclass(slots=True)
class Tally:
    """Counts the votes on one item."""

    votes: list[Vote] = field(default_factory=list)

    @property
    def yes(self) -> int:
        """Number of yes votes."""
        return sum(vote.verdict is True for vote in self.votes)

    @property
    def no(self) -> int:
        """Number of no votes."""
        return sum(vote.verdict is False for vote in self.votes)

    @property
    def verdict(self) -> bool | None:
        """Whether the item has more yes votes than no votes; None if no vote counts."""
        return self.yes > self.no if self.yes or self.no else None

    @property
    def deciding(self) -> Vote | None:
        """The first vote that agrees with the verdict, and among these with the most frequent category; None if there is none."""
        agreeing = [vote for vote in self.votes if vote.verdict is self.verdict]
        if not agreeing:
            return None
        [(category, _)] = Counter(vote.category for vote in agreeing).most_common(1)
        return next(vote for vote in agreeing if vote.category == category)

    @property
    def rationale(self) -> str:
        """The rationale of the deciding vote; empty if there is none."""
        return self.deciding.rationale if self.deciding is not None else ""

    @property
    def spread(self) -> float | None:
        """Share of the counted votes against the verdict: 0 if all agree, 0.5 for a tie; None without a verdict."""
        against = self.no if self.verdict else self.yes
        return against / (self.yes + self.no) if self.verdict is not None else None

    def needed(self, left: int) -> int:
        """Returns the minimum number of further votes after which the verdict can be certain; 0 if it is certain.

        Args:
            left: Number of replies that the vote can still request.
        """
        lead = self.yes - self.no
        if lead > left:
            return 0
        for_yes = (left - lead) // 2 + 1
        for_no = -(-(left + lead) // 2)
        return max(0, min(left, for_yes, for_no))

    def details(self) -> JsonObject:
        """Returns the verdict as a number, the votes, their spread, and the rationale."""
        votes: JsonValue = {"yes": self.yes, "no": self.no, "neither": len(self.votes) - self.yes - self.no}
        return {
            "value": None if self.verdict is None else float(self.verdict),
            "votes": votes,
            "spread": self.spread,
            "rationale": printable(self.rationale, SHOWN_CHARACTERS),
        }


@dataclass(frozen=True, slots=True)
class Poll:
    """Holds the result of a vote."""

    tallies: Mapping[str, Tally]
    """The tally of every item, in the order of the items."""
    replies: Sequence[Reply]
    unusable: int
    """Number of replies without a verdict on any item."""
    samples: int
    """Maximum number of replies (`num_samples`)."""

    @property
    def cost(self) -> Cost:
        """The total cost of the replies."""
        return total_cost(reply.cost for reply in self.replies)

    def details(self) -> JsonObject:
        """Returns the number of replies, the maximum number, and the number of replies without a verdict."""
        return {"replies": len(self.replies), "num_samples": self.samples, "unusable": self.unusable}

    def check(self, *, every: bool = False) -> None:
        """Checks that at least one reply contains a verdict; with `every`, that there is one on every item.

        Raises:
            AnswerUnusable: no reply contains a verdict, or none on one of the items.
        """
        if self.unusable == len(self.replies):
            raise self.without_verdict()
        missing = [item for item, tally in self.tallies.items() if tally.verdict is None]
        if every and missing:
            named = ", ".join(printable(item, 60) for item in missing[:MAX_NAMED_ITEMS])
            named += ", ..." if len(missing) > MAX_NAMED_ITEMS else ""
            raise AnswerUnusable(
                f"no verdict on {len(missing)} of {len(self.tallies)} items in "
                f"{counted(len(self.replies), 'reply', 'replies')}: {named}",
                self.cost,
            )

    def without_verdict(self) -> AnswerUnusable:
        """Returns the error for a vote in which no reply contains a verdict."""
        first = printable(self.replies[0].text, 200)
        return AnswerUnusable(
            f"none of {len(self.replies)} replies contains a verdict; the first: {first!r}", self.cost
        )


@dataclass(frozen=True, slots=True)
class Ballot:
    """What a vote asks for, and what counts as an answer."""

    items: Sequence[str]
    """The items of the vote; at least one."""
    read: Callable[[str], Mapping[str, Vote]]
    """Returns the votes in a reply's text, by item."""
    template: str
    """The name of the prompt's template. A vote whose reason is copied from it does not count."""
    needs_every_item: bool = True
    """Whether a reply without a verdict on one of the items is to be asked for again."""
    neither: bool = False
    """Whether a vote without a verdict can be what the judge answers: `unknown`."""

    def votes(self, reply: str) -> dict[str, Vote]:
        """Returns the votes of a reply by item; one with a copied reason has no verdict."""
        return {
            item: Vote(None, each.rationale, is_copied=True) if is_copied(each.rationale, self.template) else each
            for item, each in self.read(reply).items()
        }

    def problem(self, reply: str) -> str | None:
        """Returns what a reply lacks, as `Question.problem` does."""
        votes = self.votes(reply)
        missing = [item for item in self.items if not self._is_answered(votes.get(item))]
        if not missing or (len(missing) < len(self.items) and not self.needs_every_item):
            return None
        if any(vote.is_copied for vote in votes.values()):
            return "its reason is copied from this message"
        if len(missing) == len(self.items):
            return "it contains no verdict that can be read"
        return f"it has no verdict on {len(missing)} of {len(self.items)} entries"

    def _is_answered(self, vote: Vote | None) -> bool:
        return vote is not None and not vote.is_copied and (vote.verdict is not None or self.neither)


async def vote(
    ask: Callable[[int], Awaitable[Reply]],
    ballot: Ballot,
    options: JudgeModelOptions,
) -> Poll:
    """Asks until every item is decided, or until the number of replies reaches `options.num_samples`.

    Args:
        ask: Requests the reply with a given number, from 0.
        ballot: What the vote asks for.
        options: The maximum number of replies, and the number of questions in flight.

    Raises:
        BudgetSpent: the budget does not allow a question. If several questions of a wave fail, the first error is
            raised.
        JudgeFailed: the judge did not answer a question.
    """
    tallies = {item: Tally() for item in ballot.items}
    replies: list[Reply] = []
    unusable = 0
    while left := options.num_samples - len(replies):
        wave = min(max(tally.needed(left) for tally in tallies.values()), options.parallelism_limit)
        if not wave:
            break
        numbers = range(len(replies), len(replies) + wave)
        for reply in raise_first(await gather_all([ask(number) for number in numbers])):
            replies.append(reply)
            unusable += _count(reply, ballot, tallies)
    return Poll(tallies, replies, unusable, options.num_samples)


def counted_votes(replies: Sequence[Reply], ballot: Ballot, options: JudgeModelOptions) -> Poll:
    """Returns the result of a vote whose replies are all there."""
    tallies = {item: Tally() for item in ballot.items}
    unusable = sum(map(partial(_count, ballot=ballot, tallies=tallies), replies))
    return Poll(tallies, replies, unusable, options.num_samples)


def _count(reply: Reply, ballot: Ballot, tallies: Mapping[str, Tally]) -> bool:
    """Adds the votes of a reply to the tallies, and returns whether none of them has a verdict."""
    votes = ballot.votes(reply.text)
    for item, tally in tallies.items():
        if item in votes:
            tally.votes.append(votes[item])
    return all(vote.verdict is None for vote in votes.values())


async def gather_all(awaitables: Sequence[Awaitable[T]]) -> list[T | BaseException]:
    """Awaits all awaitables concurrently and returns their results and exceptions, so that none is still running."""
    return await asyncio.gather(*awaitables, return_exceptions=True)


def raise_first(outcomes: Iterable[T | BaseException]) -> list[T]:
    """Returns the outcomes, or raises the first exception among them."""
    found: list[T] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        found.append(outcome)
    return found


def total_cost(costs: Iterable[Cost]) -> Cost:
    """Returns the sum of costs; `cached` is true if there is at least one cost and all costs are cached."""
    listed = list(costs)
    return Cost(
        input_tokens=sum(cost.input_tokens for cost in listed),
        output_tokens=sum(cost.output_tokens for cost in listed),
        usd=sum(cost.usd for cost in listed),
        cached=bool(listed) and all(cost.cached for cost in listed),
        cached_input_tokens=sum(cost.cached_input_tokens for cost in listed),
        reasoning_tokens=sum(cost.reasoning_tokens for cost in listed),
    )


def verdict_measurement(poll: Poll, item: str, adjective: str, fitted: FittedPrompt) -> Measurement:
    """Returns 1 if the verdict on the only item of a vote is yes, else 0, with the votes in `details`.

    Raises:
        AnswerUnusable: there is no verdict.
    """
    poll.check()
    tally = poll.tallies[item]
    rationale = printable(tally.rationale, SHOWN_CHARACTERS)
    return Measurement(
        value=float(bool(tally.verdict)),
        rationale=f"{tally.yes} of {tally.yes + tally.no} votes find it {adjective}{rationale and ': '}{rationale}",
        details={key: value for key, value in tally.details().items() if key in ("votes", "spread")}
        | poll.details()
        | fitted.details,
        cost=poll.cost,
    )
