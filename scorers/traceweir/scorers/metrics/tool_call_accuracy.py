"""Tool call accuracy: did the agent call the tool, or the tools in the order, that the config names?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, model_validator

from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.text.messages import shown

Name = Annotated[str, Field(min_length=1)]


class ToolCallAccuracy(Scorer):
    """1 if the tools that the config names were called, else 0; this is `createToolCallAccuracyScorerCode` of @mastra/evals 1.10.

    With `expected_tool_order` its first calls must come in that order, others among them allowed; in strict mode there may be no others
    and none twice more. Else `expected_tool` must be among the calls; in strict mode, be the only one. Without any call it is 0. No
    reference is needed; the `trajectory_*` metrics compare with one.

    >>> calls_in_order(["find", "check", "book"], ["find", "book"], strict=False)
    True

    Raises:
        ValueError: neither option is given.
    """

    expected_tool: Name | None = None
    """The tool that has to be called."""
    expected_tool_order: Annotated[list[Name], Field(min_length=1)] | None = None
    """The tools that have to be called in this order; then `expected_tool` has no effect."""
    strict_mode: bool = False
    """Whether no other call is allowed."""

    @model_validator(mode="after")
    def _something_is_expected(self) -> Self:
        if self.expected_tool is None and self.expected_tool_order is None:
            raise ValueError("expected_tool or expected_tool_order must be given")
        return self

    def score(self, subject: Subject) -> Measurement:
        """Look at the names of the invocation's calls."""
        if subject.invocation is None:
            raise MissingInput("there is no invocation")
        called = [call.name for call in subject.invocation.tool_uses]
        if self.expected_tool_order is not None:
            right = bool(called) and calls_in_order(called, self.expected_tool_order, strict=self.strict_mode)
            wanted = f"{len(self.expected_tool_order)} tools in order"
        else:
            right = called == [self.expected_tool] if self.strict_mode else self.expected_tool in called
            wanted = f"the tool {self.expected_tool!r}"
        only = " and nothing else" if self.strict_mode else ""
        said = "as it was" if right else "but it was not so"
        return Measurement(
            value=float(right),
            rationale=f"{wanted}{only} had to be called, {said}; {len(called)} calls were made",
            details={} if right else {"called": shown(called)},
        )


def calls_in_order(called: Sequence[str], expected: Sequence[str], *, strict: bool) -> bool:
    """Whether the first call of each expected tool comes after that of the one before it; strictly, whether the lists are equal."""
    if strict:
        return list(called) == list(expected)
    first: dict[str, int] = {}
    for place, name in enumerate(called):
        first.setdefault(name, place)
    places = [first.get(name, -1) for name in expected]
    return all(place >= 0 for place in places) and all(one < other for one, other in pairwise(places))
