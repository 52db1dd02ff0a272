"""Tests that the gate's rules of a plan decide as the plan does."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.certificates import certificate

from traceweir.scorers.evaluation.gate_rules import gate_rules, plan_of_rules
from traceweir.scorers.evaluation.plan import read_plan

WEIGHTS = {"complexity": 0.25, "novelty": 0.25, "tool_diversity": 0.25, "outcome_confidence": 0.25}


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"gate": {"threshold": 0.9, "required": ["latency"], "scope": "global", "redact": {"embedding": "x"}}},
        {"trace_value": {"preset": "knowledgepulse"}},
        {"trace_value": {"weights_by_domain": {"a": WEIGHTS, "embedding": WEIGHTS}}},
        {"gate": {"presidio": {"model": "en_core_web_sm"}}},
    ],
)
@pytest.mark.parametrize("embedder", [None, "hashing"])
def test_rules_that_are_read_again_decide_and_name_their_scores_as_before(
    config: dict[str, Any], embedder: str | None
) -> None:
    plan = read_plan(config | ({"criteria": {"latency": {}}} if "required" in str(config) else {}))
    again = plan_of_rules(gate_rules(plan))
    assert (again.digest, again.gate, again.trace_value) == (plan.digest, plan.gate, plan.trace_value)
    assert again.gate_digest(embedder) == plan.gate_digest(embedder)
    assert again.trace_value_digest(embedder) == plan.trace_value_digest(embedder)


def test_a_candidate_carries_the_certificates_that_its_decision_needs() -> None:
    given = [certificate(criterion=name).model_dump(mode="json") for name in ("helpful", "kind")]
    gate: dict[str, Any] = {"required": ["helpful"], "certificates": given}
    criteria: dict[str, Any] = {"helpful": {"threshold": 0.5, "prompt": "Is it helpful?\n\n{answer}"}}
    plan = read_plan({"criteria": criteria, "gate": gate})
    strict = read_plan({"criteria": criteria, "gate": gate | {"require_certified": True}})

    carried = gate_rules(plan)["gate"]
    assert isinstance(carried, dict)
    assert {"certificates", "require_certified"}.isdisjoint(carried)
    again = plan_of_rules(gate_rules(strict))
    assert again.gate.require_certified
    assert [each.criterion for each in again.gate.certificates] == ["helpful"]
    assert again.gate_digest("hashing") == strict.gate_digest("hashing")


@pytest.mark.parametrize("document", [{}, {"digest": "d", "gate": {"threshold": 7}, "trace_value": {}}])
def test_a_document_that_is_no_rules_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^gate_rules: "):
        plan_of_rules(document)
