"""Checks whether the tools that an agent called failed, and whether it called them again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from typing import ClassVar

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import Level
from traceweir.scorers.base import (
    Direction,
    Measurement,
    Measurements,
    MissingInput,
    Scorer,
    Subject,
    invocation_of,
    require_arguments,
    turns_of_session,
)
from traceweir.scorers.metrics.call_comparison import call_key
from traceweir.scorers.metrics.checks.tool_use import (
    CallOutcome,
    counts_of,
    named_turns,
    require_outcomes,
    require_results,
    shown_call,
    shown_names,
    summed_counts,
    tool_uses_of,
)


class NoToolErrors(Scorer):
    """Returns 1 if no tool call of the invocation failed, else 0; a session's value is the mean of its invocations.

    `is_failure` of `traceweir.schemas.tool_results` says which results are failures. An invocation without tool calls
    has the value 1. Without the result of each call there is a value only if another call has failed. `details.tools`
    has the calls and the errors of each tool.
    """

    default_threshold: ClassVar[float | None] = 1.0

    def score(self, subject: Subject) -> Measurement:
        """Looks for failed calls."""
        invocation = invocation_of(subject)
        uses = tool_uses_of(subject)
        failed = [use.call.name for use in uses if use.failed]
        if not failed:
            require_results(invocation, uses)
        return Measurement(
            value=float(not failed), rationale=_counted(failed, len(uses)), details={"tools": counts_of(uses)}
        )

    def summary(self, measured: Measurements) -> JsonObject:
        """Returns the calls and the errors of each tool over the session."""
        return {"tools": summed_counts(measured)}


class ToolErrorRate(Scorer):
    """Returns the share of the tool calls that failed, from 0 to 1; less is better.

    A session's value is the share over all calls of its invocations. Calls without a recorded result do not count;
    there is no value without any result, and none without a call. `is_failure` of `traceweir.schemas.tool_results` says
    which results are failures. `details.tools` has the calls and the errors of each tool.
    """

    direction: ClassVar[Direction] = "lower"

    def score(self, subject: Subject) -> Measurement:
        """Counts the failed calls."""
        invocation = invocation_of(subject)
        uses = tool_uses_of(subject)
        if not uses:
            raise MissingInput("no tool was called, so there is no share of failed calls")
        require_outcomes(invocation)
        known = [use for use in uses if use.failed is not None]
        if not known:
            require_results(invocation, uses)
        failed = [use.call.name for use in known if use.failed]
        return Measurement(
            value=len(failed) / len(known),
            rationale=_counted(failed, len(known)),
            details={"failed": len(failed), "results": len(known), "tools": counts_of(uses)},
        )

    def aggregate(self, measured: Measurements) -> float:
        """Returns the share of failed calls over the whole session."""
        return _sum(measured, "failed") / _sum(measured, "results")

    def summary(self, measured: Measurements) -> JsonObject:
        """Returns the calls and the errors of each tool over the session."""
        sums: JsonObject = {name: _sum(measured, name) for name in ("failed", "results")}
        return {**sums, "tools": summed_counts(measured)}


class RetriesAfterError(Scorer):
    """Returns the greatest number of times that the agent repeated a failed call in a session; less is better.

    A repeat is a later call of the same tool with equal arguments, after a call of it failed and before one succeeded.
    An agent that changes the arguments, or calls another tool, repeats nothing. `details.recovered` counts the tools
    that failed and later succeeded, with any arguments.
    """

    level: ClassVar[Level] = "session"
    direction: ClassVar[Direction] = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    unit: ClassVar[str | None] = "calls"

    def score(self, subject: Subject) -> Measurement:
        """Counts the repeats of each failed call, over the turns of the session."""
        uses: list[CallOutcome] = []
        names: list[str] = []
        for turn in turns_of_session(subject):
            found = tool_uses_of(subject, turn.invocation)
            require_results(turn.invocation, found)
            require_arguments(turn.invocation)
            uses += found
            names += [turn.invocation.invocation_id] * len(found)
        repeats: Counter[Hashable] = Counter()
        most: Counter[Hashable] = Counter()
        first: dict[Hashable, CallOutcome] = {}
        failed: set[Hashable] = set()
        tools_failed: set[str] = set()
        recovered: set[str] = set()
        turns: dict[Hashable, dict[str, None]] = {}
        for use, name in zip(uses, names, strict=True):
            key = call_key(use.call)
            if use.failed or key in failed:
                turns.setdefault(key, {})[name] = None
            if key in failed:
                repeats[key] += 1
                most[key] = max(most[key], repeats[key])
            if use.failed:
                failed.add(key)
                first.setdefault(key, use)
                tools_failed.add(use.call.name)
            else:
                failed.discard(key)
                repeats.pop(key, None)
                if use.call.name in tools_failed:
                    recovered.add(use.call.name)
        details: JsonObject = {"recovered": len(recovered), "tools": counts_of(uses)}
        if not most:
            return Measurement(value=0.0, rationale="no failed call was repeated", details=details)
        ((key, count),) = most.most_common(1)
        rationale = f"a failed call of {shown_names([first[key].call.name])} was repeated {count} times"
        details |= {"call": shown_call(first[key].call), "turns": named_turns(turns[key])}
        return Measurement(value=float(count), rationale=rationale, details=details)


def _counted(failed: list[str], of: int) -> str:
    if not failed:
        return f"none of {of} tool calls failed" if of else "no tool was called"
    return f"{len(failed)} of {of} tool calls failed: {shown_names(list(dict.fromkeys(failed)))}"


def _sum(measured: Measurements, name: str) -> int:
    return sum(count for each in measured if isinstance(count := each.details.get(name), int))
