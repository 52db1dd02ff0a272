"""Rewrites what senders write in another form than the schema's, where the form has only one meaning.

The forms are `null` for an absent id, a text for a message, another name for the text of a retrieved piece, and a number
for a time. The schemas stay strict, and only documents with one of these forms pay for the rewriting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache

import orjson
from pydantic import BaseModel, JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.chunk_texts import with_content
from traceweir.schemas.events import EVENT, TYPES, InvocationEvent
from traceweir.schemas.invocation import Invocation, RetrievedChunk
from traceweir.schemas.model_keys import models_in
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
_ROLES = {"user_content": "user", "final_response": "model", "content": "model"}
"""The fields of messages, with the role of a message that is only a text."""
_NUMBER = re.compile(r"[+-]?[0-9.]+")
_EXPONENT = re.compile(re.escape(orjson.dumps(1e18).strip(b"0123456789")))
"""How orjson writes an exponent: integers of more than 64 bits are read as floats and written with one."""
_LONG = re.compile(rb"\d{19}")
"""An integer has to have this many digits to exceed 64 bits."""


def time_since_1970(number: float) -> datetime:
    """Returns the time of a number of seconds, milliseconds, microseconds or nanoseconds since 1970, in UTC.

    Raises:
        ValueError: the number is a time in the years 2001 to 2100 in none of these units.

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
        ValidationError: the document is not an event.
        ValueError: `occurred_at` is a number that is no time, or a text with a number, or a retrieved piece has different
            texts; the message names the key.
    """
    rewritten = rewritten_json(event_in_schema_form(_parsed(value)), value)
    return EVENT.validate_json(value if rewritten is None else rewritten)


def read_reference(value: bytes) -> Reference:
    """Returns the reference in a JSON document, in the form of the schema or in another form.

    Raises:
        ValidationError: the document is not a reference.
        ValueError: a retrieved piece has different texts; the message names the key.
    """
    rewritten = rewritten_json(_rewritten(_parsed(value), Reference), value)
    return Reference.model_validate_json(value if rewritten is None else rewritten)


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
    except orjson.JSONEncodeError:
        # orjson reads deeper documents than it writes.
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

    Keys that the schema does not know are left as they are.

    Raises:
        ValueError: `occurred_at` is a number that is no time, or a text with a number, or a retrieved piece has different
            texts; the message names the key.

    >>> event_in_schema_form({"type": "invocation.started", "invocation_id": None, "user_content": "Hi"})
    {'type': 'invocation.started', 'user_content': {'parts': [{'text': 'Hi'}], 'role': 'user'}}
    """
    kind = document.get("type") if isinstance(document, dict) else None
    model = TYPES.get(kind) if isinstance(kind, str) else None
    if model is None or not isinstance(document, dict):
        return None
    found = _rewritten(document, model)
    time = document.get("occurred_at")
    if isinstance(time, str) and _NUMBER.fullmatch(time):
        raise ValueError(
            f"occurred_at: the text {time[:40]!r} is a number without a unit; write a date-time with its zone, such as "
            "2026-01-31T12:00:00Z, or a JSON number without quotes"
        )
    if isinstance(time, int | float) and not isinstance(time, bool):
        try:
            found = (found or document) | {"occurred_at": time_since_1970(time).isoformat().replace("+00:00", "Z")}
        except ValueError as error:
            raise ValueError(f"occurred_at: {error}") from None
    for key, part in (("reference", Reference), ("invocation", Invocation)):
        if key in model.model_fields and (rewritten := _rewritten(document.get(key), part)) is not None:
            found = (found or document) | {key: rewritten}
    return found


def _rewritten(document: JsonValue, model: type[BaseModel]) -> JsonObject | None:
    """Returns a document with the texts and messages of its model in the form of the schema; None if all have this form.

    Raises:
        ValueError: a retrieved piece has different texts; the message names the key.
    """
    if not isinstance(document, dict):
        return None
    empty, messages, chunks = _keys(model)
    found: JsonObject | None = None
    for key, value in document.items():
        if value is None and key in empty:
            found = {name: each for name, each in (found or document).items() if name != key}
        elif isinstance(value, str) and key in messages:
            found = (found or document) | {key: {"parts": [{"text": value}], "role": messages[key]}}
        elif key in chunks and isinstance(value, list):
            pieces = [_with_content(piece, f"{key}[{number}]") for number, piece in enumerate(value)]
            if any(piece is not None for piece in pieces):
                found = (found or document) | {
                    key: [old if new is None else new for old, new in zip(value, pieces, strict=True)]
                }
    return found


def _with_content(piece: JsonValue, path: str) -> JsonObject | None:
    """Returns a retrieved piece with its text as `content`; None if it has it so, or has no text.

    Raises:
        ValueError: the piece has different texts; the message begins with the path.
    """
    if not isinstance(piece, dict) or piece.get("content") is not None:
        return None
    try:
        found = with_content(piece)
    except ValueError as error:
        raise ValueError(f"{path} {error}; write the one that counts as content") from None
    return found if "content" in found else None


@cache
def _keys(model: type[BaseModel]) -> tuple[frozenset[str], Mapping[str, str], frozenset[str]]:
    """Returns the keys of texts that are empty if they are absent, those of messages with their roles, and those of chunks."""
    names = [(key, name, field) for name, field in model.model_fields.items() for key in {name, field.alias or name}]
    empty = frozenset(key for key, _, field in names if field.annotation is str and field.default == "")
    chunks = frozenset(key for key, _, field in names if RetrievedChunk in models_in(field.annotation))
    return empty, {key: _ROLES[name] for key, name, _ in names if name in _ROLES}, chunks
