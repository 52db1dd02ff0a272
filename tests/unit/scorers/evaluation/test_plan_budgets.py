"""Tests the limits that a config sets for an app or a metric."""

from __future__ import annotations

from typing import Any

import pytest

from traceweir.schemas.base import JsonObject
from traceweir.scorers import ConfigError, Plan, read_plan


def plan(**budget: Any) -> Plan:
    criteria: JsonObject = {"safety_v1": 0.5, "response_match_score": 0.5}
    return read_plan({"criteria": criteria, "judge": {"budget": budget, "max_output_tokens": 100}})


def test_limits_of_a_metric_have_its_full_name_and_are_in_no_digest() -> None:
    section: JsonObject = {
        "agent_evaluation": {"judged": True},
        "judge": {"budget": {"metrics": {"correctness": {"usd": 1.0}}}},
    }
    limited = read_plan(section)

    assert list(limited.judge.budget.metrics) == ["response/llm_judged/correctness/rating"]
    assert limited.digest == read_plan({"agent_evaluation": {"judged": True}}).digest


@pytest.mark.parametrize(
    ("budget", "problem"),
    [
        (
            {"metrics": {"safty_v1": {"usd": 1}}},
            "judge.budget.metrics.safty_v1: no criterion of this name asks a judge; did you mean 'safety_v1'?",
        ),
        (
            {"metrics": {"response_match_score": {"usd": 1}}},
            "judge.budget.metrics.response_match_score: no criterion of this name asks a judge",
        ),
        ({"metrics": {"safety_v1": {"usd": -1}}}, "judge.budget.metrics.safety_v1.usd"),
        ({"apps": {"rail": {"usd_a_day": 1}}}, "judge.budget.apps.rail.usd_a_day"),
        ({"apps": {"rail": {"apps": {}}}}, "judge.budget.apps.rail.apps"),
        (
            {"apps": {"rail": {"tokens_per_day": 100}}},
            "budget.apps.rail.tokens_per_day is 100, but an answer can take max_output_tokens = 100",
        ),
    ],
)
def test_limits_that_can_have_no_effect_or_allow_nothing_are_problems(budget: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(**budget)
    assert problem in str(caught.value)
