"""Defines scorers that measure, fail or hang, and a plan of such scorers."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from tests.support.scoring import make_turn

from traceweir.schemas.config import GateConfig
from traceweir.schemas.score import Cost, Score
from traceweir.scorers import Measurement, Metric, MissingInput, Plan, Scorer, Subject, TraceValue

TURNS = [make_turn("i1", "yes"), make_turn("i2", "no"), make_turn("i3")]


def plan_of(*scorers: Scorer, threshold: float = 0.5, share: float = 1.0) -> Plan:
    """Returns a plan with the metrics m0, m1, ... of these scorers, all with the same threshold and sampling share."""
    metrics = tuple(
        Metric(f"m{number}", threshold, scorer, f"digest {number}") for number, scorer in enumerate(scorers)
    )
    return Plan(metrics, TraceValue(), GateConfig(), {metric.name: share for metric in metrics}, "config")


def summary(score: Score) -> tuple[Any, ...]:
    """Returns the level, the subject, the status, the reason and the value of a Score."""
    return score.level, score.invocation_id, score.status, score.not_evaluated_because, score.value


class ScoresYes(Scorer):
    """Measures 1 for yes, 0 for no."""

    version: ClassVar[str] = "7"

    def score(self, subject: Subject) -> Measurement:
        if not subject.response:
            raise MissingInput("no answer")
        cost = Cost(input_tokens=3, usd=0.5)
        return Measurement(
            value=float(subject.response == "yes"), rationale="read it", details={"was": subject.response}, cost=cost
        )


class Raises(Scorer):
    """Raises an error for every subject."""

    def score(self, subject: Subject) -> Measurement:
        raise ZeroDivisionError("a\nb" + "c" * 1_000)


class Hangs(Scorer):
    """Never returns a value for no."""

    async def score(self, subject: Subject) -> Measurement:
        if subject.response != "yes":
            await asyncio.Event().wait()
        return Measurement(value=1.0)


class Returns(Scorer):
    """Returns the object that the test sets."""

    returned: ClassVar[Any] = None

    def score(self, subject: Subject) -> Measurement:
        found: Measurement = self.returned
        return found
