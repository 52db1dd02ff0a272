"""Defines the outcome of measuring a subject: a measurement, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from traceweir.schemas.score import Cause, Cost, NotEvaluated
from traceweir.schemas.text import printable
from traceweir.scorers.base import NOTHING_SPENT, Measurement, MissingInput
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
