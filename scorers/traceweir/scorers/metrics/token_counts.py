"""Token counts: what the models of an invocation read and wrote."""

from __future__ import annotations

import math
from typing import ClassVar

from traceweir.schemas.invocation import TokenUsage
from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.databricks_names import lacking


class InputTokenCount(Scorer):
    """Tokens that models read; a session's value is the mean of its invocations. It takes no threshold.

    This is `agent/input_token_count` of Databricks Agent Evaluation.
    """

    informational: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def score(self, subject: Subject) -> Measurement:
        """Read the count."""
        return _measured(_usage_of(subject).input_tokens, "input", subject)


class OutputTokenCount(Scorer):
    """Tokens that models wrote; a session's value is the mean of its invocations. It takes no threshold.

    This is `agent/output_token_count` of Databricks Agent Evaluation.
    """

    informational: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def score(self, subject: Subject) -> Measurement:
        """Read the count."""
        return _measured(_usage_of(subject).output_tokens, "output", subject)


class TotalTokenCount(Scorer):
    """Tokens that models read and wrote, where both are known; a session's value is the mean of its invocations.

    It takes no threshold. This is `agent/total_token_count` of Databricks Agent Evaluation.
    """

    informational: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def score(self, subject: Subject) -> Measurement:
        """Add the counts."""
        usage = _usage_of(subject)
        both = usage.input_tokens is not None and usage.output_tokens is not None
        total = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        return _measured(total if both else None, "input and output", subject)


def _usage_of(subject: Subject) -> TokenUsage:
    usage = subject.invocation.token_usage if subject.invocation else None
    return usage or TokenUsage()


def _measured(count: int | None, which: str, subject: Subject) -> Measurement:
    if count is None or subject.invocation is None:
        why = f"no model call says how many {which} tokens it took"
        raise MissingInput(lacking(subject.invocation, why) if subject.invocation else why)
    return Measurement(value=float(count), rationale=f"{count} {which} tokens")
