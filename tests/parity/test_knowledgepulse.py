"""Compares the trace value with the results of KnowledgePulse's SDK (git 9ff0e3f4, without an embedder)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers import TraceValue, evaluate_value
from traceweir.scorers.embedding import Vectors
from traceweir.scorers.metrics.novelty import NoveltyCache
from traceweir.scorers.metrics.trace_value import value_of

RECORDED = json.loads((Path(__file__).parent / "data" / "kp_oracle.json").read_text("utf-8"))
SAMPLES: dict[str, Any] = RECORDED["samples"]
OUT: dict[str, Any] = RECORDED["out"]
NAN = {"S22_domain_toString"}
"""The SDK looks up weights in a plain object: for this domain it finds a method, and computes NaN. Here the default
    weights apply."""
VALID = [name for name in SAMPLES if OUT[name]["schema_ok"]]
UPSTREAM = TraceValue(preset="knowledgepulse")


def unvalidated(sample: dict[str, Any]) -> float:
    """Computes the value without validation, for documents that no schema accepts."""
    steps, metadata = sample["steps"], sample["metadata"]
    return value_of(
        [step["type"] for step in steps],
        [step["tool"]["name"] for step in steps if step.get("tool")],
        success=metadata["success"],
        confidence=sample["outcome"]["confidence"],
        novelty=0.5,
        weights=UPSTREAM.weights_by_domain.get(metadata["task_domain"], UPSTREAM.weights),
        recovery_bonus_min=UPSTREAM.recovery_bonus_min,
    ).value


def test_every_recorded_row_is_compared() -> None:
    assert len(SAMPLES) == len(OUT) == 25
    assert {name for name in OUT if OUT[name]["score"] is None} == NAN


@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in NAN])
def test_the_arithmetic_agrees(name: str) -> None:
    assert unvalidated(SAMPLES[name]) == pytest.approx(OUT[name]["score"], abs=1e-12, rel=0)


@pytest.mark.parametrize("name", [name for name in VALID if name not in NAN])
def test_evaluate_value_agrees(name: str) -> None:
    measured = evaluate_value(SAMPLES[name], options={"preset": "knowledgepulse"})
    assert measured.value == pytest.approx(OUT[name]["score"], abs=1e-12, rel=0)


@pytest.mark.parametrize("name", sorted(NAN))
def test_a_domain_that_breaks_the_sdks_lookup_has_the_default_weights(name: str) -> None:
    other = {**SAMPLES[name], "metadata": {**SAMPLES[name]["metadata"], "task_domain": "travel"}}
    assert evaluate_value(SAMPLES[name], options=UPSTREAM) == evaluate_value(other, options=UPSTREAM)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_verdict_on_the_document_agrees(name: str) -> None:
    try:
        ReasoningTrace.model_validate_json(json.dumps(SAMPLES[name]))
    except ValidationError:
        accepted = False
    else:
        accepted = True
    assert accepted == OUT[name]["schema_ok"]


def test_by_default_two_recoveries_earn_the_bonus_as_in_the_document() -> None:
    sample = SAMPLES["S3_er2_success"]
    upstream = OUT["S3_er2_success"]["score"]
    assert evaluate_value(sample).value == pytest.approx(upstream + 0.1, abs=1e-12, rel=0)


class OneVector:
    """Returns the same vector for every text, as in the recorded run."""

    id, dimensions, runs_inline = "one", 3, True

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.array([[0.6, 0.8, 0.0]] * len(texts), np.float32)


def test_the_same_trace_three_times_agrees() -> None:
    cache, embedder = NoveltyCache(dimensions=3), OneVector()
    sample = SAMPLES["S1_seed_example"]
    values = [evaluate_value(sample, options=UPSTREAM, embedder=embedder, cache=cache).value for _ in range(3)]
    assert values == pytest.approx([0.66875, 0.49374999999999997, 0.49374999999999997], abs=1e-12, rel=0)
