"""Tests that only valid traces are published."""

from __future__ import annotations

import math
from typing import Any

import orjson
import pytest
from tests.support.scoring import make_trace, trace_document

from traceweir.scorers import read_plan
from traceweir.scorers.evaluation.publication import publication

PLAN = read_plan({})


def step(**free: Any) -> dict[str, Any]:
    return {"step_id": 0, "type": "tool_call", "tool": {"name": "t"}, **free}


def test_a_valid_record_is_published_as_json() -> None:
    published, reasons = publication(PLAN, make_trace(), 0.9, 10_000)
    assert (orjson.loads(published), reasons) == (trace_document(metadata={"quality_score": 0.9}), [])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_does_not_know_is_not_published(number: float) -> None:
    trace = make_trace().model_copy(
        update={"steps": [make_trace().steps[0].model_copy(update={"input": {"n": number}})]}
    )
    assert publication(PLAN, trace, 0.9, 10_000)[1] == ["not_publishable"]


def test_the_words_nan_and_infinity_are_published() -> None:
    assert publication(PLAN, make_trace(steps=[step(content="NaN and Infinity")]), 0.9, 10_000)[1] == []


def test_an_integer_of_any_size_is_published() -> None:
    assert publication(PLAN, make_trace(steps=[step(input={"n": 10**60})]), 0.9, 10_000)[1] == []


def test_a_record_that_is_no_trace_is_not_published() -> None:
    trace = make_trace()
    broken = trace.model_copy(update={"outcome": trace.outcome.model_copy(update={"confidence": 7.0})})
    assert publication(PLAN, broken, 0.9, 10_000)[1] == ["not_publishable"]


def test_text_that_utf_8_cannot_represent_is_not_published() -> None:
    trace = make_trace()
    broken = trace.model_copy(update={"outcome": trace.outcome.model_copy(update={"result_summary": "\ud800"})})
    assert publication(PLAN, broken, 0.9, 10_000) == (b"", ["not_publishable"])


def test_all_reasons_are_reported_together() -> None:
    trace = make_trace(id="kp:trace:kim@example.com")
    assert publication(PLAN, trace, 0.9, 10)[1] == ["id_not_publishable", "too_large"]
