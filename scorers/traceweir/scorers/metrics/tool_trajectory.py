"""Measures the tool trajectory: whether the agent's tool calls match the expected tool calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, ClassVar, Self, get_args

from pydantic import BeforeValidator, JsonValue, model_validator

from traceweir.schemas.invocation import FunctionCall
from traceweir.scorers.base import AdkCompat, Measurement, Subject
from traceweir.scorers.metrics.expected_calls import (
    AgainstExpectedCalls,
    MatchType,
    first_difference,
    is_match,
)

SHOWN_CALLS = 20
SHOWN_CHARACTERS = 200

MATCH_TYPES: tuple[MatchType, ...] = get_args(MatchType)


def _match_type(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(MATCH_TYPES):
        return MATCH_TYPES[value]
    return value.strip().upper().replace("-", "_").replace(" ", "_") if isinstance(value, str) else value


class ToolTrajectory(AgainstExpectedCalls):
    """Returns 1 if an invocation's tool calls match those of its reference, else 0.

    EXACT requires the same calls in the same order and no other calls. IN_ORDER also allows other calls between them.
    ANY_ORDER also allows any order, and every expected call needs an actual call of its own. The calls of one answer of
    the model are parallel, so that the order between them does not matter, as far as the source tells the answers. With
    `compat: "adk"` it matters, and this is `tool_trajectory_avg_score` of Google ADK 2.13
    (`evaluation/trajectory_evaluator.py`).

    >>> from traceweir.schemas.invocation import IntermediateData, Invocation
    >>> from traceweir.schemas.reference import Reference
    >>> find, book = (FunctionCall(name=name, model_call_id="answer 1") for name in ("find", "book"))
    >>> parallel = Invocation(intermediate_data=IntermediateData(tool_uses=[find, book]))
    >>> subject = Subject(invocation=parallel, reference=Reference(tool_uses=[book, find]))
    >>> ToolTrajectory().score(subject).value, ToolTrajectory(compat="adk").score(subject).value
    (1.0, 0.0)

    Raises:
        ValueError: `compare_args` is given with `compat` or `ignore_args`.
    """

    version: ClassVar[str] = "2"
    default_threshold: ClassVar[float | None] = 1.0

    match_type: Annotated[MatchType, BeforeValidator(_match_type)] = "EXACT"
    """The match type, read as Google ADK reads it: `in_order`, `In-Order`, `in order` and 1 are equal."""
    compat: AdkCompat = None

    @model_validator(mode="after")
    def _check_compat(self) -> Self:
        if self.compat is not None and self.compare_args:
            raise ValueError("Google ADK has no compare_args; remove compat or compare_args")
        return self

    def score(self, subject: Subject) -> Measurement:
        """Compares the invocation's calls with the reference's; an invocation without calls has an empty list."""
        expected, invocation = self.calls(subject)
        actual = invocation.tool_uses
        answers = invocation.calls_by_answer if self.compat is None else [[call] for call in actual]
        if is_match(self.match_type, expected, answers, self.comparison()):
            return Measurement(value=1.0, rationale=f"{self.match_type}: all {len(expected)} expected calls were made")
        found = first_difference(self.match_type, expected, answers, self.comparison())
        return Measurement(
            value=0.0,
            rationale=f"{self.match_type}: {len(expected)} calls expected, {len(actual)} made, and they do not match"
            + (f"; {found}" if found else ""),
            details={"expected": self._shown(expected), "actual": self._shown(actual)},
        )

    def _shown(self, calls: Sequence[FunctionCall]) -> list[JsonValue]:
        shown = [call.name if self.ignore_args else f"{call.name}({_text(call)})" for call in calls[:SHOWN_CALLS]]
        short = [text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…" for text in shown]
        return [*short, *([f"and {len(calls) - SHOWN_CALLS} more"] if len(calls) > SHOWN_CALLS else [])]


def _text(call: FunctionCall) -> str:
    return "" if call.args is None else json.dumps(call.args, ensure_ascii=False)
