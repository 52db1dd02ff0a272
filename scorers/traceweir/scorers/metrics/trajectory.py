"""Trajectory metrics: how the tool calls of an invocation compare with those expected, as numbers from 0 to 1.

The metrics are those of Vertex AI's Gen AI evaluation service, whose documentation defines them but for empty trajectories,
repeated calls and the comparison of arguments. Here calls are equal as for `tool_trajectory_avg_score`, a call that is expected
twice has to be made twice, and what is empty is decided with each metric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from traceweir.schemas.invocation import FunctionCall
from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.metrics.tool_trajectory import call_key, matches, name_key


class _AgainstReference(Scorer):
    ignore_args: bool = False
    """Whether only the names of tools are compared."""

    def _calls(self, subject: Subject) -> tuple[Sequence[FunctionCall], Sequence[FunctionCall]]:
        """The calls expected and the calls made.

        Raises:
            Missing: no reference says what was expected.
        """
        if subject.invocation is None or subject.reference is None or subject.reference.tool_uses is None:
            raise MissingInput("no reference says which tool calls were expected")
        return subject.reference.tool_uses, subject.invocation.tool_uses


class _Match(_AgainstReference):
    match_type: ClassVar[str]

    def score(self, subject: Subject) -> Measurement:
        """1 if the calls match, else 0."""
        expected, actual = self._calls(subject)
        matched = matches(expected, actual, self.match_type, ignore_args=self.ignore_args)
        said = "match" if matched else "do not match"
        rationale = f"{len(expected)} calls expected, {len(actual)} made: they {said}"
        return Measurement(value=float(matched), rationale=rationale)


class TrajectoryExactMatch(_Match):
    """1 if exactly the expected calls were made in the expected order, else 0 (`trajectory_exact_match`)."""

    match_type = "EXACT"


class TrajectoryInOrderMatch(_Match):
    """1 if the expected calls were made in the expected order, others among them allowed, else 0 (`trajectory_in_order_match`).

    With none expected it is 1.
    """

    match_type = "IN_ORDER"


class TrajectoryAnyOrderMatch(_Match):
    """1 if the expected calls were made, in any order and others beside them allowed, else 0 (`trajectory_any_order_match`).

    With none expected it is 1.
    """

    match_type = "ANY_ORDER"


class _Share(_AgainstReference):
    def _counted(self, subject: Subject) -> tuple[int, int, int]:
        """How many calls were expected, made, and both; a call made once counts once."""
        expected, actual = self._calls(subject)
        key = name_key if self.ignore_args else call_key
        common = Counter(map(key, expected)) & Counter(map(key, actual))
        return len(expected), len(actual), common.total()


class TrajectoryPrecision(_Share):
    """The share of the calls made that were expected (`trajectory_precision`).

    With none made it is 1 if none was expected, else 0: nothing of it was right.
    """

    def score(self, subject: Subject) -> Measurement:
        """Calls both made and expected, by calls made."""
        expected, actual, common = self._counted(subject)
        value = common / actual if actual else float(not expected)
        return Measurement(value=value, rationale=f"{common} of {actual} calls made were expected")


class TrajectoryRecall(_Share):
    """The share of the calls expected that were made (`trajectory_recall`). With none expected it is 1."""

    def score(self, subject: Subject) -> Measurement:
        """Calls both made and expected, by calls expected."""
        expected, _, common = self._counted(subject)
        value = common / expected if expected else 1.0
        return Measurement(value=value, rationale=f"{common} of {expected} expected calls were made")


class TrajectorySingleToolUse(Scorer):
    """1 if a tool was used, however often and whatever its arguments, else 0 (`trajectory_single_tool_use`). No reference is needed.

    >>> TrajectorySingleToolUse(tool_name="find").tool_name
    'find'
    """

    tool_name: Annotated[str, Field(min_length=1)]
    """The tool that has to be used."""

    def score(self, subject: Subject) -> Measurement:
        """Look for the tool among the invocation's calls."""
        if subject.invocation is None:
            raise MissingInput("there is no invocation")
        times = sum(call.name == self.tool_name for call in subject.invocation.tool_uses)
        return Measurement(value=float(times > 0), rationale=f"{self.tool_name} was used {times} times")
