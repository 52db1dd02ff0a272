"""Latency: how long did the user wait?"""

from __future__ import annotations

import math
from typing import ClassVar

from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.databricks_names import lacking


class Latency(Scorer):
    """Seconds from the question to the final answer; a session's value is the mean of its invocations. It takes no threshold.

    It is what the trace says, else what the endpoint's log says, else the time from `invocation.started` to `invocation.completed`.
    This is `agent/latency_seconds` of Databricks Agent Evaluation.
    """

    informational: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def score(self, subject: Subject) -> Measurement:
        """Read the duration."""
        invocation = subject.invocation
        if invocation is None or invocation.latency_seconds is None:
            why = "nothing says how long the answer took"
            raise MissingInput(lacking(invocation, why) if invocation else why)
        return Measurement(value=invocation.latency_seconds, rationale=f"{invocation.latency_seconds:g} s")
