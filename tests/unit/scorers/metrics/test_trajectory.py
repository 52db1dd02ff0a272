"""Tests the trajectory metrics on empty trajectories, repeated calls and missing references."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.scoring import make_turn, scores_of

from traceweir.schemas.invocation import FunctionCall
from traceweir.schemas.reference import Reference
from traceweir.scorers import ConfigError, read_plan

A, A2, B = FunctionCall(name="a", args={"n": 1}), FunctionCall(name="a", args={"n": 2}), FunctionCall(name="b")


@pytest.mark.parametrize(
    ("expected", "actual", "precision", "recall"),
    [
        ([], [], 1.0, 1.0),
        ([A], [], 0.0, 0.0),
        ([], [A], 0.0, 1.0),
        ([A, B], [B, A], 1.0, 1.0),
        ([A, A], [A], 1.0, 0.5),
        ([A], [A, A], 0.5, 1.0),
        ([A, B], [A, A2, A2], 1 / 3, 0.5),
    ],
)
async def test_precision_and_recall_of_a_trajectory(
    expected: list[FunctionCall], actual: list[FunctionCall], precision: float, recall: float
) -> None:
    plan = read_plan({"criteria": {"trajectory_precision": 0.5, "trajectory_recall": 0.5}})
    scores = await scores_of(plan, [make_turn(tools=actual, reference=Reference(tool_uses=expected))])
    assert {s.metric: s.value for s in scores} == {"trajectory_precision": precision, "trajectory_recall": recall}


async def test_arguments_can_be_ignored() -> None:
    plan = read_plan({"criteria": {"trajectory_recall": {"threshold": 1, "ignoreArgs": True}}})
    scores = await scores_of(plan, [make_turn(tools=[A2, B], reference=Reference(tool_uses=[A, B]))])
    assert [s.value for s in scores] == [1.0, 1.0]


@pytest.mark.parametrize(("used", "value"), [([], 0.0), ([B], 0.0), ([B, A, A2], 1.0)])
async def test_single_tool_use_needs_no_reference(used: list[FunctionCall], value: float) -> None:
    plan = read_plan({"criteria": {"trajectory_single_tool_use": {"threshold": 1, "tool_name": "a"}}})
    assert [s.value for s in await scores_of(plan, [make_turn(tools=used)])] == [value, value]


@pytest.mark.parametrize(
    "metric",
    [
        "trajectory_exact_match",
        "trajectory_in_order_match",
        "trajectory_any_order_match",
        "trajectory_precision",
        "trajectory_recall",
    ],
)
async def test_without_a_reference_no_invocation_is_measured(metric: str) -> None:
    scores = await scores_of(read_plan({"criteria": {metric: 1.0}}), [make_turn(tools=[A])])
    assert [s.not_evaluated_because for s in scores] == ["missing_input"] * 2


@pytest.mark.parametrize(
    ("criterion", "problem"),
    [
        ({"threshold": 1}, "criteria.trajectory_single_tool_use.tool_name: is missing; the config must give it"),
        (
            {"threshold": 1, "tool_name": ""},
            "criteria.trajectory_single_tool_use.tool_name: String should have at least 1 character",
        ),
        (
            {"tool_name": "a"},
            "criteria.trajectory_single_tool_use: the threshold must be a number from 0 to 1; none is given",
        ),
    ],
)
def test_a_missing_option_is_reported(criterion: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_plan({"criteria": {"trajectory_single_tool_use": criterion}})
    assert any(said.startswith(problem) for said in refused.value.problems)
