"""Compares the tool calls of an invocation with the expected calls, as numbers from 0 to 1.

The metrics are those of Vertex AI's Gen AI evaluation service. Its documentation does not define empty trajectories,
repeated and parallel calls, and the comparison of arguments. Here, calls are compared as in `tool_trajectory_avg_score`,
a call that is expected twice must be made twice, and each metric documents its value for empty trajectories.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from traceweir.scorers.base import Measurement, Scorer, Subject, invocation_of, recorded_calls
from traceweir.scorers.metrics.call_matching import number_matched
from traceweir.scorers.metrics.expected_calls import (
    AgainstExpectedCalls,
    MatchType,
    first_difference,
    is_match,
)


class _MatchOfCalls(AgainstExpectedCalls):
    match_type: ClassVar[MatchType]

    def score(self, subject: Subject) -> Measurement:
        """Returns 1 if the calls match, else 0."""
        expected, invocation = self.calls(subject)
        answers = invocation.calls_by_answer
        counts = f"{len(expected)} calls expected, {sum(map(len, answers))} made"
        if is_match(self.match_type, expected, answers, self.comparison()):
            return Measurement(value=1.0, rationale=f"{counts}: they match")
        found = first_difference(self.match_type, expected, answers, self.comparison())
        return Measurement(value=0.0, rationale=f"{counts}: they do not match" + (f"; {found}" if found else ""))


class TrajectoryExactMatch(_MatchOfCalls):
    """Returns 1 if exactly the expected calls were made in the expected order, else 0 (`trajectory_exact_match`).

    The order between the calls of one answer of the model does not matter.
    """

    version = "2"
    match_type = "EXACT"


class TrajectoryInOrderMatch(_MatchOfCalls):
    """Returns 1 if the expected calls were made in the expected order, else 0 (`trajectory_in_order_match`).

    Other calls between them are allowed, and the order between the calls of one answer of the model does not matter. If
    no call is expected, the value is 1.
    """

    version = "2"
    match_type = "IN_ORDER"


class TrajectoryAnyOrderMatch(_MatchOfCalls):
    """Returns 1 if the expected calls were made in any order, else 0 (`trajectory_any_order_match`).

    Other calls are allowed. If no call is expected, the value is 1.
    """

    match_type = "ANY_ORDER"


class _Share(AgainstExpectedCalls):
    def _call_counts(self, subject: Subject) -> tuple[int, int, int]:
        """Returns the number of expected calls, of calls made, and of calls that are both, counting repeated calls."""
        expected, invocation = self.calls(subject)
        actual = invocation.tool_uses
        return len(expected), len(actual), number_matched(expected, actual, self.comparison())


class TrajectoryPrecision(_Share):
    """Returns the share of the calls made that were expected, from 0 to 1 (`trajectory_precision`).

    If no call was made, the value is 1 if none was expected, else 0, because none of the expected calls was made.
    """

    def score(self, subject: Subject) -> Measurement:
        """Returns the number of calls both made and expected, divided by the number of calls made."""
        expected, actual, common = self._call_counts(subject)
        value = common / actual if actual else float(not expected)
        return Measurement(value=value, rationale=f"{common} of {actual} calls made were expected")


class TrajectoryRecall(_Share):
    """Returns the share of the expected calls that were made, from 0 to 1 (`trajectory_recall`).

    If no call is expected, the value is 1.
    """

    def score(self, subject: Subject) -> Measurement:
        """Returns the number of calls both made and expected, divided by the number of expected calls."""
        expected, _, common = self._call_counts(subject)
        value = common / expected if expected else 1.0
        return Measurement(value=value, rationale=f"{common} of {expected} expected calls were made")


class TrajectorySingleToolUse(Scorer):
    """Returns 1 if the agent called a given tool at least once, else 0 (`trajectory_single_tool_use`).

    The arguments do not matter, and the metric needs no reference. Without recorded tool calls there is no value.

    >>> TrajectorySingleToolUse(tool_name="find").tool_name
    'find'
    """

    version: ClassVar[str] = "2"

    tool_name: Annotated[str, Field(min_length=1)]
    """The tool that the agent must call."""

    def score(self, subject: Subject) -> Measurement:
        """Counts the calls of the tool."""
        invocation = invocation_of(subject)
        count = sum(call.name == self.tool_name for call in recorded_calls(invocation))
        return Measurement(value=float(count > 0), rationale=f"{self.tool_name} was called {count} times")
