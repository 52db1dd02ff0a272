"""Tests the properties of the trajectory metrics for all calls."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.scoring import make_turn

from traceweir.schemas.invocation import FunctionCall
from traceweir.schemas.reference import Reference
from traceweir.scorers import Subject, ToolTrajectory
from traceweir.scorers.metrics.call_comparison import CallComparison
from traceweir.scorers.metrics.expected_calls import MatchType, is_match
from traceweir.scorers.metrics.tool_trajectory import SHOWN_CALLS, SHOWN_CHARACTERS
from traceweir.scorers.metrics.trajectory import TrajectoryPrecision, TrajectoryRecall

scalars = st.sampled_from([None, True, False, 0, 1, 1.0, 0.0, -1, "1", "", "a"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)
args = st.none() | st.dictionaries(st.sampled_from("ab"), values, max_size=2)
calls = st.lists(st.builds(FunctionCall, name=st.sampled_from("xy"), args=args), max_size=4)
flags = st.booleans()
KINDS: tuple[MatchType, ...] = ("EXACT", "IN_ORDER", "ANY_ORDER")


def matches(expected: Any, actual: Any, kind: MatchType, *, ignore_args: bool = False) -> bool:
    return is_match(kind, expected, [[call] for call in actual], CallComparison(ignore_args=ignore_args))


@given(calls, calls, flags)
def test_exact_implies_in_order_implies_any_order(expected: Any, actual: Any, ignore_args: bool) -> None:
    exact, in_order, any_order = (matches(expected, actual, kind, ignore_args=ignore_args) for kind in KINDS)
    assert exact <= in_order <= any_order


@given(calls, calls, st.sampled_from(KINDS))
def test_a_match_stays_a_match_when_arguments_are_ignored(expected: Any, actual: Any, kind: MatchType) -> None:
    assert matches(expected, actual, kind) <= matches(expected, actual, kind, ignore_args=True)


@given(calls, calls, st.integers(), flags)
def test_additional_calls_only_affect_exact(expected: Any, others: Any, seed: int, ignore_args: bool) -> None:
    drawn, rest, actual = random.Random(seed), list(expected), []
    for other in others:
        while rest and drawn.random() < 0.5:
            actual.append(rest.pop(0))
        actual.append(other)
    actual += rest
    assert matches(expected, actual, "IN_ORDER", ignore_args=ignore_args)
    assert matches(expected, actual, "EXACT", ignore_args=ignore_args) == (len(others) == 0)


@given(calls, calls, st.randoms(use_true_random=False), flags)
def test_any_order_does_not_depend_on_the_order(expected: Any, actual: Any, drawn: Any, ignore_args: bool) -> None:
    shuffled = drawn.sample(actual, len(actual))
    assert matches(expected, actual, "ANY_ORDER", ignore_args=ignore_args) == matches(
        expected, shuffled, "ANY_ORDER", ignore_args=ignore_args
    )


@given(calls, calls, flags)
def test_any_order_matches_each_expected_call_with_an_equal_call(expected: Any, actual: Any, ignore_args: bool) -> None:
    left = list(actual)
    for call in expected:
        equal = [other for other in left if call.name == other.name and (ignore_args or call.args == other.args)]
        if not equal:
            break
        left.remove(next(other for other in left if other is equal[0]))
    else:
        assert matches(expected, actual, "ANY_ORDER", ignore_args=ignore_args)
        return
    assert not matches(expected, actual, "ANY_ORDER", ignore_args=ignore_args)


def share(metric: type[TrajectoryPrecision | TrajectoryRecall], expected: Any, actual: Any, ignore_args: bool) -> float:
    subject = Subject(invocation=make_turn(tools=actual).invocation, reference=Reference(tool_uses=expected))
    return metric(ignore_args=ignore_args).score(subject).value


@given(calls, calls, flags)
def test_recall_is_1_exactly_if_the_calls_match_in_any_order(expected: Any, actual: Any, ignore_args: bool) -> None:
    recall = share(TrajectoryRecall, expected, actual, ignore_args)
    assert (recall == 1.0) == matches(expected, actual, "ANY_ORDER", ignore_args=ignore_args)


@given(calls, calls, flags)
def test_precision_equals_recall_with_expected_and_actual_swapped(
    expected: Any, actual: Any, ignore_args: bool
) -> None:
    if expected and actual:
        precision = share(TrajectoryPrecision, expected, actual, ignore_args)
        assert precision == share(TrajectoryRecall, actual, expected, ignore_args)


@given(calls, calls, flags)
def test_both_shares_count_the_same_calls(expected: Any, actual: Any, ignore_args: bool) -> None:
    precision, recall = (share(kind, expected, actual, ignore_args) for kind in (TrajectoryPrecision, TrajectoryRecall))
    if expected and actual:
        assert round(precision * len(actual)) == round(recall * len(expected))


@given(st.integers(0, 60), st.text(max_size=400), st.integers(0, 400), flags)
@example(60, "n" * 400, 400, False)
@example(60, "n" * 400, 400, True)
def test_the_details_of_a_failure_are_bounded(count: int, name: str, length: int, ignore_args: bool) -> None:
    expected = [FunctionCall(name=name, args={"long": "x" * length})] * count
    subject = Subject(
        invocation=make_turn(tools=[*expected, FunctionCall()]).invocation, reference=Reference(tool_uses=expected)
    )
    measured = ToolTrajectory(ignore_args=ignore_args).score(subject)
    assert measured.value == 0.0
    for shown, calls in ((measured.details["expected"], count), (measured.details["actual"], count + 1)):
        assert isinstance(shown, list)
        assert len(shown) == min(calls, SHOWN_CALLS + 1)
        assert all(len(str(call)) <= SHOWN_CHARACTERS for call in shown)
