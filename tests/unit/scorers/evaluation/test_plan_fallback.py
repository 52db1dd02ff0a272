"""Tests what a fallback of judge models changes in a plan."""

from __future__ import annotations

from typing import Any

import pytest

from traceweir.scorers import ConfigError, Plan, read_plan


def plan(**judge: Any) -> Plan:
    return read_plan({"criteria": {"safety_v1": 0.5, "response_match_score": 0.5}, "judge": judge})


def test_the_configured_list_is_part_of_the_digests_of_its_criteria_alone() -> None:
    without = plan()
    one = plan(fallback={"gemini-2.5-flash": ["openai/a"]})
    other = plan(fallback={"gemini-2.5-flash": ["openai/a", "openai/b"]})
    safety, match = zip(*([metric.digest for metric in each.metrics] for each in (without, one, other)), strict=True)
    assert len(set(safety)) == 3
    assert len(set(match)) == 1
    assert len({each.digest for each in (without, one, other)}) == 3


@pytest.mark.parametrize(
    ("fallback", "problem"),
    [
        ({"gemini-2.5-flsh": ["openai/a"]}, "judge.fallback.gemini-2.5-flsh: no criterion asks this model"),
        ({"gemini-2.5-flash": ["gemini-2.5-flash"]}, "asks gemini-2.5-flash twice"),
        ({"gemini-2.5-flash": ["openai/a", "openai/a"]}, "asks openai/a twice"),
        ({"gemini-2.5-flash": []}, "fallback"),
    ],
)
def test_a_fallback_without_an_effect_is_a_problem(fallback: dict[str, list[str]], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(fallback=fallback)
    assert problem in str(caught.value)
