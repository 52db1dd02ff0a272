"""What comes of measuring a subject: a measurement, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tracegate.schemas.score import NotEvaluated
from tracegate.scorers.base import Measurement


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """Why a subject has no value."""

    because: NotEvaluated
    rationale: str


Outcome: TypeAlias = Measurement | Unmeasured
