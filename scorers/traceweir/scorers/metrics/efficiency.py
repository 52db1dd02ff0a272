"""Measures what an invocation costs, by the informational metrics that Google ADK reports on every eval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, cast

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import Invocation, known_sum
from traceweir.schemas.refused_record import MODEL_CALLS
from traceweir.scorers.base import (
    Direction,
    Measurement,
    Measurements,
    MissingInput,
    Scorer,
    Subject,
    invocation_of,
    require_accepted,
    require_calls,
)
from traceweir.scorers.databricks_names import reason_with_unread


class ToolCallCount(Scorer):
    """Returns the number of recorded tool calls; a session's value is the mean of its invocations.

    As in ADK, an invocation without intermediate data has 0, unless its source says that calls are missing. The metric
    accepts no threshold. This is `tool_call_count_v1` of Google ADK.
    """

    informational: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    unit: ClassVar[str | None] = "calls"

    def score(self, subject: Subject) -> Measurement:
        """Counts the tool calls."""
        invocation = invocation_of(subject)
        require_calls(invocation)
        count = len(invocation.tool_uses)
        return Measurement(value=float(count), rationale=f"{count} tool {'call' if count == 1 else 'calls'}")


class InferenceCallCount(Scorer):
    """Returns the number of model calls; a session's value is the mean of the invocations with a count.

    The count comes from `model.called` events, from `inference_call_count`, or from events with `usage_metadata` or
    `model_version`. ADK reports 0 for event-shaped data that tells of no model call; here such a count is missing.
    The metric accepts no threshold. This is `inference_call_count_v1` of Google ADK.
    """

    informational: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    unit: ClassVar[str | None] = "calls"

    def score(self, subject: Subject) -> Measurement:
        """Counts the model calls."""
        invocation = invocation_of(subject)
        require_accepted(invocation, MODEL_CALLS)
        if (count := invocation.model_calls) is None:
            raise MissingInput(reason_with_unread(invocation, "the invocation tells of no model call"), "not_recorded")
        return Measurement(value=float(count), rationale=f"{count} model {'call' if count == 1 else 'calls'}")


class TokenUsageTotal(Scorer):
    """Returns the sum of the input and output tokens of all model calls; a count that is not reported adds nothing.

    `details` contains the counts. As in ADK, a session's value and details are sums divided by the number of all its
    invocations, because a provider leaves out a count of 0. The metric accepts no threshold. This is `token_usage_v1`
    of Google ADK.
    """

    informational: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str | None] = "tokens"

    def score(self, subject: Subject) -> Measurement:
        """Adds the counts."""
        invocation = invocation_of(subject)
        require_accepted(invocation, MODEL_CALLS)
        if (usage := invocation.reported_tokens) is None:
            raise MissingInput(reason_with_unread(invocation, "no model call reports its tokens"), "not_recorded")
        total = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens} | _parts(invocation)
        known: JsonObject = {name: count for name, count in counts.items() if count is not None}
        return Measurement(value=float(total), rationale=f"{total} tokens", details=known)

    def aggregate(self, measured: Measurements) -> float:
        """Returns the tokens per invocation, over all invocations of the session."""
        return sum(each.value for each in measured) / measured.invocations

    def summary(self, measured: Measurements) -> JsonObject:
        """Returns each count per invocation, over all invocations of the session."""
        names = dict.fromkeys(name for each in measured for name in each.details)
        return {name: sum(_count(each.details, name) for each in measured) / measured.invocations for name in names}


class InvocationDuration(Scorer):
    """Returns the seconds that the invocation took; a session's value is the mean of the invocations with a duration.

    The value is `duration`, which ADK measures, or else the seconds from the question to the final answer: those of
    the trace, or the time between `invocation.started` and `invocation.completed`. ADK has no value without
    `duration`, because its events have the times at which they were built. The metric accepts no threshold. This is
    `invocation_duration_v1` of Google ADK.
    """

    informational: ClassVar[bool] = True
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    direction: ClassVar[Direction] = "lower"
    unit: ClassVar[str | None] = "s"

    def score(self, subject: Subject) -> Measurement:
        """Returns the duration in seconds."""
        invocation = invocation_of(subject)
        seconds = invocation.latency_seconds if invocation.duration is None else invocation.duration
        if seconds is None:
            raise MissingInput(
                reason_with_unread(invocation, "the duration of the invocation is unknown"), "not_recorded"
            )
        return Measurement(value=seconds, rationale=f"{seconds:g} s")


def _parts(invocation: Invocation) -> dict[str, int | None]:
    usages = invocation.usages
    return {
        "prompt_tokens": known_sum(each.prompt_token_count for each in usages),
        "cached_tokens": known_sum(each.cached_content_token_count for each in usages),
        "tool_use_tokens": known_sum(each.tool_use_prompt_token_count for each in usages),
        "candidates_tokens": known_sum(each.candidates_token_count for each in usages),
        "reasoning_tokens": known_sum(each.thoughts_token_count for each in usages),
    }


def _count(details: Mapping[str, JsonValue], name: str) -> int:
    # `score` writes only integers.
    return cast("int", details.get(name, 0))
