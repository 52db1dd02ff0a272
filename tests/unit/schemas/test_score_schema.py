"""Tests that a Score is consistent, and never contains a number that JSON does not allow."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError
from tests.support.scoring import NOW

from traceweir.schemas.dimensions import Dimensions
from traceweir.schemas.score import NAMESPACE, Score, result_id, uuid5

PASSED: dict[str, Any] = {
    "result_id": "r",
    "revision": 0,
    "session_id": "s",
    "segment": 0,
    "level": "session",
    "metric": "m",
    "value": 0.5,
    "threshold": 0.5,
    "status": "PASSED",
    "scorer_version": "1",
    "config_digest": "d",
    "occurred_at": NOW,
    "evaluated_at": NOW,
}


@pytest.mark.parametrize(
    ("status", "value", "because", "accepted"),
    [
        ("PASSED", 0.5, None, True),
        ("FAILED", 0.0, None, True),
        ("NOT_EVALUATED", None, "timeout", True),
        ("PASSED", None, None, False),
        ("FAILED", 0.5, "error", False),
        ("NOT_EVALUATED", 0.5, "error", False),
        ("NOT_EVALUATED", None, None, False),
        ("NOT_EVALUATED", None, "forgot", False),
        ("MAYBE", 0.5, None, False),
    ],
)
def test_a_value_is_absent_exactly_when_it_was_not_evaluated(
    status: str, value: float | None, because: str | None, accepted: bool
) -> None:
    document = {**PASSED, "status": status, "value": value, "not_evaluated_because": because}
    if accepted:
        assert Score(**document).value == value
        return
    with pytest.raises(ValidationError):
        Score(**document)


@pytest.mark.parametrize(
    ("because", "cause", "accepted"),
    [
        ("error", "judge_refused", True),
        ("error", None, True),
        ("timeout", "judge_unavailable", False),
        ("missing_input", "too_long", False),
        ("missing_input", "not_recorded", True),
        ("missing_input", "record_refused", True),
        ("error", "not_recorded", False),
        (None, "judge_refused", False),
        ("error", "judge_tired", False),
    ],
)
def test_a_cause_belongs_to_its_reason(because: str | None, cause: str | None, accepted: bool) -> None:
    missing: dict[str, Any] = {"status": "NOT_EVALUATED", "value": None} if because else {}
    document: dict[str, Any] = {**PASSED, **missing, "not_evaluated_because": because, "cause": cause}
    if not accepted:
        with pytest.raises(ValidationError, match="cause"):
            Score(**document)
        return
    score = Score(**document)
    assert ("cause" in json.loads(score.wire())) == (cause is not None)
    assert Score.model_validate_json(score.wire()) == score


@pytest.mark.parametrize("number", [float("nan"), float("inf"), "0.5", True])
def test_a_value_is_a_finite_number(number: object) -> None:
    with pytest.raises(ValidationError):
        Score(**{**PASSED, "value": number})


def test_details_contain_no_nan() -> None:
    with pytest.raises(ValidationError):
        Score(**PASSED, details={"a": [float("nan")]})


def test_times_without_a_zone_are_rejected() -> None:
    with pytest.raises(ValidationError, match="timezone"):
        Score(**{**PASSED, "occurred_at": NOW.replace(tzinfo=None)})


def test_a_score_on_the_wire_has_every_field_but_unknown_dimensions_and_reads_back() -> None:
    score = Score(**PASSED)
    document = json.loads(score.wire())
    assert document.keys() == Score.model_fields.keys() - Dimensions.model_fields.keys() - {
        "inclusion_probability",
        "category",
        "cause",
        "judge",
        "metric_digest",
        "segment_opened_at",
        "source",
    }
    assert document["occurred_at"] == "2026-01-31T12:00:00Z"
    assert Score.model_validate_json(json.dumps(document | {"a later field": 1})) == score


@pytest.mark.parametrize("details", [{}, {"more than 64 bits": 2**70}])
def test_a_score_on_the_wire_has_its_known_dimensions(details: dict[str, Any]) -> None:
    known: dict[str, Any] = {
        "agent_name": "travel",
        "labels": {"team": "search"},
        "trace_context": {"trace_id": "a" * 32},
    }
    score = Score(**PASSED, **known, source="code", details=details)
    document = json.loads(score.wire())
    assert document.keys() & {*Dimensions.model_fields, "source"} == {*known, "source"}
    assert Score.model_validate_json(score.wire()) == score


def test_an_id_is_a_uuid_of_version_5() -> None:
    found = UUID(uuid5("a", "1"))
    assert (found.version, found.variant) == (5, "specified in RFC 4122")
    assert len(NAMESPACE) == 16


def test_every_part_of_a_result_id_changes_the_id() -> None:
    parts: list[Any] = ["s", 0, "invocation", "i", "m", "d"]
    others = [[*parts[:at], other, *parts[at + 1 :]] for at, other in enumerate(["t", 1, "trace", "j", "n", "e"])]
    assert len({result_id(*each) for each in [parts, *others]}) == 7
