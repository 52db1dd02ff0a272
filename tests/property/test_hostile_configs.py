"""Tests that no config costs its reader more work than its largest honest one, and that each problem list stays short."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.work import calls_made, lines_run

from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.plan import read_plan

MOST_WORK = 5_000_000
"""Calls and lines of the most expensive config, which compares 50 unknown names with 100 known ones: 3 million, 0.1 s of CPU."""
MOST_TEXT = 100_000
"""Characters of all problems of a config."""

Shape = Callable[[int], Any]


def names(count: int, value: Any = 1) -> dict[str, Any]:
    return {f"metric_of_nobody_{number}": value for number in range(count)}


SHAPES: dict[str, Shape] = {
    "unknown criteria": lambda count: {"criteria": names(count)},
    "unknown criteria with options": lambda count: {"criteria": names(count, {"threshold": "x", "y": 1})},
    "criteria of own code": lambda count: {
        "criteria": names(count),
        "customMetrics": names(count, {"codeConfig": {"name": "x.y"}}),
    },
    "custom metrics": lambda count: {"customMetrics": names(count, {"codeConfig": {"name": 1}})},
    "one long name": lambda count: {"criteria": {"latency" * count: 1}},
    "one name in many spellings": lambda count: {
        "criteria": {"latency": {}, "agent/latency_seconds": {}} | names(count)
    },
    "required names": lambda count: {"gate": {"required": list(names(count))}},
    "required names beside criteria": lambda count: {
        "criteria": names(count),
        "gate": {"required": list(names(count, 1))},
    },
    "required values": lambda count: {"gate": {"required": [1] * count}},
    "sampled names": lambda count: {"sampling": names(count)},
    "sampled shares": lambda count: {"sampling": names(count, "x")},
    "unknown sections": names,
    "unknown options": lambda count: {"criteria": {"latency": names(count)}},
    "unknown options of the gate": lambda count: {"gate": names(count)},
    "options of the trace value": lambda count: {"trace_value": {"weights_by_domain": names(count)}},
    "rubrics": lambda count: {"criteria": {"rubric_based_final_response_quality_v1": {"rubrics": [{}] * count}}},
    "patterns": lambda count: {"gate": {"redact": {f"k{number}": "(" for number in range(count)}}},
    "models": lambda count: {"judge": {"models": names(count), "prices": names(count, {})}},
    "words of an option": lambda count: {"criteria": {"keyword_coverage": {"keywords": ["a"] * count, "threshold": 0}}},
    "a long list": lambda count: {"userSimulatorConfig": [[] for _ in range(count)]},
}


def work_of(document: object) -> tuple[int, str]:
    """Returns the work of reading a config, and the problems."""
    said = ""
    text = json.dumps(document)

    def read() -> None:
        nonlocal said
        try:
            read_plan(text)
        except ConfigError as error:
            said = str(error)

    return max(calls_made(read), lines_run(read)), said


@pytest.fixture(autouse=True, scope="module")
def _entry_points_are_known() -> None:
    """Lets no test count the work that a process does once."""
    work_of(SHAPES["criteria of own code"](1) | SHAPES["sampled names"](1))


@pytest.mark.parametrize("size", [30, 500, 20_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_config_of_any_shape_and_size_costs_bounded_work(shape: str, size: int) -> None:
    work, said = work_of(SHAPES[shape](size))
    assert work <= MOST_WORK
    assert len(said) <= MOST_TEXT


def test_the_config_of_a_challenger_costs_bounded_work() -> None:
    work, said = work_of({"challenger": {"name": "v2", "config": names(500)}, **names(500)})
    assert work <= MOST_WORK
    assert len(said) <= MOST_TEXT


NAMES = st.sampled_from(
    ["latency", "criteria", "gate", "threshold", "required", "sampling", "judge", "x", "rubrics", ""]
)
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | NAMES
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES | st.text(max_size=9), inner, max_size=5),
    max_leaves=30,
)


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.sampled_from(sorted(SHAPES)), st.integers(0, 1_000)), max_size=3),
    st.dictionaries(NAMES, DOCUMENTS, max_size=5),
)
def test_a_mixture_of_hostile_parts_costs_bounded_work(parts: list[tuple[str, int]], drawn: dict[str, Any]) -> None:
    document = dict(drawn)
    for shape, size in parts:
        for section, options in SHAPES[shape](size).items():
            before = document.get(section)
            document[section] = before | options if isinstance(before, dict) and isinstance(options, dict) else options
    work, said = work_of(document)
    assert work <= MOST_WORK
    assert len(said) <= MOST_TEXT
