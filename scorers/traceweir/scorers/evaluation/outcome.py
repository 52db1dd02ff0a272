"""Defines the outcome of measuring a subject: a measurement, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from traceweir.schemas.refused_record import REFERENCE
from traceweir.schemas.score import Cause, Cost, NotEvaluated
from traceweir.schemas.text import printable
from traceweir.schemas.turns import Turn
from traceweir.scorers.base import (
    NOTHING_SPENT,
    Measurement,
    MissingInput,
    NeededReference,
    Scorer,
    Subject,
    require_accepted,
)
from traceweir.scorers.judge import BudgetSpent, JudgeFailed


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """Holds the reason why a subject has no value."""

    because: NotEvaluated
    rationale: str
    cost: Cost = NOTHING_SPENT
    """Cost of the attempt."""
    cause: Cause | None = None
    """What a judge lacked, or why an input is missing; None if unknown."""
    judge: str | None = None
    """The model that judged; None if no model has answered."""


Outcome: TypeAlias = Measurement | Unmeasured


def with_lost_references(
    scorer: Scorer | None, subjects: Sequence[Subject], outcomes: Sequence[Outcome]
) -> list[Outcome]:
    """Returns the outcomes; one that lacks a reference says why.

    It names the refused record in which the reference can have been, or why the expected case does not count.

    Args:
        scorer: The scorer; None if Traceweir does not compute the metric.
        subjects: What it has measured.
        outcomes: The outcome of each subject.
    """
    need = None if scorer is None else scorer.needed_reference
    if need is None:
        return list(outcomes)
    return [_with_lost_reference(need, *each) for each in zip(subjects, outcomes, strict=True)]


def _with_lost_reference(need: NeededReference, subject: Subject, outcome: Outcome) -> Outcome:
    if isinstance(outcome, Measurement) or outcome.because != "missing_input" or outcome.cause is not None:
        return outcome
    if any(getattr(subject.reference, name, None) for name in need.fields):
        return outcome
    turns = subject.turns if subject.invocation is None else subject.turns[subject.position :][:1]
    own = () if subject.invocation is None else (subject.invocation,)
    for invocation in own or (turn.invocation for turn in turns):
        try:
            require_accepted(invocation, REFERENCE)
        except MissingInput as error:
            return unmeasured(error)
    return _with_unused_reference(outcome, turns)


def with_unused_references(scorer: Scorer | None, turns: Sequence[Turn], total: Outcome) -> Outcome:
    """Returns the session's outcome of a criterion of invocations; without a value, it says why a reference is unused."""
    if scorer is None or scorer.needed_reference is None or isinstance(total, Measurement):
        return total
    return total if total.because != "missing_input" else _with_unused_reference(total, turns)


def _with_unused_reference(outcome: Unmeasured, turns: Sequence[Turn]) -> Unmeasured:
    why = next((turn.without_reference for turn in turns if turn.without_reference), None)
    return outcome if why is None else replace(outcome, rationale=f"{outcome.rationale}: {why}")


def unmeasured(error: BaseException) -> Unmeasured:
    """Returns the outcome of a scorer that raised."""
    if isinstance(error, MissingInput):
        return Unmeasured("missing_input", printable(str(error)), cause=error.cause)
    if isinstance(error, BudgetSpent):
        return Unmeasured("budget", printable(str(error)))
    text = printable(f"{type(error).__name__}: {error}")
    return (
        Unmeasured("error", text, error.cost, error.cause)
        if isinstance(error, JudgeFailed)
        else Unmeasured("error", text)
    )
