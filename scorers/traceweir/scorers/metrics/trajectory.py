"""Compares the tool calls of an invocation with the expected calls, as numbers from 0 to 1.

The metrics are those of Vertex AI's Gen AI evaluation service. Its documentation does not define empty trajectories,
repeated calls and the comparison of arguments. Here, calls are compared as in `tool_trajectory_avg_score`, a call that
is expected twice must be made twice, and each metric documents its value for empty trajectories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from traceweir.schemas.invocation import FunctionCall
from traceweir.scorers.base import (
    Measurement,
    MissingInput,
    Scorer,
    Subject,
    invocation_of,
    recorded_calls,
    require_arguments,
    require_calls,
)
from traceweir.scorers.metrics.tool_trajectory import call_key, matches, name_key


class _AgainstReference(Scorer):
    ignore_args: bool = False
    """Whether only the names of tools are compared."""

    def _calls(self, subject: Subject) -> tuple[Sequence[FunctionCall], Sequence[FunctionCall]]:
        """Returns the expected calls and the calls made.

        Raises:
            MissingInput: no reference lists the expected calls, or the arguments of a call are not known.
        """
        invocation = invocation_of(subject)
        if subject.reference is None or subject.reference.tool_uses is None:
            raise MissingInput("no reference says which tool calls were expected")
        require_calls(invocation)
        if not self.ignore_args:
            require_arguments(invocation)
        return subject.reference.tool_uses, invocation.tool_uses


class _Match(_AgainstReference):
    match_type: ClassVar[str]

    def score(self, subject: Subject) -> Measurement:
        """Returns 1 if the calls match, else 0."""
        expected, actual = self._calls(subject)
        matched = matches(expected, actual, self.match_type, ignore_args=self.ignore_args)
        verdict = "match" if matched else "do not match"
        rationale = f"{len(expected)} calls expected, {len(actual)} made: they {verdict}"
        return Measurement(value=float(matched), rationale=rationale)


class TrajectoryExactMatch(_Match):
    """Returns 1 if exactly the expected calls were made in the expected order, else 0 (`trajectory_exact_match`)."""

    match_type = "EXACT"


class TrajectoryInOrderMatch(_Match):
    """Returns 1 if the expected calls were made in the expected order, else 0 (`trajectory_in_order_match`).

    Other calls between them are allowed. If no call is expected, the value is 1.
    """

    match_type = "IN_ORDER"


class TrajectoryAnyOrderMatch(_Match):
    """Returns 1 if the expected calls were made in any order, else 0 (`trajectory_any_order_match`).

    Other calls are allowed. If no call is expected, the value is 1.
    """

    match_type = "ANY_ORDER"


class _Share(_AgainstReference):
    def _call_counts(self, subject: Subject) -> tuple[int, int, int]:
        """Returns the number of expected calls, of calls made, and of calls that are both, counting repeated calls."""
        expected, actual = self._calls(subject)
        key = name_key if self.ignore_args else call_key
        common = Counter(map(key, expected)) & Counter(map(key, actual))
        return len(expected), len(actual), common.total()


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
