"""Defines the base class of the metrics that compare the tool calls of an invocation with the expected ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Literal, Self

from pydantic import model_validator

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import FunctionCall, Invocation
from traceweir.schemas.text import printable
from traceweir.scorers.base import (
    MissingInput,
    NeededReference,
    Scorer,
    Subject,
    invocation_of,
    require_arguments,
    require_calls,
)
from traceweir.scorers.metrics.argument_rules import RULES_VERSION, CompareArgs
from traceweir.scorers.metrics.call_comparison import MAX_SHOWN_CHARS, CallComparison, TooManyComparisonsError
from traceweir.scorers.metrics.call_matching import Match, match_exactly, match_in_any_order, match_in_order

MatchType = Literal["EXACT", "IN_ORDER", "ANY_ORDER"]
MAX_COMPARED = 20
"""Maximum number of calls that are compared with an expected call to find the argument that differs."""


class AgainstExpectedCalls(Scorer):
    """Base class of metrics that need a reference with tool calls.

    Two calls are equal if the tools are equal and, unless `ignore_args` is set, their arguments are equal by the rules of
    `compare_args`. Without a rule they are compared as in Google ADK, under Python's `==`: the order of keys does not
    matter, the order of lists does, 1 equals 1.0 and true, and missing arguments differ from empty ones.
    """

    ignore_args: bool = False
    """Whether only the names of tools are compared."""
    compare_args: CompareArgs = {}
    """How arguments are compared: a rule for each tool, or an object with a rule for each argument of the tool.

    `*` stands for all tools, or arguments, that are not named.
    """

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if self.ignore_args and self.compare_args:
            raise ValueError("ignore_args compares no argument, so compare_args has no effect; remove one of them")
        return self

    @property
    def needed_reference(self) -> NeededReference:
        """The expected tool calls; an empty list is enough."""
        return NeededReference(("tool_uses",))

    def decisive_options(self) -> JsonObject:
        """Returns the options, with the version of the rules if there are any; without rules, no option tells of them."""
        options = super().decisive_options()
        if self.compare_args:
            return {**options, "compare_args_version": RULES_VERSION}
        return {name: options[name] for name in options if name != "compare_args"}

    def comparison(self) -> CallComparison:
        """Returns a comparison by these options; one score may take its steps."""
        return CallComparison(self.compare_args, self.ignore_args)

    def calls(self, subject: Subject) -> tuple[Sequence[FunctionCall], Invocation]:
        """Returns the expected calls, and the invocation with the calls made.

        Raises:
            MissingInput: no reference lists the expected calls, or the calls or the arguments of a call are not known.
        """
        invocation = invocation_of(subject)
        if subject.reference is None or subject.reference.tool_uses is None:
            raise MissingInput("no reference says which tool calls were expected")
        require_calls(invocation)
        comparison = self.comparison()
        require_arguments(invocation, unless=comparison.ignores_args_of)
        return subject.reference.tool_uses, invocation


def matched_calls(
    match_type: MatchType,
    expected: Sequence[FunctionCall],
    answers: Sequence[Sequence[FunctionCall]],
    comparison: CallComparison,
) -> Match:
    """Returns how far the calls made match the expected ones.

    Args:
        match_type: EXACT: the same calls in the same order. IN_ORDER: other calls may lie between. ANY_ORDER: as IN_ORDER,
            and the order does not matter.
        expected: The expected calls, in order.
        answers: The calls made, grouped by the answers of the model; the calls of one answer have no order.
        comparison: Compares two calls.

    Raises:
        TooManyComparisonsError: the comparison has taken too many steps.
    """
    if match_type == "EXACT":
        return match_exactly(expected, answers, comparison)
    if match_type == "IN_ORDER":
        return match_in_order(expected, answers, comparison)
    return match_in_any_order(expected, [call for answer in answers for call in answer], comparison)


def is_match(
    match_type: MatchType,
    expected: Sequence[FunctionCall],
    answers: Sequence[Sequence[FunctionCall]],
    comparison: CallComparison,
) -> bool:
    """Returns whether the calls made match the expected ones; the arguments are those of `matched_calls`.

    If no call is expected, EXACT matches only an empty list; IN_ORDER and ANY_ORDER match any list.
    """
    made = list(chain.from_iterable(answers))
    if len(made) == len(expected) and not comparison.ignore_args and all(map(_are_same, expected, made)):
        # Most runs of an agent are as expected, and the same calls in the same order match by all rules.
        return True
    if match_type == "EXACT" and len(expected) != len(made):
        return False
    return matched_calls(match_type, expected, answers, comparison).matched == len(expected)


def _are_same(expected: FunctionCall, made: FunctionCall) -> bool:
    return expected.name == made.name and expected.args == made.args


def first_difference(
    match_type: MatchType,
    expected: Sequence[FunctionCall],
    answers: Sequence[Sequence[FunctionCall]],
    comparison: CallComparison,
) -> str:
    """Returns what the first expected call without a match differs in, as a clause; empty if that takes too many steps.

    The arguments are those of `matched_calls`, with a comparison that has taken no step.
    """
    try:
        return _first_difference(match_type, expected, answers, comparison)
    except TooManyComparisonsError:
        return ""


def _first_difference(
    match_type: MatchType,
    expected: Sequence[FunctionCall],
    answers: Sequence[Sequence[FunctionCall]],
    comparison: CallComparison,
) -> str:
    match = matched_calls(match_type, expected, answers, comparison)
    if match.matched == len(expected):
        extra = next((_name(call) for call in match.left), "a tool")
        return f"a call of {extra} was made in addition"
    call = expected[match.matched]
    place = f"expected call {match.matched + 1}, {_name(call)}"
    made = [each for answer in answers for each in answer if each.name == call.name]
    if not made:
        return f"{place}, was not made"
    nearest = [each for each in match.left if each.name == call.name] or made
    differences = min((comparison.differences(call, each) for each in nearest[:MAX_COMPARED]), key=len)
    if differences:
        first, *others = differences
        argument = f"the argument {first.argument!r} is" if first.argument else "the arguments are"
        more = (
            f"; {len(others)} more {'argument differs' if len(others) == 1 else 'arguments differ'}" if others else ""
        )
        return f"{place}: {argument} {first.actual}, and not {first.expected}{more}"
    return f"{place}, was not made {'this often' if match_type == 'ANY_ORDER' else 'at this place'}"


def _name(call: FunctionCall) -> str:
    return printable(call.name, MAX_SHOWN_CHARS)
