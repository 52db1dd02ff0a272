"""Tests the rules of arguments, and the matching of parallel calls, against definitions that try every order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations, product
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.scoring import make_turn

from traceweir.schemas.invocation import FunctionCall
from traceweir.schemas.reference import Reference
from traceweir.scorers import Measurement, Scorer, Subject
from traceweir.scorers.metrics.call_comparison import CallComparison
from traceweir.scorers.metrics.call_matching import number_matched
from traceweir.scorers.metrics.expected_calls import MatchType, is_match, matched_calls
from traceweir.scorers.metrics.tool_trajectory import ToolTrajectory
from traceweir.scorers.metrics.trajectory import (
    TrajectoryAnyOrderMatch,
    TrajectoryExactMatch,
    TrajectoryInOrderMatch,
    TrajectoryPrecision,
    TrajectoryRecall,
)

SYMMETRIC: list[Any] = ["exact", "folded", "nfc", "ignore", {"tolerance": 1}, {"relative_tolerance": 0.5}]
scalars = st.sampled_from([None, True, 0, 1, 1.5, 2, 3, "", "a", "A ", "Straße", "STRASSE", "é", "e\u0301"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)
args = st.none() | st.dictionaries(st.sampled_from("ab"), values, max_size=2)
call = st.builds(FunctionCall, name=st.sampled_from("xy"), args=args)
rules = st.sampled_from([*SYMMETRIC, "subset"])
options = st.dictionaries(
    st.sampled_from(["x", "*"]), rules | st.dictionaries(st.sampled_from(["a", "*"]), rules, min_size=1), max_size=2
)
# Rules by which calls of the tool "x" can be near to several others.
loose = st.sampled_from([{"x": {"tolerance": 1}}, {"*": {"a": {"tolerance": 1}, "*": "subset"}}, {"*": "subset"}])
few_args = st.fixed_dictionaries({}, optional={"a": st.sampled_from([0, 1, 2, 3]), "b": st.sampled_from([0, 1])})
few_calls = st.builds(FunctionCall, name=st.sampled_from("xxxy"), args=few_args)
expected_calls = st.lists(few_calls, max_size=4)
answers_of_a_model = st.lists(st.lists(few_calls, min_size=1, max_size=3), max_size=3)


def numbered(number: int) -> FunctionCall:
    return FunctionCall(name="x", args={"a": number})


def are_equal(rule: Any, one: FunctionCall, other: FunctionCall) -> bool:
    return CallComparison({"*": rule}).are_equal(one, other)


@given(options, call)
def test_every_call_equals_itself(compare_args: Any, one: Any) -> None:
    assert CallComparison(compare_args).are_equal(one, one)


@given(st.sampled_from(["EXACT", "IN_ORDER", "ANY_ORDER"]), expected_calls, answers_of_a_model, st.none() | loose)
@example("IN_ORDER", [numbered(1), numbered(2)], [[numbered(1)], [numbered(2)]], None)
def test_calls_match_exactly_if_as_many_are_matched_as_are_expected(
    match_type: MatchType, expected: Any, answers: Any, compare_args: Any
) -> None:
    matched = matched_calls(match_type, expected, answers, CallComparison(compare_args or {})).matched
    is_complete = matched == len(expected) and (match_type != "EXACT" or len(expected) == sum(map(len, answers)))
    assert is_match(match_type, expected, answers, CallComparison(compare_args or {})) == is_complete


@given(st.sampled_from(SYMMETRIC), call, call)
def test_rules_are_symmetric_apart_from_subset(rule: Any, one: Any, other: Any) -> None:
    assert are_equal(rule, one, other) == are_equal(rule, other, one)


@given(call, call)
def test_a_weaker_rule_finds_all_calls_equal_that_a_stronger_one_does(one: Any, other: Any) -> None:
    exact = are_equal("exact", one, other)
    for rule in (*SYMMETRIC, "subset"):
        assert exact <= are_equal(rule, one, other)
    assert are_equal("nfc", one, other) <= are_equal("folded", one, other) <= are_equal("ignore", one, other)


@given(options, call, call)
def test_the_key_of_a_call_agrees_with_the_comparison(compare_args: Any, one: Any, other: Any) -> None:
    comparison = CallComparison(compare_args)
    first, second = comparison.keyed([one, other])
    equal = comparison.are_equal(one, other)
    assert equal <= (first.kind == second.kind)
    if not first.is_loose:
        assert equal == (first.kind == second.kind)
    if first.identity == second.identity:
        assert equal


@given(options, call, call)
def test_the_differences_are_empty_exactly_for_equal_calls(compare_args: Any, one: Any, other: Any) -> None:
    if one.name == other.name:
        comparison = CallComparison(compare_args)
        assert comparison.are_equal(one, other) == (not comparison.differences(one, other))


def every_order(answers: Sequence[Sequence[FunctionCall]]) -> list[list[FunctionCall]]:
    """Returns the calls in all orders that differ within the answers only."""
    return [[each for answer in order for each in answer] for order in product(*map(permutations, answers))]


def matches_by_definition(kind: MatchType, expected: Any, answers: Any, comparison: CallComparison) -> bool:
    orders = every_order(answers)
    if kind == "ANY_ORDER":
        orders = [list(order) for order in permutations(orders[0])]
    for order in orders:
        chosen = [order] if kind == "EXACT" else combinations(order, len(expected))
        for made in chosen:
            if len(made) == len(expected) and all(map(comparison.are_equal, expected, made)):
                return True
    return False


@given(loose | options, expected_calls, answers_of_a_model, st.sampled_from(["EXACT", "IN_ORDER"]))
def test_calls_match_exactly_if_an_order_within_the_answers_matches(
    compare_args: Any, expected: Any, answers: Any, kind: MatchType
) -> None:
    found = is_match(kind, expected, answers, CallComparison(compare_args))
    assert found == matches_by_definition(kind, expected, answers, CallComparison(compare_args))


@example({"x": {"tolerance": 1}}, [numbered(1), numbered(0)], [numbered(0), numbered(2)])
@given(loose | options, expected_calls, st.lists(few_calls, max_size=5))
def test_as_many_calls_as_possible_are_matched_in_any_order(compare_args: Any, expected: Any, made: Any) -> None:
    comparison = CallComparison(compare_args)
    # The assignments of all expected calls, or of None for one without a call.
    padded = [*made, *[None] * len(expected)]
    best = max(
        sum(
            other is not None and comparison.are_equal(each, other) for each, other in zip(expected, order, strict=True)
        )
        for order in permutations(padded[: max(len(made), len(expected))], len(expected))
    )
    assert number_matched(expected, made, CallComparison(compare_args)) == best
    assert is_match("ANY_ORDER", expected, [made], CallComparison(compare_args)) == (best == len(expected))


@given(loose | options, expected_calls, answers_of_a_model, st.randoms(use_true_random=False))
def test_the_order_within_an_answer_never_changes_a_score(
    compare_args: Any, expected: Any, answers: Any, drawn: Any
) -> None:
    def scores_of(groups: Any) -> list[float]:
        made = [
            each.model_copy(update={"model_call_id": f"m{number}"})
            for number, answer in enumerate(groups)
            for each in answer
        ]
        subject = Subject(invocation=make_turn(tools=made).invocation, reference=Reference(tool_uses=expected))
        metrics: list[Scorer] = [
            *(
                ToolTrajectory(match_type=kind, compare_args=compare_args)
                for kind in ("EXACT", "IN_ORDER", "ANY_ORDER")
            ),
            *(
                kind(compare_args=compare_args)
                for kind in (
                    TrajectoryExactMatch,
                    TrajectoryInOrderMatch,
                    TrajectoryAnyOrderMatch,
                    TrajectoryPrecision,
                    TrajectoryRecall,
                )
            ),
        ]
        return [measured.value for each in metrics if isinstance(measured := each.score(subject), Measurement)]

    shuffled = [drawn.sample(answer, len(answer)) for answer in answers]
    assert scores_of(answers) == scores_of(shuffled)
