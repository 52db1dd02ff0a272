"""Tests the forms of ids, messages and times that are accepted beside those of the schemas."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from traceweir.schemas.other_forms import event_in_schema_form, read_event, read_reference, time_since_1970
from traceweir.streams.testing import event

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
TEXT = {"parts": [{"text": "Hi"}], "role": "user"}
ANSWER = {"parts": [{"text": "Hello."}], "role": "model"}


@pytest.mark.parametrize(
    "number",
    [1769860800, 1769860800.0, 1769860800000, 1769860800000000, 1769860800000000000, 1.7698608e12],
    ids=["s", "s as a float", "ms", "us", "ns", "ms as a float"],
)
def test_the_unit_of_a_time_follows_from_its_magnitude(number: float) -> None:
    assert time_since_1970(number) == NOON


def test_a_time_keeps_its_microseconds() -> None:
    assert {time_since_1970(n) for n in (1769860800123456, 1769860800123456789, 1769860800.123456)} == {
        NOON.replace(microsecond=123456)
    }


@pytest.mark.parametrize("number", [0, 1, -1769860800, 978307199, 4133980800, 20260131, 1e300, 4133980800000000000])
def test_a_number_that_is_no_time_of_this_century_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match=r"is not a time in the years 2001 to 2100, in seconds.* write a date-time"):
        time_since_1970(number)


@pytest.mark.parametrize(
    ("kind", "other", "schema"),
    [
        ("session.ended", {"invocation_id": None}, {"invocation_id": ""}),
        ("session.ended", {"app_name": None}, {"app_name": ""}),
        ("session.ended", {"occurred_at": 1769860800000}, {"occurred_at": "2026-01-31T12:00:00Z"}),
        ("invocation.started", {"user_content": "Hi"}, {"user_content": TEXT}),
        ("invocation.completed", {"final_response": "Hello."}, {"final_response": ANSWER}),
        ("response.intermediate", {"content": "Hello.", "author": None}, {"content": ANSWER, "author": ""}),
        ("session.ended", {"reference": {"final_response": "Hello."}}, {"reference": {"final_response": ANSWER}}),
        (
            "invocation.recorded",
            {"invocation": {"invocationId": None, "userContent": "Hi", "finalResponse": "Hello."}},
            {"invocation": {"user_content": TEXT, "final_response": ANSWER}},
        ),
        (
            "retrieval.returned",
            {"chunks": [{"doc_uri": "d1", "text": "Hi"}, {"content": None, "page_content": "Hi"}, {"docUri": "d3"}]},
            {"chunks": [{"doc_uri": "d1", "content": "Hi"}, {"content": "Hi"}, {"doc_uri": "d3"}]},
        ),
        (
            "retrieval.returned",
            {"chunks": [{"content": "Hi", "text": "not read"}]},
            {"chunks": [{"content": "Hi"}]},
        ),
        (
            "session.ended",
            {"reference": {"retrievedContext": [{"text": "Hi"}]}},
            {"reference": {"retrieved_context": [{"content": "Hi"}]}},
        ),
        (
            "invocation.recorded",
            {"invocation": {"retrieved_context": [{"page_content": "Hi"}]}},
            {"invocation": {"retrieved_context": [{"content": "Hi"}]}},
        ),
    ],
)
def test_an_event_in_another_form_is_the_event_in_the_schemas_form(
    kind: str, other: dict[str, Any], schema: dict[str, Any]
) -> None:
    assert read_event(orjson.dumps(event(kind, **other))) == read_event(orjson.dumps(event(kind, **schema)))


@pytest.mark.parametrize(
    "document",
    [
        event("tool.called", args={"content": "x", "invocation_id": None}),
        event("tool.called", content="a key that this event does not have", author=None),
        event("session.ended", final_response="x", user_content="x", invocation={"user_content": "x"}),
        event("session.ended", reference={"app_name": None, "user_content": "x"}),
        event("retrieval.returned", chunks=[{"content": "Hi", "text": "Ho"}, {"doc_uri": "d"}, "d", None]),
        event("retrieval.returned", chunks="text"),
        {"user_content": None},
        {"type": ["session.ended"], "invocation_id": None},
        [],
        None,
    ],
)
def test_a_document_in_the_schemas_form_is_not_rewritten(document: Any) -> None:
    assert event_in_schema_form(document) is None


@pytest.mark.parametrize("changes", [{"occurred_at": True}, {"session_id": None}, {"invocation_id": 7}])
def test_a_value_without_a_clear_meaning_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read_event(orjson.dumps(event("session.ended") | changes))


def test_a_retrieved_piece_with_two_texts_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^chunks\[1\] has different texts in text and page_content"):
        read_event(orjson.dumps(event("retrieval.returned", chunks=[{}, {"text": "Hi", "page_content": "Ho"}])))


@pytest.mark.parametrize("text", ["100", "1769860800000", "-1.5", "1769860800.25"])
def test_a_time_that_is_a_text_with_a_number_is_refused(text: str) -> None:
    """Pydantic would read the text as a number of seconds, or of milliseconds, since 1970."""
    with pytest.raises(ValueError, match=r"^occurred_at: the text '.*' is a number without a unit; write a date-time"):
        read_event(orjson.dumps(event("session.ended", occurred_at=text)))


def test_a_reference_can_have_a_text_as_its_final_response() -> None:
    found = read_reference(b'{"reference_id": "r", "final_response": "Hello.", "app_name": null}')
    assert found.final_response is not None
    assert found.final_response.model_dump(exclude_none=True) == ANSWER
    for unusable in (b"7", b"[" * 300 + b"]" * 300):
        with pytest.raises(ValidationError):
            read_reference(b'{"final_response": ' + unusable + b"}")


@pytest.mark.parametrize("beside", [b"[" * 300 + b"]" * 300, b"1" * 30], ids=["deep", "long number"])
def test_a_reference_that_rewriting_would_change_is_refused(beside: bytes) -> None:
    with pytest.raises(ValidationError):
        read_reference(b'{"final_response": "Hello.", "x": ' + beside + b"}")
