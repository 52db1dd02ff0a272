"""Tool trajectory: did the agent call the tools that were expected of it?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, JsonValue

from traceweir.schemas.invocation import FunctionCall
from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject

SHOWN_CALLS = 20
SHOWN_CHARACTERS = 200

MATCH_TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")


def _match_type(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(MATCH_TYPES):
        return MATCH_TYPES[value]
    return value.strip().upper().replace("-", "_").replace(" ", "_") if isinstance(value, str) else value


MatchType = Annotated[Literal["EXACT", "IN_ORDER", "ANY_ORDER"], BeforeValidator(_match_type)]
"""As Google ADK reads it: `in_order`, `In-Order`, `in order` and 1 are the same."""


class ToolTrajectory(Scorer):
    """1 if an invocation's tool calls are those of its reference, else 0.

    EXACT asks for the same calls in the same order and no others; IN_ORDER allows others between them; ANY_ORDER also another order,
    where each expected call takes an actual one of its own. Calls are equal when their names are and, unless `ignore_args`, their
    arguments are equal as Python has it: the order of keys is free, that of lists is not, 1 equals 1.0 and true, and no arguments
    differ from empty ones. This is `tool_trajectory_avg_score` of Google ADK 2.13 (`evaluation/trajectory_evaluator.py`).

    >>> expected, actual = [FunctionCall(name="find")], [FunctionCall(name="find"), FunctionCall(name="book")]
    >>> matches(expected, actual, "EXACT"), matches(expected, actual, "IN_ORDER")
    (False, True)
    """

    match_type: MatchType = "EXACT"
    ignore_args: bool = False
    """Whether only the names of tools are compared."""

    def score(self, subject: Subject) -> Measurement:
        """Compare the invocation's calls with the reference's; an invocation without any has an empty list of them."""
        if subject.invocation is None or subject.reference is None or subject.reference.tool_uses is None:
            raise MissingInput("no reference says which tool calls were expected")
        expected, actual = subject.reference.tool_uses, subject.invocation.tool_uses
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
    """Whether the actual calls match the expected ones; with none expected, only EXACT asks that none was made."""
    if match_type == "EXACT":
        return len(expected) == len(actual) and all(
            _same(one, other, ignore_args) for one, other in zip(expected, actual, strict=True)
        )
    if match_type == "IN_ORDER":
        remaining = iter(actual)
        return all(any(_same(call, other, ignore_args) for other in remaining) for call in expected)
    # Counting hashed calls is linear; pairing them off one by one would take minutes for the longest invocations that fit a record.
    key: Callable[[FunctionCall], Hashable] = name_key if ignore_args else call_key
    return Counter(map(key, expected)) <= Counter(map(key, actual))


def _same(one: FunctionCall, other: FunctionCall, ignore_args: bool) -> bool:
    return one.name == other.name and (ignore_args or one.args == other.args)


def name_key(call: FunctionCall) -> Hashable:
    """What is equal for calls of the same tool."""
    return call.name


def call_key(call: FunctionCall) -> Hashable:
    """What is equal for calls of the same tool with equal arguments."""
    return call.name, _frozen(call.args)


def _frozen(value: JsonValue) -> Hashable:
    """A value that hashes, and is equal to another exactly when the JSON values are."""
    if isinstance(value, dict):
        return "object", frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_frozen, value))
    return value


def _text(call: FunctionCall) -> str:
    return "" if call.args is None else json.dumps(call.args, ensure_ascii=False)
