"""Measures token counts: the input and output tokens of an invocation's model calls."""

from __future__ import annotations

import math
from typing import ClassVar

from traceweir.schemas.invocation import TokenUsage
from traceweir.schemas.refused_record import MODEL_CALLS
from traceweir.scorers.base import (
    Direction,
    Measurement,
    MissingInput,
    Scorer,
    Subject,
    invocation_of,
    require_accepted,
)
from traceweir.scorers.databricks_names import reason_with_unread


class InputTokenCount(Scorer):
    """Returns the number of input tokens of all model calls; a session's value is the mean of its invocations.

    The metric accepts no threshold. This is `agent/input_token_count` of Databricks Agent Evaluation.
    """

    informational: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str | None] = "tokens"

    def score(self, subject: Subject) -> Measurement:
        """Returns the number of input tokens."""
        return _measured(_usage_of(subject).input_tokens, "input", subject)


class OutputTokenCount(Scorer):
    """Returns the number of output tokens of all model calls; a session's value is the mean of its invocations.

    The metric accepts no threshold. This is `agent/output_token_count` of Databricks Agent Evaluation.
    """

    informational: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str | None] = "tokens"

    def score(self, subject: Subject) -> Measurement:
        """Returns the number of output tokens."""
        return _measured(_usage_of(subject).output_tokens, "output", subject)


class TotalTokenCount(Scorer):
    """Returns the number of input and output tokens, if both are known; a session's value is the invocations' mean.

    The metric accepts no threshold. This is `agent/total_token_count` of Databricks Agent Evaluation.
    """

    informational: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str | None] = "tokens"

    def score(self, subject: Subject) -> Measurement:
        """Returns the sum of the two counts."""
        usage = _usage_of(subject)
        both_known = usage.input_tokens is not None and usage.output_tokens is not None
        total = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        return _measured(total if both_known else None, "input and output", subject)


def _usage_of(subject: Subject) -> TokenUsage:
    invocation = invocation_of(subject)
    require_accepted(invocation, MODEL_CALLS)
    return invocation.reported_tokens or TokenUsage()


def _measured(count: int | None, kind: str, subject: Subject) -> Measurement:
    if count is None:
        reason = reason_with_unread(invocation_of(subject), f"no model call reports its {kind} tokens")
        raise MissingInput(reason, "not_recorded")
    return Measurement(value=float(count), rationale=f"{count} {kind} tokens")
