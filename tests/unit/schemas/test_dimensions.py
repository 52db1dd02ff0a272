"""Dimensions: their bounds, which value counts, and the hash of a user id."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.dimensions import (
    UNKNOWN,
    Dimensions,
    TraceContext,
    hashed_user_id,
    invocation_dimensions,
    session_dimensions,
)
from traceweir.schemas.events import EVENT, InvocationEvent

TRACE, SPAN = "a" * 32, "b" * 16


def event(fields: dict[str, object]) -> InvocationEvent:
    """Returns an event with these fields."""
    return EVENT.validate_json(json.dumps({"session_id": "s", "occurred_at": "2026-01-31T12:00:00Z"} | fields))


@pytest.mark.parametrize(
    "document",
    [
        {"agent_name": ""},
        {"agent_name": "a" * 257},
        {"labels": {}},
        {"labels": {str(number): "x" for number in range(9)}},
        {"labels": {"team": "x" * 257}},
        {"labels": {"x" * 257: "team"}},
        {"trace_context": {"trace_id": "0" * 32}},
        {"trace_context": {"trace_id": TRACE.upper()}},
        {"trace_context": {"trace_id": TRACE + "\n"}},
        {"trace_context": {"trace_id": TRACE, "span_id": TRACE}},
        {"sampling_probability": 0.0},
        {"sampling_probability": 1.5},
    ],
)
def test_a_value_outside_its_bounds_is_rejected(document: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Dimensions.model_validate(document)


def test_values_at_their_bounds_are_accepted_and_unknown_ones_left_out() -> None:
    document = {
        "agent_name": "a" * 256,
        "labels": {str(number): "x" for number in range(8)},
        "trace_context": {"trace_id": TRACE, "span_id": SPAN},
        "sampling_probability": 1.0,
    }
    assert Dimensions.model_validate(document).known == document


def test_the_last_known_value_of_an_invocations_events_counts() -> None:
    events = [Dimensions(model="small", agent_name="travel"), Dimensions(model="large"), UNKNOWN]
    assert invocation_dimensions(events) == Dimensions(model="large", agent_name="travel")


def test_an_unnamed_model_and_an_empty_text_are_unknown() -> None:
    started: dict[str, object] = {
        "type": "invocation.started",
        "model": "large",
        "agent_name": "travel",
        "app_name": "",
    }
    called: dict[str, object] = {"type": "model.called", "model": "unknown", "agent_name": "", "labels": {}}
    assert invocation_dimensions([event(started), event(called)]) == Dimensions(model="large", agent_name="travel")


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("app_name", "a" * 400_000, "String should have at most 256 characters"),
        ("model", "a" * 257, "String should have at most 256 characters"),
        ("user_id", "a" * 1_025, "String should have at most 1024 characters"),
        ("environment", 7, "Input should be a valid string"),
        ("labels", {str(number): "x" for number in range(9)}, "Dictionary should have at most 8 items"),
        ("labels", {"team": "x" * 10_000}, "String should have at most 256 characters"),
        ("labels", ["team"], "Input should be an object"),
        ("trace_context", {"trace_id": "0" * 32}, "String should match pattern"),
        ("trace_context", "00-" + TRACE, "Input should be an object"),
        ("sampling_probability", 0, "Input should be greater than 0"),
    ],
)
def test_an_event_with_an_unusable_dimension_is_refused_with_the_field_and_the_rule(
    field: str, value: object, rule: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        event({"type": "model.called", "model": "m", field: value})
    message = explain(refused.value)
    assert field in message
    assert rule in message
    assert len(message) < 300


def test_a_session_has_a_trace_context_only_if_all_its_invocations_share_it() -> None:
    context = TraceContext(trace_id=TRACE)
    first = Dimensions(agent_version="1", trace_context=context, sampling_probability=0.5)
    assert session_dimensions([first, first]) == first
    other = Dimensions(agent_version="2", trace_context=TraceContext(trace_id="c" * 32), sampling_probability=0.5)
    assert session_dimensions([first, other]) == Dimensions(agent_version="2", sampling_probability=0.5)
    assert session_dimensions([first, UNKNOWN]) == Dimensions(agent_version="1")


def test_a_session_without_invocations_has_no_dimensions() -> None:
    assert session_dimensions([]) == UNKNOWN


def test_a_hashed_user_id_depends_on_the_id_and_the_key_and_does_not_contain_the_id() -> None:
    texts = [hashed_user_id(name, key) for name in ("ada", "bob") for key in (b"", b"one", b"two")]
    assert len(set(texts)) == len(texts)
    assert not any("ada" in text.split(":")[1] for text in texts)


def test_a_hashed_user_id_stays_the_same_over_releases() -> None:
    expected = "hmac-sha256:ae160e5fe4fcdb919ed058508876e30cd983f40114fa4253f32d1eb2f1689ae6"
    assert hashed_user_id("ada@example.com", b"key") == expected
