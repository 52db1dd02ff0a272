"""Defines the base classes of the ratings of a session: a judge reads its dialogue, and names the turns that decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import Invocation
from traceweir.schemas.refused_record import INTERMEDIATE, TOOL_RESULTS
from traceweir.schemas.turns import Turn
from traceweir.scorers.base import (
    Measurement,
    MissingInput,
    Subject,
    require_accepted,
    require_arguments,
    require_calls,
    turns_of_session,
)
from traceweir.scorers.judged.base import JudgedScorer, RatingOptions, judge_of
from traceweir.scorers.judged.dialogue import Dialogue, dialogue_of
from traceweir.scorers.judged.evidence import UNKNOWN_TOOLS, answer_of, instructions_of, question_of, tools_of
from traceweir.scorers.judged.replies import ITEM
from traceweir.scorers.judged.reply_objects import TEXT, object_schema, one_of
from traceweir.scorers.judged.turns_of_verdicts import turn_details, unknown_turns_text
from traceweir.scorers.judged.vote import Ballot, Vote, verdict_measurement, vote
from traceweir.scorers.judged.yes_no_rating import read_rating

Part = Literal["questions", "answers", "calls", "instructions"]
"""A part of a session that a criterion needs."""

TURNS: JsonObject = {"type": "array", "items": {"type": "integer"}}
"""The JSON Schema of the numbers of turns."""


class SessionRating(JudgedScorer):
    """Returns 1 if a judge finds that a session has a property, else 0.

    The judge reads the whole dialogue in one question. The majority of several replies decides; a tie is 0. `details`
    has the ids of the invocations on which the verdict rests, in `turns`.
    """

    level = "session"
    dialogue_block = "dialogue"
    version = "1"
    template: ClassVar[str]
    """The name of the prompt template."""
    adjective: ClassVar[str]
    """The property of a session that a value of 1 confirms."""
    needs: ClassVar[Sequence[Part]]
    """The parts without which a value would be a guess."""
    categories: ClassVar[Mapping[str, bool]] = {}
    """The categories of the answer, each with whether it is 1; empty: the answer is yes or no. The one of 0 comes first."""

    def dialogue(self, subject: Subject) -> Dialogue:
        """Returns what was said and done in the session."""
        return dialogue_of(subject.turns, subject.session, whole=2)

    def prompt_data(self, subject: Subject) -> dict[str, str]:
        """Returns the texts that a prompt can contain besides the dialogue, by placeholder name.

        Raises:
            MissingInput: a text that the prompt needs is missing.
        """
        return session_texts(subject)

    async def score(self, subject: Subject) -> Measurement:
        """Asks the judge and returns its rating.

        Raises:
            AnswerUnusable: no reply contains a verdict.
            BudgetSpent: the budget does not allow further questions.
            JudgeFailed: the judge did not answer a question.
            MissingInput: there is no judge, no invocation, or no text that the prompt needs.
        """
        judge = judge_of(subject)
        turns = turns_of_session(subject)
        require_parts(turns, self.needs)
        fitted = await self.prompt(subject, self.template, self.prompt_data(subject))
        words = one_of(*(self.categories or ("no", "yes")))
        answer = object_schema(rationale=TEXT, turns=TURNS, result=words)
        ballot = Ballot([ITEM], self._read, self.template)
        poll = await vote(
            lambda sample: judge.ask(self.question(fitted.prompt, answer, ballot.problem, sample)),
            ballot,
            self.judge_model_options,
        )
        measured = verdict_measurement(poll, ITEM, self.adjective, fitted)
        deciding = poll.tallies[ITEM].deciding
        found = turn_details([deciding] if deciding else [], turns)
        return replace(
            measured,
            rationale=measured.rationale + unknown_turns_text(found),
            category=deciding.category or None if deciding else None,
            details={**found, **measured.details},
        )

    def _read(self, reply: str) -> dict[str, Vote]:
        found = read_rating(reply, self.categories)
        return {} if found is None else {ITEM: found}


class ConversationRating(SessionRating):
    """Base class of the ratings that have names of MLflow 3: one reply decides by default."""

    judge_model_options: RatingOptions = RatingOptions()


def session_texts(subject: Subject) -> dict[str, str]:
    """Returns the texts about a session besides its dialogue: the agent's instructions and tools, the task, its outcome."""
    invocations = [turn.invocation for turn in subject.turns]
    reference = subject.reference
    return {
        "instructions": instructions_of(*invocations),
        "tools": tools_of(*invocations, unknown=UNKNOWN_TOOLS),
        "task": (reference and reference.task) or "",
        "expected_outcome": (reference and reference.expected_outcome) or "",
    }


def require_parts(turns: Sequence[Turn], parts: Sequence[Part]) -> None:
    """Checks that the turns have these parts of a session.

    Raises:
        MissingInput: a part of an invocation is missing from its source, or no invocation has it.
    """
    for part in parts:
        found = [_of_turn(number, turn.invocation, part) for number, turn in enumerate(turns, 1)]
        if part != "calls" and not any(found):
            raise MissingInput(f"no invocation of the session has {_NAMES[part]}")


def _of_turn(number: int, invocation: Invocation, part: Part) -> str:
    try:
        return _PARTS[part](invocation)
    except MissingInput as error:
        found = MissingInput(f"turn {number}: {error}")
        found.cause = error.cause
        raise found from None


def _answers(invocation: Invocation) -> str:
    # What the agent says before its answer is in the dialogue too.
    require_accepted(invocation, INTERMEDIATE)
    return answer_of(invocation)


def _calls(invocation: Invocation) -> str:
    require_calls(invocation)
    require_accepted(invocation, TOOL_RESULTS)
    require_arguments(invocation)
    return ""


_PARTS: Mapping[Part, Callable[[Invocation], str]] = {
    "questions": question_of,
    "answers": _answers,
    "calls": _calls,
    "instructions": instructions_of,
}
_NAMES: Mapping[Part, str] = {
    "questions": "a message of the user",
    "answers": "an answer of the agent",
    "instructions": "instructions of the developer to the agent",
}
