"""Ratings of Databricks Agent Evaluation: a judge is asked one question about an invocation, and answers yes or no."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from traceweir.schemas.invocation import Invocation
from traceweir.schemas.reference import Reference
from traceweir.schemas.text import printable
from traceweir.scorers.base import Measurement, MissingInput, Subject
from traceweir.scorers.judge import AnswerUnusable, Judge
from traceweir.scorers.judged.base import JudgedScorer, JudgeModelOptions, judge_of
from traceweir.scorers.judged.evidence import question_of
from traceweir.scorers.judged.prompt import prompt
from traceweir.scorers.judged.replies import ITEM, TEXT, last_verdict, object_schema, one_of, text_at, whole_object
from traceweir.scorers.judged.vote import Poll, Vote, verdict_measurement, vote

Rating = Literal["yes", "no", "unknown"]

RATING_ANSWER = object_schema(rationale=TEXT, result=one_of("yes", "no"))

_YES = frozenset({"yes", "true", "pass", "correct", "1", "ok", "valid"})
_NO = frozenset({"no", "false", "fail", "incorrect", "0", "invalid", "none", "null"})


class RatingOptions(JudgeModelOptions):
    """Whom a rating asks, and how often: as Agent Evaluation does once, with up to ten questions at the same time."""

    num_samples: Annotated[int, Field(ge=1)] = 1
    parallelism_limit: Annotated[int, Field(ge=1)] = 10


class AsksForRatings(JudgedScorer):
    """A scorer whose judge answers yes or no, with its rationale."""

    template: ClassVar[str]
    """The name of its prompt."""
    judge_model_options: RatingOptions = RatingOptions()

    async def poll(self, judge: Judge, data: Mapping[str, str], at_once: int | None = None) -> Poll:
        """The votes on one question: its prompt with this data; so many at once, or as many as the options allow."""
        text = prompt(self.template, data)
        options: JudgeModelOptions = self.judge_model_options
        return await vote(
            lambda sample: judge.ask(self.question(text, RATING_ANSWER, sample)),
            lambda reply: {ITEM: read_rating(reply) or Vote(None)},
            [ITEM],
            options.model_copy(update={"parallelism_limit": at_once}) if at_once else options,
        )


class Rated(AsksForRatings):
    """1 if a judge says yes of an invocation, 0 if it says no; of several replies the majority, and a tie is a 0.

    A session's value is the share of its invocations with a yes, of those that have a rating. The prompts are our own.
    """

    adjective: ClassVar[str]
    """What a yes says of an invocation."""

    @abstractmethod
    def material(self, invocation: Invocation, reference: Reference | None) -> Mapping[str, str]:
        """What its prompt shows, by the names there.

        Raises:
            Missing: something that it needs is not known.
        """

    async def score(self, subject: Subject) -> Measurement:
        """Ask.

        Raises:
            AnswerUnusable: no reply says yes or no.
            BudgetSpent: asking is no longer paid for.
            JudgeFailed: a question was not answered.
        """
        if subject.invocation is None:
            raise MissingInput("there is no invocation that could be rated")
        poll = await self.poll(judge_of(subject), self.material(subject.invocation, subject.reference))
        rating = rating_of(poll)
        if rating.verdict is None:
            raise AnswerUnusable(f"the judge cannot tell: {printable(rating.rationale, 200)!r}", poll.cost)
        return verdict_measurement(poll, ITEM, self.adjective)


def read_rating(reply: str) -> Vote | None:
    """The rating under `result` of an object, else of a text's last line `Verdict: yes` or `Verdict: no`; None without one.

    Words that mean yes or no count as such, in any case. Any other word is a vote for neither: `unknown`, as in Agent Evaluation.

    >>> read_rating('{"rationale": "r", "result": "Yes"}'), read_rating('{"result": "perhaps"}'), read_rating("Well.")
    (Vote(verdict=True, rationale='r'), Vote(verdict=None, rationale=''), None)
    """
    answer = whole_object(reply)
    if answer is None:
        said = last_verdict(reply)
        return said if said.verdict is not None else None
    result = answer.get("result", [])
    return None if isinstance(result, dict | list) else Vote(_folded(result), text_at(answer, "rationale"))


def _folded(value: JsonValue) -> bool | None:
    word = str(value).strip().lower()
    return True if word in _YES else False if word in _NO else None


def rating_of(poll: Poll) -> Vote:
    """What the replies say together: yes or no by majority, and neither if no reply says more than that.

    Raises:
        AnswerUnusable: none can be read.
    """
    tally = poll.tallies[ITEM]
    if tally.verdict is not None:
        return Vote(tally.verdict, tally.rationale)
    for reply in poll.replies:
        if (found := read_rating(reply.text)) is not None:
            return found
    raise poll.without_verdict()


def named(rating: Vote) -> Rating:
    """The word for it.

    >>> named(Vote(True)), named(Vote(None))
    ('yes', 'unknown')
    """
    return "unknown" if rating.verdict is None else "yes" if rating.verdict else "no"


def request_of(invocation: Invocation | None, reference: Reference | None) -> str:
    """What was asked: the reference's own question if it has one.

    Raises:
        Missing: nothing was.
    """
    asked = (reference and reference.question) or (question_of(invocation) if invocation else "")
    if not asked:
        raise MissingInput("there is no request")
    return asked
