"""Rewrites what senders write in another form than the schema's, where the form has only one meaning.

The forms are `null` for an absent id, a text for a message, and a number for a time. The schemas stay strict, and a
document in the schema's form is never changed, so that only documents that would be rejected pay for the rewriting.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import orjson
from pydantic import JsonValue, ValidationError

from traceweir.schemas.base import JsonObject
from traceweir.schemas.events import EVENT, InvocationEvent
from traceweir.schemas.reference import Reference

UNITS_PER_S: Mapping[str, int] = {
    "seconds": 1,
    "milliseconds": 1_000,
    "microseconds": 1_000_000,
    "nanoseconds": 1_000_000_000,
}
"""The units of a time since 1970. Within the years below, a number is a time in at most one of them."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_S = int(datetime(2001, 1, 1, tzinfo=UTC).timestamp())
_END_S = int(datetime(2101, 1, 1, tzinfo=UTC).timestamp())
_ABSENT_AS_NULL = ("invocation_id", "invocationId", "app_name", "author")
"""Keys of texts that are empty if they are absent; `null` means the same."""
_USER, _MODEL = "user", "model"
_IN_EVENT = {"user_content": _USER, "final_response": _MODEL, "content": _MODEL}
_IN_TURN = {
    "user_content": _USER,
    "userContent": _USER,
    "final_response": _MODEL,
    "finalResponse": _MODEL,
}
"""The keys of messages, with the role of a message that is only a text."""


def time_since_1970(number: float) -> datetime:
    """Returns the time of a number of seconds, milliseconds, microseconds or nanoseconds since 1970, in UTC.

    Raises:
        ValueError: The number is a time in the years 2001 to 2100 in none of these units.

    >>> time_since_1970(1_767_225_600).isoformat(), time_since_1970(1_767_225_600_250).isoformat()
    ('2026-01-01T00:00:00+00:00', '2026-01-01T00:00:00.250000+00:00')
    """
    for units in UNITS_PER_S.values():
        if _FIRST_S * units <= number < _END_S * units:
            microseconds = number * 1_000_000 // units if isinstance(number, int) else round(number * 1_000_000 / units)
            return _EPOCH + timedelta(microseconds=microseconds)
    *units_but_last, last = UNITS_PER_S
    raise ValueError(
        f"{str(number)[:40]} is not a time in the years 2001 to 2100, in {', '.join(units_but_last)} or {last} since "
        "1970; write a date-time with its zone, such as 2026-01-31T12:00:00Z"
    )


def read_event(value: bytes) -> InvocationEvent:
    """Returns the event in a JSON document, in the form of the schema or in another form.

    Raises:
        ValidationError: The document is not an event.
        ValueError: `occurred_at` is a number that is no time; the message names the key.
    """
    try:
        return EVENT.validate_json(value)
    except ValidationError:
        rewritten = event_in_schema_form(_parsed(value))
        if rewritten is None:
            raise
    return EVENT.validate_json(orjson.dumps(rewritten))


def read_reference(value: bytes) -> Reference:
    """Returns the reference in a JSON document, in the form of the schema or in another form.

    Raises:
        ValidationError: The document is not a reference.
    """
    try:
        return Reference.model_validate_json(value)
    except ValidationError:
        rewritten = turn_in_schema_form(_parsed(value))
        if rewritten is None:
            raise
    return Reference.model_validate_json(orjson.dumps(rewritten))


def _parsed(value: bytes) -> JsonValue:
    try:
        found: JsonValue = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return found


def event_in_schema_form(document: JsonValue) -> JsonObject | None:
    """Returns an event in the form of the schema; None if nothing in the document has another form.

    Raises:
        ValueError: `occurred_at` is a number that is no time; the message names the key.

    >>> event_in_schema_form({"type": "invocation.started", "invocation_id": None, "user_content": "Hi"})
    {'type': 'invocation.started', 'user_content': {'parts': [{'text': 'Hi'}], 'role': 'user'}}
    """
    if not isinstance(document, dict):
        return None
    found = _rewritten(document, _IN_EVENT)
    time = document.get("occurred_at")
    if isinstance(time, int | float) and not isinstance(time, bool):
        try:
            found = (found or document) | {"occurred_at": time_since_1970(time).isoformat()}
        except ValueError as error:
            raise ValueError(f"occurred_at: {error}") from None
    for key in ("reference", "invocation"):
        if (rewritten := turn_in_schema_form(document.get(key))) is not None:
            found = (found or document) | {key: rewritten}
    return found


def turn_in_schema_form(document: JsonValue) -> JsonObject | None:
    """Returns an invocation or a reference in the form of its schema; None if nothing in it has another form."""
    return _rewritten(document, _IN_TURN) if isinstance(document, dict) else None


def _rewritten(document: JsonObject, messages: Mapping[str, str]) -> JsonObject | None:
    found: JsonObject | None = None
    for key, value in document.items():
        if value is None and key in _ABSENT_AS_NULL:
            found = {name: each for name, each in (found or document).items() if name != key}
        elif isinstance(value, str) and key in messages:
            found = (found or document) | {key: {"parts": [{"text": value}], "role": messages[key]}}
    return found
