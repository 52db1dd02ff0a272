"""A label names what was judged, has exactly one answer, and says with which probability it was drawn."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.export import exported
from traceweir.schemas.labels import Label, LabelSubject, label_id

LABEL: dict[str, Any] = {
    "label_id": "l-1",
    "subject": {"session_id": "s-1", "segment": 0, "revision": 2, "level": "invocation", "invocation_id": "i-1"},
    "criterion": "helpful",
    "verdict": "fail",
    "annotator": "ana",
    "kind": "review",
    "drawn": "random",
    "inclusion_probability": 0.1,
    "occurred_at": "2026-01-01T10:00:00Z",
}


def read(document: dict[str, Any]) -> Label:
    return Label.model_validate_json(json.dumps(document))


def test_a_label_is_read_as_it_was_written() -> None:
    label = read(LABEL)
    assert Label.model_validate_json(label.wire()) == label
    assert label.calibrates


@pytest.mark.slow
def test_what_is_written_has_the_published_schema() -> None:
    schema = json.loads(dict(exported())["Label.schema.json"])
    jsonschema.validate(json.loads(read(LABEL).wire()), schema)


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "user"},
        {"kind": "outcome"},
        {"drawn": "flagged", "inclusion_probability": None},
        {"drawn": "none", "inclusion_probability": None},
        {"withdrawn": True},
    ],
)
def test_only_a_review_that_was_drawn_at_random_calibrates(changed: dict[str, Any]) -> None:
    assert not read(LABEL | changed).calibrates


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"verdict": "maybe"}, "verdict: Input should be 'pass', 'fail' or 'unsure'"),
        ({"verdict": None}, "document: a label needs exactly one of verdict, value, category"),
        ({"value": 3.0}, "verdict and value are given, and a label has exactly one of verdict, value, category"),
        ({"inclusion_probability": None}, "drawn random with inclusion_probability None"),
        ({"drawn": "flagged"}, "present exactly when the subject was drawn at random"),
        ({"inclusion_probability": 0.0}, "inclusion_probability: Input should be greater than 0 (got 0.0)"),
        ({"occurred_at": "2026-01-01T10:00:00"}, "occurred_at: Input should have timezone info"),
        ({"annotator": ""}, "annotator: String should have at least 1 character"),
        ({"note": "x" * 4001}, "note: String should have at most 4000 characters"),
        ({"kind": "thumb"}, "kind: Input should be 'review', 'user' or 'outcome'"),
        ({"subject": {"session_id": "s", "level": "trace"}}, "a label of the level trace needs trace_id"),
        (
            {"subject": {"session_id": "s", "level": "session", "invocation_id": "i"}},
            "a label of the level session has no invocation_id",
        ),
    ],
)
def test_a_label_that_breaks_a_rule_is_refused_with_the_rule(changed: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValidationError) as refused:
        read(LABEL | changed)
    assert rule in explain(refused.value)


def test_a_withdrawn_label_needs_no_verdict() -> None:
    assert read(LABEL | {"verdict": None, "withdrawn": True}).withdrawn


def test_the_id_of_a_label_tells_apart_who_judges_what() -> None:
    whole = LabelSubject(session_id="s", segment=0, level="session")
    part = LabelSubject(session_id="s", segment=0, level="invocation", invocation_id="s")
    ids = {
        label_id(whole, "helpful", "ana", "review"),
        label_id(part, "helpful", "ana", "review"),
        label_id(whole, "polite", "ana", "review"),
        label_id(whole, "helpful", "ben", "review"),
        label_id(whole, "helpful", "ana", "user"),
        label_id(whole.model_copy(update={"segment": 1}), "helpful", "ana", "review"),
    }
    assert len(ids) == 6
