"""Defines the base classes of Databricks Agent Evaluation's ratings: a judge answers a question with yes or no."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Literal

from pydantic import JsonValue

from traceweir.schemas.invocation import Invocation
from traceweir.schemas.reference import Reference
from traceweir.schemas.text import printable
from traceweir.scorers.base import Measurement, MissingInput, Subject, invocation_of
from traceweir.scorers.judge import AnswerUnusable
from traceweir.scorers.judged.base import JudgedTurn, JudgeModelOptions, RatingOptions, judge_of
from traceweir.scorers.judged.evidence import question_of
from traceweir.scorers.judged.fitting import FittedPrompt
from traceweir.scorers.judged.replies import ITEM, last_verdict, text_verdicts
from traceweir.scorers.judged.reply_objects import TEXT, object_schema, one_of, text_at, value_at, verdict_objects
from traceweir.scorers.judged.turns_of_verdicts import turns_at
from traceweir.scorers.judged.verdict_words import plain_word, yes_or_no
from traceweir.scorers.judged.vote import Ballot, Poll, Vote, verdict_measurement, vote

Rating = Literal["yes", "no", "unknown"]

RATING_ANSWER = object_schema(rationale=TEXT, result=one_of("no", "unknown", "yes"))

_YES = frozenset({"true", "pass", "correct", "1", "ok", "valid"})
_NOTHING = frozenset({"", "none", "null", "n/a"})
_NO_CATEGORIES: Mapping[str, bool] = MappingProxyType({})
_NO = frozenset({"false", "fail", "incorrect", "0", "invalid"})


class AsksForRatings(JudgedTurn):
    """Base class of the scorers whose judge answers yes or no with a rationale."""

    template: ClassVar[str]
    """The name of the prompt template."""
    judge_model_options: RatingOptions = RatingOptions()

    async def poll(
        self, subject: Subject, data: Mapping[str, str], parallelism_limit: int | None = None
    ) -> tuple[Poll, FittedPrompt]:
        """Returns the votes on the question that the template and this data make, and the prompt.

        Args:
            subject: What is judged, with the judge to ask.
            data: The texts of the prompt, by placeholder name.
            parallelism_limit: Maximum number of questions in flight; if None, the limit in the options applies.
        """
        judge = judge_of(subject)
        fitted = await self.prompt(subject, self.template, data)
        options: JudgeModelOptions = self.judge_model_options
        ballot = Ballot([ITEM], read_ratings, self.template, neither=True)
        poll = await vote(
            lambda sample: judge.ask(self.question(fitted.prompt, RATING_ANSWER, ballot.problem, sample)),
            ballot,
            options.model_copy(update={"parallelism_limit": parallelism_limit}) if parallelism_limit else options,
        )
        return poll, fitted


class YesNoRating(AsksForRatings):
    """Returns 1 if a judge answers yes about an invocation, 0 if it answers no.

    The majority of several replies decides; a tie is 0. A session's value is the share of its invocations with a yes,
    of those that have a rating. The prompts are Traceweir's own.
    """

    adjective: ClassVar[str]
    """The property of an invocation that a yes confirms."""

    @abstractmethod
    def prompt_data(self, invocation: Invocation, reference: Reference | None) -> Mapping[str, str]:
        """Returns the texts of the prompt, by placeholder name.

        Raises:
            MissingInput: a text that the prompt needs is missing.
        """

    async def score(self, subject: Subject) -> Measurement:
        """Asks the judge and returns its rating.

        Raises:
            AnswerUnusable: no reply is yes or no.
            BudgetSpent: the budget does not allow further questions.
            JudgeFailed: the judge did not answer a question.
            MissingInput: there is no judge, no invocation, or no text that the prompt needs.
        """
        invocation = invocation_of(subject)
        poll, fitted = await self.poll(subject, self.prompt_data(invocation, subject.reference))
        check_yes_or_no(poll)
        return verdict_measurement(poll, ITEM, self.adjective, fitted)


def read_rating(reply: str, categories: Mapping[str, bool] = _NO_CATEGORIES) -> Vote | None:
    """Returns the rating in a reply; None if there is none.

    The rating is the value of `result` in an object, or the last line of a text, `Verdict: yes` or `Verdict: no`.
    Ratings that disagree are no rating.
    Synonyms of yes and no count in upper and lower case. Any other word is a neither vote: `unknown`, as in Agent
    Evaluation. A value that is missing, null, `none` or not a single one is no rating.

    Args:
        reply: The judge's reply.
        categories: The verdict of each category, of an answer in categories; then no other word is a verdict.

    >>> read_rating('{"rationale": "r", "result": "Yes"}'), read_rating('{"result": "perhaps"}'), read_rating("Well.")
    (Vote(verdict=True, rationale='r'), Vote(verdict=None, rationale=''), None)
    >>> read_rating('{"result": "Late"}', {"late": False, "early": True}).category
    'late'
    >>> read_rating('{"verdict": "late"}', {"late": False, "none": True}) is None
    True
    """
    objects, is_unclear, text_around = verdict_objects(reply, "result")
    if is_unclear:
        return None
    if not objects:
        last = last_verdict(reply)
        return last if last.verdict is not None and not categories else None
    results = [value_at(answer, "result") for answer in objects]
    if any(_is_nothing(result, categories) for result in results):
        return None
    votes = {(_verdict(result, categories), _category(result, categories)) for result in results}
    votes |= {(each.verdict, "") for each in text_verdicts(text_around)}
    if len(votes) > 1:
        return None
    [(verdict, category)] = votes
    return Vote(verdict, text_at(objects[0], "rationale"), category=category, turns=turns_at(objects[0]))


def _is_nothing(result: JsonValue, categories: Mapping[str, bool]) -> bool:
    if categories:
        # A category can be called `none`, so that nothing but a text is one.
        return not isinstance(result, str)
    return isinstance(result, dict | list) or plain_word(result) in _NOTHING


def _verdict(result: JsonValue, categories: Mapping[str, bool]) -> bool | None:
    return categories.get(plain_word(result)) if categories else _yes_or_no(result)


def _category(result: JsonValue, categories: Mapping[str, bool]) -> str:
    word = plain_word(result)
    return word if word in categories else ""


def read_ratings(reply: str) -> dict[str, Vote]:
    """Returns the rating in a reply as the vote on the only item; empty if there is none."""
    found = read_rating(reply)
    return {} if found is None else {ITEM: found}


def _yes_or_no(value: JsonValue) -> bool | None:
    word = plain_word(value)
    return True if word in _YES else False if word in _NO else yes_or_no(word)


def rating_of(poll: Poll) -> Vote:
    """Returns the rating by majority: yes or no, or neither if the votes that have a reason of their own are neither.

    Raises:
        AnswerUnusable: no reply contains a rating.
    """
    tally = poll.tallies[ITEM]
    if tally.verdict is not None:
        return Vote(tally.verdict, tally.rationale)
    for neither in tally.votes:
        if not neither.is_copied:
            return neither
    raise poll.without_verdict()


def check_yes_or_no(poll: Poll) -> None:
    """Checks that the rating by majority is yes or no.

    Raises:
        AnswerUnusable: it is neither, or no reply contains a rating.
    """
    rating = rating_of(poll)
    if rating.verdict is None:
        raise AnswerUnusable(f"the judge answers neither yes nor no: {printable(rating.rationale, 200)!r}", poll.cost)


def rating_word(rating: Vote) -> Rating:
    """Returns the word for a rating.

    >>> rating_word(Vote(True)), rating_word(Vote(None))
    ('yes', 'unknown')
    """
    return "unknown" if rating.verdict is None else "yes" if rating.verdict else "no"


def request_of(invocation: Invocation | None, reference: Reference | None) -> str:
    """Returns the request: the reference's question if it has one, else the user's message.

    Raises:
        MissingInput: there is no request.
    """
    request = (reference and reference.question) or (question_of(invocation) if invocation else "")
    if not request:
        raise MissingInput("there is no request")
    return request
