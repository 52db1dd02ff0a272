"""Measures tool call accuracy: whether the agent called the tool, or the sequence of tools, that the config names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from traceweir.scorers.base import Measurement, Scorer, Subject, invocation_of, recorded_calls
from traceweir.scorers.text.messages import shown

Name = Annotated[str, Field(min_length=1)]


class ToolCallAccuracy(Scorer):
    """Returns 1 if the agent called the tools that the config names, else 0.

    With `expected_tool_order`, the first calls of these tools must occur in that order, and other calls between them
    are allowed; in strict mode the calls must equal the list. With `expected_tool` alone, the calls must contain this
    tool; in strict mode it must be the only call. An invocation without calls has the value 0, and one whose calls were
    not recorded has none. The metric needs no reference; the `trajectory_*` metrics compare with a reference. This is
    `createToolCallAccuracyScorerCode` of @mastra/evals 1.10.

    >>> calls_in_order(["find", "check", "book"], ["find", "book"], strict=False)
    True

    Raises:
        ValueError: neither option is given.
    """

    version: ClassVar[str] = "2"

    expected_tool: Name | None = None
    """The tool that the agent must call."""
    expected_tool_order: Annotated[list[Name], Field(min_length=1)] | None = None
    """The tools that the agent must call in this order; `expected_tool` then has no effect."""
    strict_mode: bool = False
    """Whether other calls are forbidden."""

    @model_validator(mode="after")
    def _check_expectation(self) -> Self:
        if self.expected_tool is None and self.expected_tool_order is None:
            raise ValueError("expected_tool or expected_tool_order must be given")
        return self

    def score(self, subject: Subject) -> Measurement:
        """Compares the names of the invocation's calls with the expected names."""
        invocation = invocation_of(subject)
        called = [call.name for call in recorded_calls(invocation)]
        if self.expected_tool_order is not None:
            correct = bool(called) and calls_in_order(called, self.expected_tool_order, strict=self.strict_mode)
            expected = f"{len(self.expected_tool_order)} tools in order"
        else:
            correct = called == [self.expected_tool] if self.strict_mode else self.expected_tool in called
            expected = f"the tool {self.expected_tool!r}"
        only = " and no other call" if self.strict_mode else ""
        verdict = "the calls match" if correct else "the calls do not match"
        return Measurement(
            value=float(correct),
            rationale=f"expected {expected}{only}: {verdict}; {len(called)} calls were made",
            details={} if correct else {"called": shown(called)},
        )


def calls_in_order(called: Sequence[str], expected: Sequence[str], *, strict: bool) -> bool:
    """Returns whether the first calls of the expected tools occur in the expected order.

    If `strict` is set, returns whether the two lists are equal.
    """
    if strict:
        return list(called) == list(expected)
    first: dict[str, int] = {}
    for place, name in enumerate(called):
        first.setdefault(name, place)
    places = [first.get(name, -1) for name in expected]
    return all(place >= 0 for place in places) and all(one < other for one, other in pairwise(places))
