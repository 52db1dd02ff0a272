"""Tests the trace value: its dimensions, the order of overrides, the weights, and `evaluate_value`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from pydantic import JsonValue, ValidationError
from tests.support.scoring import make_trace, trace_document

from traceweir.schemas.invocation import Invocation
from traceweir.scorers import MissingInput, Subject, TraceValue, evaluate_value
from traceweir.scorers.embedding import Vectors
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.scorers.metrics.novelty import NoveltyCache
from traceweir.scorers.metrics.trace_value import value_of


def worth(
    types: str, tools: Sequence[str] = (), success: bool = True, confidence: float = 0.8, bonus_from: int = 2
) -> Any:
    """Returns the value of steps, given by the first letters of their types."""
    kinds = {"t": "thought", "c": "tool_call", "o": "observation", "e": "error_recovery"}
    return value_of(
        [kinds[letter] for letter in types],
        tools,
        success=success,
        confidence=confidence,
        novelty=0.5,
        recovery_bonus_min=bonus_from,
    )


def test_complexity_counts_kinds_of_steps_recovery_and_length() -> None:
    assert worth("tc", ["a"]).complexity == pytest.approx(2 / 4 * 0.5 + 2 / 20 * 0.2)
    assert worth("et").complexity == pytest.approx(2 / 4 * 0.5 + 0.3 + 2 / 20 * 0.2)
    assert worth("t" * 40).complexity == pytest.approx(1 / 4 * 0.5 + 40 / 20 * 0.2)
    assert worth("tcoe" * 10).complexity == 1.0


def test_tool_diversity_is_three_times_distinct_tools_per_step() -> None:
    assert worth("tcocot", ["a", "a"]).tool_diversity == pytest.approx(1 / 6 * 3)
    assert worth("cc", ["a", "b"]).tool_diversity == 1.0
    assert worth("to").tool_diversity == 0.0


def test_confidence_has_the_factor_0_3_in_a_failed_trace() -> None:
    assert worth("to", success=False).outcome_confidence == pytest.approx(0.8 * 0.3)


def test_a_single_thought_has_the_value_0_1() -> None:
    assert (worth("t").value, worth("t").overrides) == (0.1, ["single_thought"])
    assert (worth("o").overrides, worth("tt").overrides) == ([], [])


@pytest.mark.parametrize(
    ("types", "bonus_from", "given"), [("tee", 2, True), ("et", 2, False), ("tee", 3, False), ("teee", 3, True)]
)
def test_the_option_sets_the_number_of_recoveries_for_the_bonus(types: str, bonus_from: int, given: bool) -> None:
    assert worth(types, bonus_from=bonus_from).overrides == (["recovery_bonus"] if given else [])
    plain = worth(types, bonus_from=99).value
    assert worth(types, bonus_from=bonus_from).value == pytest.approx(plain + (0.1 if given else 0))


def test_a_failed_trace_has_no_bonus() -> None:
    assert worth("teee", success=False).overrides == []


def test_a_trace_with_a_single_tool_loses_0_1() -> None:
    assert worth("tcc", ["a", "a"]).overrides == ["single_tool_penalty"]
    assert worth("tcc", ["a", "b"]).overrides == worth("tcc").overrides == []


def test_overrides_are_applied_in_order_to_the_running_value() -> None:
    lone = worth("t", ["a"])
    assert (lone.value, lone.overrides) == (0.0, ["single_thought", "single_tool_penalty"])
    rich = worth("tcoeee" * 3, ["a"], confidence=3.0)
    assert rich.overrides == ["recovery_bonus", "single_tool_penalty"]
    assert rich.value == pytest.approx(0.9), "the bonus stops at 1, the penalty comes after it"


def test_details_contain_the_dimensions_the_overrides_and_the_weights() -> None:
    measured = evaluate_value(make_trace())
    assert measured.value == 0.1
    assert measured.details == {
        "complexity": pytest.approx(0.135),
        "novelty": 0.5,
        "tool_diversity": 0.0,
        "outcome_confidence": 0.9,
        "overrides": ["single_thought"],
        "weights": {"complexity": 0.25, "novelty": 0.35, "tool_diversity": 0.15, "outcome_confidence": 0.25},
        "novelty_missing": "no_embedder",
    }


def test_a_json_document_is_measured_like_the_trace() -> None:
    assert evaluate_value(trace_document()) == evaluate_value(make_trace())


def test_a_document_that_is_not_a_trace_is_rejected() -> None:
    with pytest.raises(ValidationError, match="confidence"):
        evaluate_value(trace_document(outcome={"confidence": 1.5}))


STEPS = [{"step_id": 0, "type": "thought", "content": "a"}, {"step_id": 1, "type": "observation", "content": "b"}]


def test_novelty_is_lower_for_a_repeated_trace() -> None:
    cache, embedder = NoveltyCache(), HashingEmbedder()
    first, again = make_trace(id="kp:trace:1", steps=STEPS), make_trace(id="kp:trace:2", steps=STEPS)
    one = evaluate_value(first, embedder=embedder, cache=cache).details
    two = evaluate_value(again, embedder=embedder, cache=cache).details
    assert (one["novelty"], one["novelty_missing"], "nearest" in one) == (0.5, "first_of_scope", False)
    assert (two["novelty"], two["nearest"]) == (0.0, {"trace_id": "kp:trace:1", "similarity": 1.0})
    assert "novelty_missing" not in two


def test_an_embedder_without_a_cache_has_nothing_to_compare_with() -> None:
    assert evaluate_value(make_trace(), embedder=HashingEmbedder()).details["novelty_missing"] == "no_cache"


class Opposite:
    """Embeds each text as the opposite of the vector before it."""

    id, dimensions, runs_inline = "opposite", 2, True
    sign = -1.0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.sign = -self.sign
        return np.array([[self.sign, 0.0]] * len(texts), np.float32)


@pytest.mark.parametrize(("clamp", "value"), [(True, 1.0), (False, pytest.approx(1.0 - 0.35 + 0.7))])
def test_a_value_beyond_1_is_clamped_unless_the_option_says_otherwise(clamp: bool, value: object) -> None:
    kinds = ["thought", "tool_call", "observation", "error_recovery"]
    steps = [{"step_id": n, "type": kinds[n % 4], "tool": {"name": f"tool {n}"}} for n in range(4)]
    cache, embedder = NoveltyCache(dimensions=2), Opposite()
    options: dict[str, JsonValue] = {
        "clamp": clamp,
        "weights": {"complexity": 0, "novelty": 0.35, "tool_diversity": 0.65, "outcome_confidence": 0},
    }
    for _ in range(2):
        measured = evaluate_value(make_trace(steps=steps), options=options, embedder=embedder, cache=cache)
    assert measured.value == value


def test_weights_depend_on_the_exact_task_domain() -> None:
    medical: JsonValue = {"complexity": 0, "novelty": 0, "tool_diversity": 0, "outcome_confidence": 1}
    options: dict[str, JsonValue] = {"weights_by_domain": {"medical": medical}}
    values = {
        domain: evaluate_value(make_trace(metadata={"task_domain": domain}, steps=STEPS), options=options).value
        for domain in ("medical", "Medical", "travel")
    }
    assert values["medical"] == pytest.approx(0.9)
    assert values["Medical"] == values["travel"] != values["medical"]


@pytest.mark.parametrize(
    "options",
    [
        {"weights": {"complexity": 0.5, "novelty": 0.5, "tool_diversity": 0.5, "outcome_confidence": -0.5}},
        {"weights": {"complexity": 0.5, "novelty": 0.5, "tool_diversity": 1e-8, "outcome_confidence": 0}},
        {"weights": {"complexity": 1}},
        {"recovery_bonus_min": 0},
        {"preset": "other"},
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TraceValue.model_validate(options)


def test_without_a_trace_there_is_nothing_to_measure() -> None:
    with pytest.raises(MissingInput):
        TraceValue().score(Subject(invocation=Invocation()))
