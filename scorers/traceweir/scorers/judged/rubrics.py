"""Defines the base class of the criteria with rubrics: the rubrics that apply, the votes, and the aggregation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from pydantic import field_validator

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import Invocation, Rubric
from traceweir.schemas.reasoning_parts import invocation_with_reasoning
from traceweir.schemas.reference import Reference
from traceweir.schemas.text import printable
from traceweir.scorers.base import (
    AdkCompat,
    Measurement,
    Measurements,
    MissingInput,
    NeededReference,
    Subject,
    invocation_of,
)
from traceweir.scorers.judged.base import JudgedScorer, judge_of
from traceweir.scorers.judged.fitting import FittedPrompt
from traceweir.scorers.judged.rubric_replies import read_rubrics, rubric_text, rubrics_answer
from traceweir.scorers.judged.vote import Ballot, Poll, Tally, vote

MAX_NAMED_RUBRICS = 5
"""Maximum number of unmet rubrics that a rationale names."""


class RubricBased(JudgedScorer):
    """Returns the share of the rubrics that a judge finds met, from 0 to 1.

    The majority of the judge's replies decides on each rubric. If the replies have no verdict on one of them, there is
    no value; with `compat: "adk"` such a rubric does not count, as in Google ADK. The rubrics are those of the
    criterion, and those of the invocation and its reference whose type is the criterion's `rubric_type`. A single
    question covers all rubrics. A session's value is the mean of all verdicts on all its invocations, as in Google ADK
    2.13 (`evaluation/rubric_based_evaluator.py`): an invocation with more rubrics has more weight.
    """

    rubric_type: ClassVar[str]
    rubrics: list[Rubric] = []
    compat: AdkCompat = None

    @field_validator("rubrics")
    @classmethod
    def _check_rubrics(cls, rubrics: list[Rubric]) -> list[Rubric]:
        checked_rubrics([("the criterion", rubric) for rubric in rubrics])
        return rubrics

    @property
    def needed_reference(self) -> NeededReference | None:
        """The rubrics of this `rubric_type`, if the criterion has none."""
        if self.rubrics:
            return None
        where = f"an invocation or a reference has rubrics of the type {self.rubric_type}"
        return NeededReference(("rubrics",), option="rubrics", where=where)

    @abstractmethod
    def prompt_data(self, subject: Subject) -> dict[str, str]:
        """Returns the texts of the prompt besides the rubrics, by placeholder name.

        Raises:
            MissingInput: a text that the prompt needs is missing.
        """

    def read_invocation(self, subject: Subject) -> Invocation:
        """Returns the invocation that a scorer of level `invocation` measures, with reasoning if `compat` asks for it.

        Raises:
            MissingInput: the subject is a trace or a session.
        """
        invocation = invocation_of(subject)
        return invocation if self.compat is None else invocation_with_reasoning(invocation)

    def answer_schema(self, rubrics: Sequence[Rubric]) -> JsonObject:
        """Returns the JSON Schema of an answer about these rubrics."""
        return rubrics_answer(rubrics)

    async def score(self, subject: Subject) -> Measurement:
        """Asks the judge which rubrics are met.

        Raises:
            AnswerUnusable: no reply contains a verdict on a rubric; with `compat`: on any rubric.
            BudgetSpent: the budget does not allow further questions.
            JudgeFailed: the judge did not answer a question.
            MissingInput: there is no judge, or no rubric applies.
            ValueError: two rubrics share an id, or a rubric has no id or no text.
        """
        judge = judge_of(subject)
        rubrics = self.applicable(subject)
        if not rubrics:
            raise MissingInput(self.without_rubrics)
        listed = "\n".join(f"*  [id: {rubric.rubric_id}] {_on_one_line(rubric)}" for rubric in rubrics)
        fitted = await self.prompt(subject, self.metric, {**self.prompt_data(subject), "rubrics": listed})
        answer = self.answer_schema(rubrics)
        ballot = Ballot(
            [rubric.rubric_id for rubric in rubrics],
            lambda reply: read_rubrics(reply, rubrics, as_adk=self.compat is not None),
            self.metric,
            needs_every_item=self.compat is None,
        )
        poll = await vote(
            lambda sample: judge.ask(self.question(fitted.prompt, answer, ballot.problem, sample)),
            ballot,
            self.judge_model_options,
        )
        poll.check(every=ballot.needs_every_item)
        return self.measurement(poll, fitted, subject)

    def measurement(self, poll: Poll, fitted: FittedPrompt, subject: Subject) -> Measurement:
        """Returns the share of the rubrics that are met, of those with a verdict."""
        return rubrics_measurement(poll, fitted)

    @property
    def without_rubrics(self) -> str:
        """Why there is no value if no rubric applies."""
        return (
            "no rubric applies: the criterion has no rubrics, and neither the invocation nor its reference has "
            f"a rubric of type {self.rubric_type}"
        )

    def applicable(self, subject: Subject) -> list[Rubric]:
        """Returns the rubrics of the criterion, and those of invocation and reference with this `rubric_type`.

        Raises:
            ValueError: two rubrics share an id, or a rubric has no id or no text.
        """
        found = [("the criterion", rubric) for rubric in self.rubrics]
        of_invocation = rubrics_of_type(self.rubric_type, subject.invocation)
        found += [("the invocation", rubric) for rubric in of_invocation]
        # A recorded invocation can contain the rubrics of its reference; an equal rubric is not a conflict.
        of_reference = rubrics_of_type(self.rubric_type, subject.reference)
        found += [("the reference", rubric) for rubric in of_reference if rubric not in of_invocation]
        return checked_rubrics(found)

    def aggregate(self, measured: Measurements) -> float:
        """Returns the mean of all verdicts of all invocations."""
        values = [value for _, value in _verdicts(measured)]
        return sum(values) / len(values)

    def summary(self, measured: Measurements) -> JsonObject:
        """Returns the mean of each rubric over the invocations that have a verdict on it."""
        by_id: dict[str, list[float]] = {}
        for name, value in _verdicts(measured):
            by_id.setdefault(name, []).append(value)
        return {"rubrics": {name: sum(values) / len(values) for name, values in by_id.items()}}


def rubrics_of_type(rubric_type: str, holder: Invocation | Reference | None) -> list[Rubric]:
    """Returns the rubrics of an invocation or a reference that have this type."""
    return [rubric for rubric in (holder.rubrics if holder else None) or () if rubric.type == rubric_type]


def checked_rubrics(rubrics: Iterable[tuple[str, Rubric]]) -> list[Rubric]:
    """Returns the rubrics of (owner, rubric) pairs after checking them.

    Raises:
        ValueError: two rubrics share an id, or a rubric has no id or no text.
    """
    owners: dict[str, str] = {}
    found = []
    for owner, rubric in rubrics:
        name = printable(rubric.rubric_id, 60)
        if not rubric.rubric_id.strip():
            raise ValueError(f"a rubric of {owner} has an empty rubric_id; set an id that no other rubric uses")
        if not rubric_text(rubric):
            raise ValueError(f"rubric {name!r} of {owner} has no text; set rubric_content.text_property")
        if rubric.rubric_id in owners:
            users = (
                f"{owners[rubric.rubric_id]} and {owner}"
                if owners[rubric.rubric_id] != owner
                else f"two rubrics of {owner}"
            )
            raise ValueError(f"rubric id {name!r} is used by {users}; use a different id for each rubric")
        owners[rubric.rubric_id] = owner
        found.append(rubric)
    return found


def _on_one_line(rubric: Rubric) -> str:
    return " ".join(rubric_text(rubric).split())


def rubrics_measurement(
    poll: Poll, fitted: FittedPrompt, further: Callable[[Tally], JsonObject] = lambda tally: {}
) -> Measurement:
    """Returns the share of the rubrics that are met, of those with a verdict; the unmet ones are in the rationale.

    Args:
        poll: The votes on the rubrics.
        fitted: The prompt.
        further: Returns what `details` has of a rubric besides its verdict and votes.
    """
    verdicts = {name: tally.verdict for name, tally in poll.tallies.items() if tally.verdict is not None}
    unmet = [printable(name, 60) for name, verdict in verdicts.items() if not verdict]
    named = ", ".join(unmet[:MAX_NAMED_RUBRICS])
    named += f" and {len(unmet) - MAX_NAMED_RUBRICS} more" if len(unmet) > MAX_NAMED_RUBRICS else ""
    rubrics: JsonObject = {name: tally.details() | further(tally) for name, tally in poll.tallies.items()}
    return Measurement(
        value=sum(verdicts.values()) / len(verdicts),
        rationale=f"{len(verdicts) - len(unmet)} of {len(verdicts)} rubrics are met"
        + (f"; not {named}" if unmet else ""),
        details={"rubrics": rubrics, **poll.details(), **fitted.details},
        cost=poll.cost,
    )


def _verdicts(measured: Sequence[Measurement]) -> list[tuple[str, float]]:
    """Returns (rubric id, value) pairs of all invocations, read from `details`."""
    found = []
    for measurement in measured:
        rubrics = measurement.details["rubrics"]
        for name, rubric in rubrics.items() if isinstance(rubrics, dict) else ():
            value = rubric["value"] if isinstance(rubric, dict) else None
            if isinstance(value, float):
                found.append((name, value))
    return found
