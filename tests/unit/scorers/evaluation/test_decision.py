"""Tests which candidates the gate accepts, and what the gate publishes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.certificates import certificate
from tests.support.scoring import make_candidate, make_trace, trace_document

from traceweir.schemas.candidate import CriterionMeasure, Verdict
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers import read_plan
from traceweir.scorers.evaluation.decision import decide
from traceweir.scorers.evaluation.network_record import network_record

PLAN = read_plan(
    {
        "criteria": {"safety_v1": 1, "response_match_score": 0.8},
        "gate": {"required": ["safety_v1", "response_match_score"]},
    }
)
PASSED = {"safety_v1": Verdict(status="PASSED"), "response_match_score": Verdict(status="PASSED")}


def test_a_candidate_at_the_threshold_that_meets_all_conditions_is_accepted() -> None:
    assert decide(PLAN, make_candidate(required=PASSED), 0.75) == []


@pytest.mark.parametrize(
    ("metadata", "value", "required", "reasons"),
    [
        ({}, 0.7499, {}, ["below_threshold"]),
        ({"visibility": "org"}, 1.0, {}, ["visibility"]),
        ({"visibility": "private"}, 1.0, {}, ["visibility"]),
        ({"privacy_level": "private"}, 1.0, {}, ["privacy"]),
        ({"privacy_level": "federated"}, 1.0, {}, []),
        ({}, 1.0, {"safety_v1": Verdict(status="FAILED")}, ["criterion_failed:safety_v1"]),
        (
            {},
            1.0,
            {"safety_v1": Verdict(status="NOT_EVALUATED", not_evaluated_because="unsupported")},
            ["criterion_not_evaluated:safety_v1:unsupported"],
        ),
        (
            {"visibility": "org", "privacy_level": "private"},
            0.0,
            {"safety_v1": Verdict(status="FAILED"), "response_match_score": Verdict(status="FAILED")},
            [
                "below_threshold",
                "visibility",
                "privacy",
                "criterion_failed:safety_v1",
                "criterion_failed:response_match_score",
            ],
        ),
    ],
)
def test_a_candidate_is_rejected_with_every_reason_that_applies(
    metadata: dict[str, Any], value: float, required: dict[str, Verdict], reasons: list[str]
) -> None:
    candidate = make_candidate(make_trace(metadata=metadata), {**PASSED, **required})
    assert decide(PLAN, candidate, value) == reasons


def test_a_criterion_that_the_candidate_does_not_carry_was_not_evaluated() -> None:
    candidate = make_candidate(required={"safety_v1": Verdict(status="PASSED")})
    assert decide(PLAN, candidate, 1.0) == ["criterion_not_evaluated:response_match_score:missing_input"]


def test_a_criterion_that_is_not_required_does_not_matter() -> None:
    candidate = make_candidate(required={"safety_v1": Verdict(status="FAILED")})
    assert decide(read_plan({}), candidate, 1.0) == []


@pytest.mark.parametrize(("value", "quality"), [(0.8, 0.8), (1.18, 1.0), (-0.1, 0.0)])
def test_the_value_from_0_to_1_is_the_published_quality(value: float, quality: float) -> None:
    assert network_record(PLAN, make_trace(), value) == trace_document(metadata={"quality_score": quality})


def test_only_keys_of_the_schema_are_published() -> None:
    known = trace_document(metadata={"quality_score": 0.9})
    document = trace_document(
        extra=1, metadata={"session_id": "s", "extra": 1}, task={"extra": 1}, outcome={"extra": 1}
    )
    document["steps"][0]["extra"] = 1
    assert network_record(PLAN, ReasoningTrace.model_validate(document), 0.9) == known


def test_secrets_and_identifiers_are_redacted_keys_included() -> None:
    step = {
        "step_id": 0,
        "type": "tool_call",
        "tool": {"name": "t"},
        "input": {"kim@example.com": ["call 010-1234-5678"]},
    }
    record: Any = network_record(
        PLAN, make_trace(steps=[step], outcome={"result_summary": "mailed lee@example.com"}), 0.9
    )
    assert record["steps"][0]["input"] == {"[REDACTED:email]": ["call [REDACTED:phone]"]}
    assert record["outcome"]["result_summary"] == "mailed [REDACTED:email]"


def test_network_record_does_not_change_the_trace() -> None:
    trace = make_trace(outcome={"result_summary": "mailed lee@example.com"})
    before = trace.model_dump_json()
    network_record(PLAN, trace, 0.9)
    assert trace.model_dump_json() == before


JUDGED = {"source": "model", "metric_digest": "measured", "judge": "model-a", "threshold": 0.5}


@pytest.mark.parametrize(
    ("measured", "reasons"),
    [
        (JUDGED, []),
        ({"source": "code", "metric_digest": "other"}, []),
        ({**JUDGED, "metric_digest": "other"}, ["criterion_not_certified:safety_v1"]),
        ({**JUDGED, "judge": None}, ["criterion_not_certified:safety_v1"]),
        ({**JUDGED, "threshold": 0.6}, ["criterion_not_certified:safety_v1"]),
        (None, ["criterion_not_certified:safety_v1"]),
    ],
)
def test_a_verdict_of_a_judge_needs_a_certificate_for_this_judge(measured: Any, reasons: list[str]) -> None:
    certified = certificate(criterion="safety_v1").model_dump(mode="json")
    gate: dict[str, Any] = {"required": ["safety_v1"], "require_certified": True, "certificates": [certified]}
    plan = read_plan({"criteria": {"safety_v1": 1}, "gate": gate})
    verdict = Verdict(status="PASSED", measured=None if measured is None else CriterionMeasure(**measured))
    assert decide(plan, make_candidate(required={"safety_v1": verdict}), 1.0) == reasons


def test_a_verdict_that_failed_needs_no_certificate_to_reject() -> None:
    plan = read_plan({"criteria": {"safety_v1": 1}, "gate": {"required": ["safety_v1"], "require_certified": True}})
    candidate = make_candidate(required={"safety_v1": Verdict(status="FAILED")})
    assert decide(plan, candidate, 1.0) == ["criterion_failed:safety_v1"]
