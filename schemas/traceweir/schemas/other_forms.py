"""Rewrites what senders write in another form than the schema's, where the form has only one meaning.

The forms are `null` for an absent id, a text for a message, and a number for a time. The schemas stay strict, and only
documents with one of these forms pay for the rewriting.
"""

from __future__ import annotations

import re
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
_EXPONENT = re.compile(re.escape(orjson.dumps(1e18).strip(b"0123456789")))
"""How orjson writes an exponent: integers of more than 64 bits are read as floats and written with one."""
_LONG = re.compile(rb"\d{19}")
"""An integer has to have this many digits to exceed 64 bits."""


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
        rewritten = rewritten_json(event_in_schema_form(_parsed(value)), value)
        if rewritten is None:
            raise
    return EVENT.validate_json(rewritten)


def read_reference(value: bytes) -> Reference:
    """Returns the reference in a JSON document, in the form of the schema or in another form.

    Raises:
        ValidationError: The document is not a reference.
    """
    try:
        return Reference.model_validate_json(value)
    except ValidationError:
        rewritten = rewritten_json(turn_in_schema_form(_parsed(value)), value)
        if rewritten is None:
            raise
    return Reference.model_validate_json(rewritten)


def rewritten_json(document: JsonObject | None, original: bytes) -> bytes | None:
    """Returns the JSON of a rewritten document.

    The result is None if no document is given, if the document is nested too deeply, or if a number would lose digits.

    Args:
        document: The document in the form of the schema.
        original: The bytes that the sender wrote.
    """
    if document is None:
        return None
    try:
        rewritten = orjson.dumps(document)
    except orjson.JSONEncodeError:  # orjson reads deeper documents than it writes
        return None
    return None if loses_digits(rewritten, original) else rewritten


def loses_digits(written: bytes, original: bytes) -> bool:
    """Returns whether JSON that orjson read and wrote again can have an integer with fewer digits than the original."""
    return _EXPONENT.search(written) is not None and _LONG.search(original) is not None


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
            found = (found or document) | {"occurred_at": time_since_1970(time).isoformat().replace("+00:00", "Z")}
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
