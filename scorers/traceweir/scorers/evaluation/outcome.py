"""Defines the outcome of measuring a subject: a measurement, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from traceweir.schemas.score import Cause, Cost, NotEvaluated
from traceweir.scorers.base import NOTHING_SPENT, Measurement


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
