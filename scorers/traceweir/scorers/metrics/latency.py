"""Measures latency: the time that the user waits for the final answer."""

from __future__ import annotations

import math
from typing import ClassVar

from traceweir.scorers.base import Direction, Measurement, MissingInput, Scorer, Subject, invocation_of
from traceweir.scorers.databricks_names import reason_with_unread


class Latency(Scorer):
    """Returns the seconds from the question to the final answer; a session's value is the mean of its invocations.

    The metric accepts no threshold. The latency comes from the trace; if the trace has none, from the endpoint's log;
    and otherwise from the times of `invocation.started` and `invocation.completed`. This is `agent/latency_seconds` of
    Databricks Agent Evaluation.
    """

    informational: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str | None] = "s"

    def score(self, subject: Subject) -> Measurement:
        """Returns the latency of the invocation in seconds."""
        invocation = invocation_of(subject)
        if invocation.latency_seconds is None:
            raise MissingInput(
                reason_with_unread(invocation, "the latency of the invocation is unknown"), "not_recorded"
            )
        return Measurement(value=invocation.latency_seconds, rationale=f"{invocation.latency_seconds:g} s")
