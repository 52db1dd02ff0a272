"""Defines the scales on which a criterion of one's own is answered, and what the answers of a vote mean on them."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from statistics import median
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Discriminator, Field, RootModel, Tag, model_validator

from traceweir.schemas.base import ConfigModel, JsonObject, NonEmpty
from traceweir.schemas.text import printable
from traceweir.scorers.base import Measurement
from traceweir.scorers.judge import AnswerUnusable, Reply
from traceweir.scorers.judged.base import JudgeModelOptions
from traceweir.scorers.judged.copied_reasons import is_copied
from traceweir.scorers.judged.fitting import FittedPrompt
from traceweir.scorers.judged.replies import ITEM
from traceweir.scorers.judged.reply_objects import TEXT, object_schema, one_of, text_at, value_at, verdict_objects
from traceweir.scorers.judged.vote import (
    SHOWN_CHARACTERS,
    Ballot,
    Vote,
    counted_votes,
    gather_all,
    raise_first,
    total_cost,
    verdict_measurement,
    vote,
)
from traceweir.scorers.judged.yes_no_rating import RATING_ANSWER, check_yes_or_no, read_ratings

Ask = Callable[[JsonObject, Callable[[str], str | None], int], Awaitable[Reply]]
"""Asks for one reply: receives the schema of the answer, what a reply lacks as in `Question.problem`, and its number."""
Number = Annotated[float, Field(allow_inf_nan=False)]


class YesNoScale(RootModel[Literal["yes_no"]]):
    """The answers yes, which is 1, and no, which is 0. The majority decides, and a tie is no."""

    model_config = ConfigDict(frozen=True)
    root: Literal["yes_no"] = "yes_no"
    template: ClassVar[str] = "own_criterion.yes_no"

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return 0.0, 1.0

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the prompt about the scale, by placeholder."""
        return {}

    async def measured(self, ask: Ask, options: JudgeModelOptions, fitted: FittedPrompt) -> Measurement:
        """Returns the majority of the replies.

        Raises:
            AnswerUnusable: no reply is yes or no.
        """
        ballot = Ballot([ITEM], read_ratings, self.template, neither=True)
        poll = await vote(lambda sample: ask(RATING_ANSWER, ballot.problem, sample), ballot, options)
        check_yes_or_no(poll)
        return verdict_measurement(poll, ITEM, "in line with the criterion", fitted)


class NumberScale(ConfigModel):
    """Numbers between two ends that have a meaning. The median of the replies is the value."""

    template: ClassVar[str] = "own_criterion.number"
    lowest: Number
    """The number at the lower end."""
    lowest_means: NonEmpty
    """What the lowest number means."""
    highest: Number
    """The number at the upper end."""
    highest_means: NonEmpty
    """What the highest number means."""

    @model_validator(mode="after")
    def _check_order(self) -> NumberScale:
        if not self.lowest < self.highest:
            raise ValueError(f"lowest is {self.lowest:g} and highest is {self.highest:g}; lowest must be less")
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return self.lowest, self.highest

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the prompt about the scale, by placeholder."""
        return {
            "lowest": f"{self.lowest:.15g}",
            "lowest_means": self.lowest_means,
            "highest": f"{self.highest:.15g}",
            "highest_means": self.highest_means,
        }

    async def measured(self, ask: Ask, options: JudgeModelOptions, fitted: FittedPrompt) -> Measurement:
        """Returns the median of the replies that have a number on the scale.

        Raises:
            AnswerUnusable: no reply has one.
        """
        answer = object_schema(rationale=TEXT, score={"type": "number"})

        def problem(reply: str) -> str | None:
            found = self._read(reply)
            if found is None:
                return f"its score is not a number from {self.lowest:g} to {self.highest:g}"
            return "its reason is copied from this message" if is_copied(found[1], self.template) else None

        replies = await _replies(ask, answer, problem, options)
        found = [read for reply in replies if problem(reply.text) is None and (read := self._read(reply.text))]
        cost = total_cost(reply.cost for reply in replies)
        if not found:
            raise AnswerUnusable(f"the judge gives no score: {printable(replies[0].text, 200)!r}", cost)
        numbers = [number for number, _ in found]
        value = float(median(numbers))
        nearest = min(found, key=lambda each: abs(each[0] - value))
        return Measurement(
            value=value,
            rationale=printable(nearest[1], SHOWN_CHARACTERS),
            details={
                "numbers": [*numbers],
                "replies": len(replies),
                "num_samples": options.num_samples,
                "unusable": len(replies) - len(found),
                **fitted.details,
            },
            cost=cost,
        )

    def _read(self, reply: str) -> tuple[float, str] | None:
        objects = _objects(reply, "score")
        if not objects:
            return None
        numbers = {_number(value_at(each, "score")) for each in objects}
        number = numbers.pop() if len(numbers) == 1 else None
        if number is None or not self.lowest <= number <= self.highest:
            return None
        return number, text_at(objects[0], "rationale")


class CategoryScale(ConfigModel):
    """Names, each with a number. The name that most replies give is the category, and its number is the value."""

    template: ClassVar[str] = "own_criterion.categories"
    categories: Annotated[dict[NonEmpty, Number], Field(min_length=2, max_length=50)]
    """The number of each category."""

    @model_validator(mode="after")
    def _check_names(self) -> CategoryScale:
        folded = Counter(_folded(name) for name in self.categories)
        if twice := [name for name in self.categories if folded[_folded(name)] > 1 or not _folded(name)]:
            raise ValueError(
                f"categories: {twice[0]!r} is empty, or another one differs in case and spaces only; rename it"
            )
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return min(self.categories.values()), max(self.categories.values())

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the prompt about the scale, by placeholder."""
        return {"categories": ", ".join(f'"{name}"' for name in sorted(self.categories))}

    async def measured(self, ask: Ask, options: JudgeModelOptions, fitted: FittedPrompt) -> Measurement:
        """Returns the number of the category that most replies give; of categories with as many, the lowest number.

        Raises:
            AnswerUnusable: no reply has a category.
        """
        answer = object_schema(rationale=TEXT, category=one_of(*sorted(self.categories)))
        ballot = Ballot([*self.categories], self._votes, self.template)
        # All replies: which category has the most is open until the last one.
        replies = await _replies(ask, answer, ballot.problem, options)
        poll = counted_votes(replies, ballot, options)
        poll.check()
        votes = {name: tally.yes for name, tally in poll.tallies.items()}
        category = min(votes, key=lambda name: (-votes[name], self.categories[name]))
        rationale = next(each.rationale for each in poll.tallies[category].votes if each.verdict)
        return Measurement(
            value=self.categories[category],
            category=category,
            rationale=f"{category}: {printable(rationale, SHOWN_CHARACTERS)}" if rationale else category,
            details={
                "votes": {name: number for name, number in votes.items() if number},
                **poll.details(),
                **fitted.details,
            },
            cost=poll.cost,
        )

    def _votes(self, reply: str) -> dict[str, Vote]:
        """Returns yes for the category of a reply and no for all others; empty if it has none, or several."""
        objects = _objects(reply, "category")
        if not objects:
            return {}
        names = {_folded(name) if isinstance(name := value_at(each, "category"), str) else "" for each in objects}
        chosen = next((name for name in self.categories if {_folded(name)} == names), None)
        if chosen is None:
            return {}
        rationale = text_at(objects[0], "rationale")
        return {name: Vote(name == chosen, rationale) for name in self.categories}


def _kind_of(scale: object) -> str | None:
    # A scale is also read back from a scorer, where it is no longer the JSON of a config.
    if isinstance(scale, CategoryScale):
        return "scale-categories"
    if isinstance(scale, NumberScale):
        return "scale-number"
    if isinstance(scale, YesNoScale):
        return "scale-yes-no"
    if isinstance(scale, dict):
        return "scale-categories" if "categories" in scale else "scale-number"
    return "scale-yes-no" if scale == "yes_no" else None


Scale = Annotated[
    Annotated[YesNoScale, Tag("scale-yes-no")]
    | Annotated[NumberScale, Tag("scale-number")]
    | Annotated[CategoryScale, Tag("scale-categories")],
    Discriminator(
        _kind_of,
        custom_error_type="scale_kind",
        custom_error_message='must be "yes_no", an object with lowest, lowest_means, highest and highest_means, or one with '
        "categories",
    ),
]
"""A scale of a config; its form says which one it is, so that the problems of one are not those of all."""


async def _replies(
    ask: Ask, answer: JsonObject, problem: Callable[[str], str | None], options: JudgeModelOptions
) -> list[Reply]:
    """Returns all replies; `parallelism_limit` of them are asked for at a time."""
    limit = asyncio.Semaphore(options.parallelism_limit)

    async def reply_to(sample: int) -> Reply:
        async with limit:
            return await ask(answer, problem, sample)

    return raise_first(await gather_all([reply_to(sample) for sample in range(options.num_samples)]))


def _objects(reply: str, key: str) -> Sequence[JsonObject]:
    """Returns the objects with the answer; none if text follows an object that prose introduces: it can be a quotation."""
    objects, is_unclear, text_around = verdict_objects(reply, key)
    is_followed = bool(text_around.strip()) and not reply.rstrip().rstrip("`").rstrip().endswith("}")
    return () if is_unclear or is_followed else objects


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str) or "_" in str(value):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


def counted_categories(measured: Sequence[Measurement]) -> JsonObject:
    """Returns how many measurements have which category; empty if none has one."""
    counts = Counter[str](each.category for each in measured if each.category is not None)
    return {"categories": dict(counts)} if counts else {}
