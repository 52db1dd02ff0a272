"""What the criteria with rubrics have in common: which rubrics apply, the vote on each, and how their verdicts add up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from pydantic import field_validator

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import Invocation, Rubric
from traceweir.schemas.reference import Reference
from traceweir.schemas.text import printable
from traceweir.scorers.base import Measurement, MissingInput, Subject
from traceweir.scorers.judged.base import JudgedScorer, judge_of
from traceweir.scorers.judged.prompt import prompt
from traceweir.scorers.judged.rubric_replies import read_rubrics, rubric_text, rubrics_answer
from traceweir.scorers.judged.vote import Poll, vote

NAMED = 5
"""How many rubrics that are not met a rationale names."""


class RubricBased(JudgedScorer):
    """The share of the rubrics that a judge finds met, by majority of its replies on each; a rubric that no reply names does not count.

    The rubrics are the criterion's, and those of the invocation and its reference that have the criterion's `rubric_type`. One question is
    about all of them. A session's value is the mean over all verdicts on all its invocations, as Google ADK 2.13 computes it
    (`evaluation/rubric_based_evaluator.py`): an invocation with more rubrics weighs more.
    """

    rubric_type: ClassVar[str]
    rubrics: list[Rubric] = []

    @field_validator("rubrics")
    @classmethod
    def _can_be_told_apart(cls, rubrics: list[Rubric]) -> list[Rubric]:
        told_apart([("the criterion", rubric) for rubric in rubrics])
        return rubrics

    @abstractmethod
    def material(self, invocation: Invocation) -> dict[str, str]:
        """What the judge is shown beside the rubrics, by its place in the prompt."""

    async def score(self, subject: Subject) -> Measurement:
        """Ask which rubrics are met.

        Raises:
            AnswerUnusable: no reply holds a verdict on any of them.
            BudgetSpent: asking is no longer paid for.
            JudgeFailed: a question was not answered.
            Missing: no rubric applies.
            ValueError: two rubrics share an id, or one has no id or no text.
        """
        judge, rubrics = judge_of(subject), self.applicable(subject)
        if subject.invocation is None or not rubrics:
            raise MissingInput(
                f"no rubric applies: neither the criterion has one, nor the invocation or its reference one of type {self.rubric_type}"
            )
        listed = "\n".join(f"*  [id: {rubric.rubric_id}] {_on_one_line(rubric)}" for rubric in rubrics)
        text = prompt(self.metric, {**self.material(subject.invocation), "rubrics": listed})
        answer = rubrics_answer(rubrics)
        poll = await vote(
            lambda sample: judge.ask(self.question(text, answer, sample)),
            lambda reply: read_rubrics(reply, rubrics),
            [rubric.rubric_id for rubric in rubrics],
            self.judge_model_options,
        )
        return _measurement(poll)

    def applicable(self, subject: Subject) -> list[Rubric]:
        """The rubrics of the criterion, of the invocation and of the reference; of the latter two those of this type.

        Raises:
            ValueError: two of them share an id, or one has no id or no text.
        """
        found = [("the criterion", rubric) for rubric in self.rubrics]
        of_invocation = _of_type(self.rubric_type, subject.invocation)
        found += [("the invocation", rubric) for rubric in of_invocation]
        # A recorded invocation may carry its reference's rubrics already; the same one is no conflict.
        of_reference = _of_type(self.rubric_type, subject.reference)
        found += [("the reference", rubric) for rubric in of_reference if rubric not in of_invocation]
        return told_apart(found)

    def aggregate(self, measured: Sequence[Measurement]) -> float:
        """The mean over all verdicts of all invocations."""
        values = [value for _, value in _verdicts(measured)]
        return sum(values) / len(values)

    def summary(self, measured: Sequence[Measurement]) -> JsonObject:
        """Each rubric's mean over the invocations that have a verdict on it."""
        by_id: dict[str, list[float]] = {}
        for name, value in _verdicts(measured):
            by_id.setdefault(name, []).append(value)
        return {"rubrics": {name: sum(values) / len(values) for name, values in by_id.items()}}


def _of_type(rubric_type: str, holder: Invocation | Reference | None) -> list[Rubric]:
    return [rubric for rubric in (holder.rubrics if holder else None) or () if rubric.type == rubric_type]


def told_apart(rubrics: Iterable[tuple[str, Rubric]]) -> list[Rubric]:
    """The rubrics, each given with whose it is.

    Raises:
        ValueError: two share an id, or one has no id or no text.
    """
    owners: dict[str, str] = {}
    found = []
    for owner, rubric in rubrics:
        name = printable(rubric.rubric_id, 60)
        if not rubric.rubric_id.strip():
            raise ValueError(f"a rubric of {owner} has an empty rubric_id; give it one of its own")
        if not rubric_text(rubric):
            raise ValueError(f"rubric {name!r} of {owner} has no text; write it to rubric_content.text_property")
        if rubric.rubric_id in owners:
            whose = (
                f"{owners[rubric.rubric_id]} and {owner}" if owners[rubric.rubric_id] != owner else f"two of {owner}"
            )
            raise ValueError(f"rubric id {name!r} is used by {whose}; give each rubric an id of its own")
        owners[rubric.rubric_id] = owner
        found.append(rubric)
    return found


def _on_one_line(rubric: Rubric) -> str:
    return " ".join(rubric_text(rubric).split())


def _measurement(poll: Poll) -> Measurement:
    poll.check()
    verdicts = {name: tally.verdict for name, tally in poll.tallies.items() if tally.verdict is not None}
    unmet = [printable(name, 60) for name, verdict in verdicts.items() if not verdict]
    named = ", ".join(unmet[:NAMED]) + (f" and {len(unmet) - NAMED} more" if len(unmet) > NAMED else "")
    rubrics: JsonObject = {name: tally.details() for name, tally in poll.tallies.items()}
    return Measurement(
        value=sum(verdicts.values()) / len(verdicts),
        rationale=f"{len(verdicts) - len(unmet)} of {len(verdicts)} rubrics are met"
        + (f"; not {named}" if unmet else ""),
        details={"rubrics": rubrics, **poll.details()},
        cost=poll.cost,
    )


def _verdicts(measured: Sequence[Measurement]) -> list[tuple[str, float]]:
    """The rubrics' values of all invocations, as `details` has them."""
    found = []
    for measurement in measured:
        rubrics = measurement.details["rubrics"]
        for name, rubric in rubrics.items() if isinstance(rubrics, dict) else ():
            value = rubric["value"] if isinstance(rubric, dict) else None
            if isinstance(value, float):
                found.append((name, value))
    return found
