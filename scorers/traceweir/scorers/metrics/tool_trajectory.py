"""Measures the tool trajectory: whether the agent's tool calls match the expected tool calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, JsonValue

from traceweir.schemas.invocation import FunctionCall
from traceweir.scorers.base import (
    Measurement,
    MissingInput,
    Scorer,
    Subject,
    invocation_of,
    require_arguments,
    require_calls,
)

SHOWN_CALLS = 20
SHOWN_CHARACTERS = 200

MATCH_TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")


def _match_type(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(MATCH_TYPES):
        return MATCH_TYPES[value]
    return value.strip().upper().replace("-", "_").replace(" ", "_") if isinstance(value, str) else value


MatchType = Annotated[Literal["EXACT", "IN_ORDER", "ANY_ORDER"], BeforeValidator(_match_type)]
"""A match type, read as Google ADK reads it: `in_order`, `In-Order`, `in order` and 1 are equal."""


class ToolTrajectory(Scorer):
    """Returns 1 if an invocation's tool calls match those of its reference, else 0.

    EXACT requires the same calls in the same order and no other calls. IN_ORDER also allows other calls between them.
    ANY_ORDER also allows any order, and every expected call needs an actual call of its own. Two calls are equal if
    their names are equal and, unless `ignore_args` is set, their arguments are equal under Python's `==`: the order of
    keys does not matter, the order of lists does, 1 equals 1.0 and true, and missing arguments differ from empty
    arguments. This is `tool_trajectory_avg_score` of Google ADK 2.13 (`evaluation/trajectory_evaluator.py`).

    >>> expected, actual = [FunctionCall(name="find")], [FunctionCall(name="find"), FunctionCall(name="book")]
    >>> matches(expected, actual, "EXACT"), matches(expected, actual, "IN_ORDER")
    (False, True)
    """

    default_threshold: ClassVar[float | None] = 1.0

    match_type: MatchType = "EXACT"
    ignore_args: bool = False
    """Whether only the names of tools are compared."""

    def score(self, subject: Subject) -> Measurement:
        """Compares the invocation's calls with the reference's; an invocation without calls has an empty list."""
        invocation = invocation_of(subject)
        if subject.reference is None or subject.reference.tool_uses is None:
            raise MissingInput("no reference says which tool calls were expected")
        require_calls(invocation)
        if not self.ignore_args:
            require_arguments(invocation)
        expected = subject.reference.tool_uses
        actual = invocation.tool_uses
        if matches(expected, actual, self.match_type, ignore_args=self.ignore_args):
            return Measurement(value=1.0, rationale=f"{self.match_type}: all {len(expected)} expected calls were made")
        return Measurement(
            value=0.0,
            rationale=f"{self.match_type}: {len(expected)} calls expected, {len(actual)} made, and they do not match",
            details={"expected": self._shown(expected), "actual": self._shown(actual)},
        )

    def _shown(self, calls: Sequence[FunctionCall]) -> list[JsonValue]:
        shown = [call.name if self.ignore_args else f"{call.name}({_text(call)})" for call in calls[:SHOWN_CALLS]]
        short = [text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…" for text in shown]
        return [*short, *([f"and {len(calls) - SHOWN_CALLS} more"] if len(calls) > SHOWN_CALLS else [])]


def matches(
    expected: Sequence[FunctionCall], actual: Sequence[FunctionCall], match_type: str, *, ignore_args: bool = False
) -> bool:
    """Returns whether the actual calls match the expected calls.

    If no call is expected, EXACT matches only an empty list; IN_ORDER and ANY_ORDER match any list.
    """
    if match_type == "EXACT":
        return len(expected) == len(actual) and all(
            _same(one, other, ignore_args) for one, other in zip(expected, actual, strict=True)
        )
    if match_type == "IN_ORDER":
        remaining = iter(actual)
        return all(any(_same(call, other, ignore_args) for other in remaining) for call in expected)
    # Counting hashed calls takes linear time; comparing all pairs would take minutes for the longest invocations in a
    # record.
    key: Callable[[FunctionCall], Hashable] = name_key if ignore_args else call_key
    return Counter(map(key, expected)) <= Counter(map(key, actual))


def _same(one: FunctionCall, other: FunctionCall, ignore_args: bool) -> bool:
    return one.name == other.name and (ignore_args or one.args == other.args)


def name_key(call: FunctionCall) -> Hashable:
    """Returns a key that is equal for calls of the same tool."""
    return call.name


def call_key(call: FunctionCall) -> Hashable:
    """Returns a key that is equal for calls of the same tool with equal arguments."""
    return call.name, _frozen(call.args)


def _frozen(value: JsonValue) -> Hashable:
    """Returns a hashable value; two such values are equal exactly if the JSON values are equal."""
    if isinstance(value, dict):
        return "object", frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_frozen, value))
    return value


def _text(call: FunctionCall) -> str:
    return "" if call.args is None else json.dumps(call.args, ensure_ascii=False)
