"""A vote: one question, asked several times of a judge that may answer otherwise each time.

The rules are those of Google ADK 2.13. A reply votes yes, no or neither on each item. An item's verdict is yes with more votes for yes
than for no, else no (a tie is a no); votes for neither do not count, and without any other there is no verdict. One question that fails
fails the vote.

Replies are asked for in waves, of no more than are needed in any case to decide every item; so a vote ends as soon as the rest could
change nothing, with the verdict that all of them would have given, and which replies are asked for depends on the replies alone, never
on which came first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.score import Cost
from traceweir.schemas.text import printable
from traceweir.scorers.base import Measurement
from traceweir.scorers.judge import AnswerUnusable, Reply
from traceweir.scorers.judged.base import JudgeModelOptions

SHOWN_CHARACTERS = 1_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Vote:
    """What one reply says about one item; None: nothing that counts."""

    verdict: bool | None
    rationale: str = ""


@dataclass(slots=True)
class Tally:
    """The votes on one item so far."""

    votes: list[Vote] = field(default_factory=list)

    @property
    def yes(self) -> int:
        """Votes for yes."""
        return sum(vote.verdict is True for vote in self.votes)

    @property
    def no(self) -> int:
        """Votes for no."""
        return sum(vote.verdict is False for vote in self.votes)

    @property
    def verdict(self) -> bool | None:
        """What the votes say together; None, if none of them counts."""
        return self.yes > self.no if self.yes or self.no else None

    @property
    def rationale(self) -> str:
        """What the first reply says that voted like the majority."""
        return next((vote.rationale for vote in self.votes if vote.verdict is self.verdict), "")

    @property
    def spread(self) -> float | None:
        """The share, of the votes that count, of those against the verdict: 0 if all agree, 0.5 in a tie; None without a verdict."""
        against = self.no if self.verdict else self.yes
        return against / (self.yes + self.no) if self.verdict is not None else None

    def needed(self, left: int) -> int:
        """The least number of further votes after which the verdict may be certain, with `left` still to come; 0, if it is certain."""
        lead = self.yes - self.no
        if lead > left:
            return 0
        for_yes, for_no = (left - lead) // 2 + 1, -(-(left + lead) // 2)
        return max(0, min(left, for_yes, for_no))

    def details(self) -> JsonObject:
        """The verdict as a number, the votes, their spread, and the rationale."""
        votes: JsonValue = {"yes": self.yes, "no": self.no, "neither": len(self.votes) - self.yes - self.no}
        return {
            "value": None if self.verdict is None else float(self.verdict),
            "votes": votes,
            "spread": self.spread,
            "rationale": printable(self.rationale, SHOWN_CHARACTERS),
        }


@dataclass(frozen=True, slots=True)
class Poll:
    """A vote that has taken place."""

    tallies: Mapping[str, Tally]
    """Of every item, in the order in which they were given."""
    replies: Sequence[Reply]
    unusable: int
    """Replies that have no verdict on anything."""
    samples: int
    """Replies that would have been asked for, had nothing been certain before."""

    @property
    def cost(self) -> Cost:
        """The costs of the replies."""
        return total(reply.cost for reply in self.replies)

    def details(self) -> JsonObject:
        """How many replies there are, of how many at most, and how many of them said nothing that counts."""
        return {"replies": len(self.replies), "num_samples": self.samples, "unusable": self.unusable}

    def check(self) -> None:
        """Make sure that there is a verdict on something.

        Raises:
            AnswerUnusable: no reply has one.
        """
        if self.unusable == len(self.replies):
            raise self.without_verdict()

    def without_verdict(self) -> AnswerUnusable:
        """What there is to say if no reply has one."""
        first = printable(self.replies[0].text, 200)
        return AnswerUnusable(f"none of {len(self.replies)} replies holds a verdict; the first: {first!r}", self.cost)


async def vote(
    ask: Callable[[int], Awaitable[Reply]],
    read: Callable[[str], Mapping[str, Vote]],
    items: Sequence[str],
    options: JudgeModelOptions,
) -> Poll:
    """Ask until every item is decided, or as often as the options allow.

    Args:
        ask: Asks for the reply of a number, from 0.
        read: What a reply's text says of which item.
        items: What is voted on; at least one.
        options: How often to ask, and how many at once.

    Raises:
        BudgetSpent: as the first question of a wave that fails says.
        JudgeFailed: likewise.
    """
    tallies = {item: Tally() for item in items}
    replies: list[Reply] = []
    unusable = 0
    while left := options.num_samples - len(replies):
        wave = min(max(tally.needed(left) for tally in tallies.values()), options.parallelism_limit)
        if not wave:
            break
        numbers = range(len(replies), len(replies) + wave)
        for reply in results(await together([ask(number) for number in numbers])):
            replies.append(reply)
            votes = read(reply.text)
            unusable += all(vote.verdict is None for vote in votes.values())
            for item, tally in tallies.items():
                if item in votes:
                    tally.votes.append(votes[item])
    return Poll(tallies, replies, unusable, options.num_samples)


async def together(awaitables: Sequence[Awaitable[T]]) -> list[T | BaseException]:
    """Await all of them to their end; what one raises stands in its place, so that none is left running."""
    return await asyncio.gather(*awaitables, return_exceptions=True)


def results(outcomes: Iterable[T | BaseException]) -> list[T]:
    """The outcomes, if there is no exception among them; else the first of these is raised."""
    found: list[T] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        found.append(outcome)
    return found


def total(costs: Iterable[Cost]) -> Cost:
    """The sum of costs; `cached` if there are any and all of them are."""
    each = list(costs)
    return Cost(
        input_tokens=sum(cost.input_tokens for cost in each),
        output_tokens=sum(cost.output_tokens for cost in each),
        usd=sum(cost.usd for cost in each),
        cached=bool(each) and all(cost.cached for cost in each),
    )


def verdict_measurement(poll: Poll, item: str, adjective: str) -> Measurement:
    """1 if the verdict on the only item of a vote is yes, else 0, with the votes in `details`.

    Raises:
        AnswerUnusable: there is no verdict.
    """
    poll.check()
    tally = poll.tallies[item]
    said = printable(tally.rationale, SHOWN_CHARACTERS)
    return Measurement(
        value=float(bool(tally.verdict)),
        rationale=f"{tally.yes} of {tally.yes + tally.no} votes find it {adjective}{said and ': '}{said}",
        details={key: value for key, value in tally.details().items() if key in ("votes", "spread")} | poll.details(),
        cost=poll.cost,
    )
