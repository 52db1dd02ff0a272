"""Checks what an invocation uses against a limit: tool calls, model calls, tokens, seconds, handoffs.

The value is what was used and the threshold is the greatest value that has PASSED. Therefore, less is better.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import Invocation, InvocationEvents
from traceweir.schemas.refused_record import INTERMEDIATE
from traceweir.scorers.base import (
    Direction,
    Measurement,
    Measurements,
    MissingInput,
    Scorer,
    Subject,
    invocation_of,
    recorded_calls,
    require_accepted,
    require_read,
)
from traceweir.scorers.metrics.checks.tool_use import counts_of, summed_counts, tool_uses_of
from traceweir.scorers.metrics.efficiency import InferenceCallCount, InvocationDuration
from traceweir.scorers.metrics.token_counts import TotalTokenCount


class _Limit(Scorer):
    direction: ClassVar[Direction] = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)

    of_session: bool = False
    """Whether the session's value is the sum over its invocations, and not their greatest value."""

    @abstractmethod
    def score(self, subject: Subject) -> Measurement:
        """Returns what the invocation used."""

    def aggregate(self, measured: Measurements) -> float:
        """Returns the greatest value of an invocation, or their sum.

        Raises:
            MissingInput: the sum is asked for, and an invocation has no value.
        """
        values = [each.value for each in measured]
        if not self.of_session:
            return max(values)
        if len(values) < measured.invocations:
            unknown = measured.invocations - len(values)
            raise MissingInput(f"{unknown} of {measured.invocations} invocations have no value, so the sum is unknown")
        return sum(values)


class MaxToolCalls(_Limit):
    """Returns the number of tool calls of an invocation, at most the threshold to pass.

    A session's value is that of the invocation with the most calls, or the sum with `of_session`. `details.tools` has
    the calls and the errors of each tool.
    """

    unit: ClassVar[str | None] = "calls"

    def score(self, subject: Subject) -> Measurement:
        """Counts the tool calls."""
        uses = tool_uses_of(subject)
        rationale = f"{len(uses)} tool {'call' if len(uses) == 1 else 'calls'}"
        return Measurement(value=float(len(uses)), rationale=rationale, details={"tools": counts_of(uses)})

    def summary(self, measured: Measurements) -> JsonObject:
        """Returns the calls and the errors of each tool over the session."""
        return {"tools": summed_counts(measured)}


class MaxModelCalls(_Limit):
    """Returns the number of model calls of an invocation, as `inference_call_count_v1` counts them.

    The value is at most the threshold to pass. A session's value is the greatest, or the sum with `of_session`.
    """

    unit: ClassVar[str | None] = "calls"

    def score(self, subject: Subject) -> Measurement:
        """Counts the model calls."""
        return InferenceCallCount().score(subject)


class MaxTokens(_Limit):
    """Returns the input and output tokens of an invocation, as `total_token_count` counts them.

    The value is at most the threshold to pass. A session's value is the greatest, or the sum with `of_session`.
    """

    unit: ClassVar[str | None] = "tokens"

    def score(self, subject: Subject) -> Measurement:
        """Adds the tokens."""
        # A part of them would pass where all do not.
        require_read(invocation_of(subject), "tokens")
        return TotalTokenCount().score(subject)


class MaxDuration(_Limit):
    """Returns the seconds that an invocation took, as `invocation_duration_v1` finds them.

    The value is at most the threshold to pass. A session's value is the greatest, or the sum with `of_session`: the time
    in which the agent worked, without the time in which the user thought.
    """

    unit: ClassVar[str | None] = "s"

    def score(self, subject: Subject) -> Measurement:
        """Returns the duration in seconds."""
        return InvocationDuration().score(subject)


class Handoffs(_Limit):
    """Returns how often one agent handed an invocation over to another, at most the threshold to pass.

    A handoff is a change of the agent that speaks, or, if that is more, a call of a tool `transfer_to_agent` (Google
    ADK) or `transfer_to_...` (the Agents SDK of OpenAI, LangGraph). A session's value is the greatest, or the sum with
    `of_session`.
    """

    unit: ClassVar[str | None] = "handoffs"

    def score(self, subject: Subject) -> Measurement:
        """Counts the handoffs."""
        invocation = invocation_of(subject)
        transfers = sum(call.name.startswith("transfer_to_") for call in recorded_calls(invocation))
        require_accepted(invocation, INTERMEDIATE)
        authors = list(_authors(invocation))
        changes = sum(one != other for one, other in pairwise(authors))
        count = max(changes, transfers)
        agents = len(set(authors))
        return Measurement(value=float(count), rationale=f"{count} handoffs; {agents} agents are named")


def _authors(invocation: Invocation) -> Iterator[str]:
    data = invocation.intermediate_data
    if isinstance(data, InvocationEvents):
        yield from (step.author for step in data.invocation_events if step.author not in ("", "user"))
    elif data is not None:
        yield from (author for author, _ in data.intermediate_responses if author not in ("", "user"))
