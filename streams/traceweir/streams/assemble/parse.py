"""From a record's bytes to an event or a trace, or to the reason why not."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import orjson
from pydantic import ValidationError
from pydantic_core import from_json

from traceweir.schemas.base import explain
from traceweir.schemas.dead_letter import KEPT_BYTES
from traceweir.schemas.events import EVENT, TYPES
from traceweir.schemas.trace import ReasoningTrace, instant
from traceweir.streams.assemble.fast_decode import SHORT, NeedsFullValidation, fast_decoder
from traceweir.streams.stages.base import Record, envelope_size
from traceweir.streams.stages.errors import RecordRejected

_EVENT = fast_decoder(*TYPES.values())
_TRACE = fast_decoder(ReasoningTrace)

MAX_NAME = 1_024
"""The most characters of a name that becomes a key or a part of other documents, as of every other identifier."""

_EXPONENT = re.compile(re.escape(orjson.dumps(1e18).strip(b"0123456789")))
"""What orjson writes between the digits of a float as great as an integer beyond 64 bits. `in` would take twice as long as a pattern."""
_LONG = re.compile(rb"\d{19}")
"""The digits that an integer beyond 64 bits has at least: -9223372036854775809."""

_WRAPPED = 8
"""How much deeper than in its record a document may be nested in what the stages make of it."""
_HARMLESS = 180
"""How many brackets may open before one looks how deep they are nested: pydantic reads 200 levels."""

Joinable = tuple[bytes, float, bytes, bool]
"""What joining a record takes to know of it: the session's id; the moment, in seconds since 1970 (`occurred_at` of an event,
`metadata.created_at` of a trace); the identity, 16 bytes that two deliveries of the same thing share; whether it ends its session.
"""


def read_event(record: Record, value: bytes) -> Joinable:
    """An invocation event. Two deliveries share an `event_id`, else a CloudEvents id, else the content.

    Raises:
        RecordRejected: the bytes are no JSON object, or not an event.
    """
    parsed = _loaded(value) if len(value) > SHORT else None
    try:
        event = _EVENT(value, parsed)
    except NeedsFullValidation:
        event = _judged(EVENT.validate_json, value, parsed)
    if len(value) > 2 * _HARMLESS:
        _refuse_deep(value)
    if event.event_id is not None:
        identity = blake2b(b"i" + event.event_id.encode(), digest_size=16).digest()
    else:
        identity = _cloud_event_identity(record) or _digest(b"b" + _content(value, parsed))
    return event.session_id.encode(), event.occurred_at.timestamp(), identity, event.type == "session.ended"


def read_trace(record: Record, value: bytes) -> Joinable:
    """A reasoning trace. Its session is the one that it names, else the record's key, else its own id; its identity is its content.

    Raises:
        RecordRejected: the bytes are no JSON object, or not a trace, or a name in it is too long.
    """
    parsed = _loaded(value) if len(value) > SHORT else None
    try:
        trace = _TRACE(value, parsed)
    except NeedsFullValidation:
        trace = _judged(ReasoningTrace.model_validate_json, value, parsed)
    if len(value) > 2 * _HARMLESS:
        _refuse_deep(value)
    _refuse_long("id", trace.id)
    _refuse_long("metadata.session_id", trace.metadata.session_id or "")
    _refuse_long("metadata.task_domain", trace.metadata.task_domain)
    named = trace.metadata.session_id or _text(record.key)
    _refuse_long("key", named)
    created = instant(trace.metadata.created_at).timestamp()
    return (named or trace.id).encode(), created, _digest(b"t" + _content(value, parsed)), False


def present(record: Record, limit: int) -> bytes:
    """The value, if there is one and it has at most `limit` bytes.

    Raises:
        RecordRejected: a tombstone, an empty value, a value too large for a session, or a key and headers too large to forward.
    """
    value, key = record.value, record.key
    if not value:
        raise RecordRejected("empty", "the record has no value" if value is None else "the record's value is empty")
    if len(value) > limit:
        raise RecordRejected("too_large", f"the record has {len(value)} bytes; a session takes {limit} at most")
    if (size := envelope_size(key, record.headers)) > KEPT_BYTES:
        raise RecordRejected(
            "too_large", f"the record's key and headers have {size} bytes; at most {KEPT_BYTES} are taken"
        )
    return value


def _judged(validate: Callable[[bytes], Any], value: bytes, parsed: object) -> Any:
    if parsed is None:
        _loaded(value)
    try:
        return validate(value)
    except ValidationError as error:
        raise _unusable(value, error) from None


def _cloud_event_identity(record: Record) -> bytes | None:
    for name, content in record.headers:
        if name == "ce_id" and content:  # a header may have no value, and an empty id tells nothing apart
            return _digest(b"c" + content)
    return None


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _content(value: bytes, parsed: object) -> bytes:
    """What two deliveries of the same thing share, in whatever order their keys come. `parsed` is the value, if it was parsed before."""
    canonical = orjson.dumps(_loaded(value) if parsed is None else parsed, option=orjson.OPT_SORT_KEYS)
    # An integer beyond 64 bits was read as the nearest float, so that two of them may look the same: then only the very same bytes are.
    # Such a float is written with an exponent. To look for that first takes a tenth of the time of looking for digits.
    return value if _EXPONENT.search(canonical) and _LONG.search(value) else canonical


def _loaded(value: bytes) -> Any:
    """What JSON in the strict sense makes of it. The validator knows NaN, and takes 1e999 for infinity."""
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise RecordRejected("not_json", f"the value is not JSON: {error}") from None


def _refuse_deep(value: bytes) -> None:
    """Refuse what could be read alone, and not as part of a session or a candidate."""
    if value.count(b"{") + value.count(b"[") > _HARMLESS:
        try:
            from_json(b"[" * _WRAPPED + value + b"]" * _WRAPPED)
        except ValueError as error:
            raise RecordRejected("not_json", f"the value is nested too deep: {error}") from None


def _refuse_long(field: str, name: str) -> None:
    if len(name) > MAX_NAME:
        raise RecordRejected("invalid", f"{field}: must have at most {MAX_NAME} characters, not {len(name)}")


def _text(key: bytes | None) -> str:
    if not key:
        return ""
    try:
        return key.decode()
    except UnicodeDecodeError:
        return key.hex()  # a key of another encoding still names one session


def _unusable(value: bytes, error: ValidationError) -> RecordRejected:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return RecordRejected("not_json", f"the value is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}")
    if not first["loc"] and not value.lstrip().startswith(b"{"):
        return RecordRejected("not_an_object", "the value is JSON, but not an object")
    return RecordRejected("invalid", explain(error))
