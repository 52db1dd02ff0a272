"""Checks which tools an agent called, and how often it called one with the same arguments."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import FunctionCall, Level
from traceweir.scorers.base import (
    Direction,
    Measurement,
    Measurements,
    Scorer,
    Subject,
    require_arguments,
    turns_of_session,
)
from traceweir.scorers.metrics.call_comparison import call_key
from traceweir.scorers.metrics.checks.tool_use import (
    CallOutcome,
    counts_of,
    named_turns,
    shown_call,
    shown_names,
    summed_counts,
    tool_uses_of,
)

Name = Annotated[str, Field(min_length=1)]


class ForbiddenTools(Scorer):
    """Returns 1 if the agent called none of the tools in `tools`, else 0; a session's value is the mean.

    `details.tools` has the calls and the errors of each tool that was called.
    """

    default_threshold: ClassVar[float | None] = 1.0

    tools: Annotated[list[Name], Field(min_length=1, max_length=1_000)]
    """The names of the tools that must not be called; upper and lower case differ."""

    def score(self, subject: Subject) -> Measurement:
        """Looks for calls of these tools."""
        uses = tool_uses_of(subject)
        forbidden = set(self.tools)
        called = Counter(use.call.name for use in uses if use.call.name in forbidden)
        rationale = (
            f"forbidden tools were called: {shown_names(sorted(called))}"
            if called
            else f"none of {len(forbidden)} forbidden tools was called"
        )
        return Measurement(value=float(not called), rationale=rationale, details={"tools": counts_of(uses)})

    def summary(self, measured: Measurements) -> JsonObject:
        """Returns the calls and the errors of each tool over the session."""
        return {"tools": summed_counts(measured)}


class RepeatedCalls(Scorer):
    """Returns how often the agent made the call that it made most often, in a session; less is better.

    Two calls are equal if the tool and its arguments are equal, as `tool_trajectory_avg_score` compares them. A session
    without calls has 0, and one without equal calls has 1. A greater number is often a loop.
    """

    level: ClassVar[Level] = "session"
    direction: ClassVar[Direction] = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    unit: ClassVar[str | None] = "calls"

    within: Literal["session", "invocation"] = "session"
    """Whether calls of different invocations are equal too, or only those of one invocation."""
    ignore_tools: list[Name] = []
    """Tools that may be called again and again, such as one that waits."""

    def score(self, subject: Subject) -> Measurement:
        """Counts equal calls over the turns of the session."""
        counts: Counter[Hashable] = Counter()
        first: dict[Hashable, FunctionCall] = {}
        turns: dict[Hashable, dict[str, None]] = {}
        uses: list[CallOutcome] = []
        for position, turn in enumerate(turns_of_session(subject)):
            found = tool_uses_of(subject, turn.invocation)
            require_arguments(turn.invocation)
            uses += found
            for use in found:
                if use.call.name not in self.ignore_tools:
                    key: Hashable = (call_key(use.call), position if self.within == "invocation" else None)
                    counts[key] += 1
                    first.setdefault(key, use.call)
                    turns.setdefault(key, {})[turn.invocation.invocation_id] = None
        details: JsonObject = {"tools": counts_of(uses)}
        if not counts:
            return Measurement(value=0.0, rationale="no tool was called", details=details)
        ((key, count),) = counts.most_common(1)
        if count == 1:
            return Measurement(value=1.0, rationale=f"none of {len(uses)} tool calls was repeated", details=details)
        return Measurement(
            value=float(count),
            rationale=f"a call of {shown_names([first[key].name])} was made {count} times with equal arguments",
            details={**details, "call": shown_call(first[key]), "turns": named_turns(turns[key])},
        )
