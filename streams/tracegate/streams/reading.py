"""From a record's bytes to an event or a trace, or to the reason why not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import orjson
from pydantic import ValidationError
from pydantic_core import from_json

from tracegate.schemas.base import explain
from tracegate.schemas.dead_letter import KEPT_BYTES, Reason
from tracegate.schemas.events import EVENT, InvocationEvent
from tracegate.schemas.trace import ReasoningTrace
from tracegate.streams.stage import Record, envelope_size

# The validators themselves: what pydantic puts around them costs a tenth of the whole.
_validate_event: Callable[[bytes], InvocationEvent] = EVENT.validator.validate_json
_validate_trace: Callable[[bytes], ReasoningTrace] = ReasoningTrace.__pydantic_validator__.validate_json

MAX_NAME = 1_024
"""The most characters of a name that becomes a key or a part of other documents, as of every other identifier."""

_WRAPPED = 8
"""How much deeper than in its record a document may be nested in what the stages make of it."""
_HARMLESS = 100
"""How many brackets may open before one looks how deep they are nested."""


class Unusable(Exception):  # noqa: N818  # a verdict on a record, which becomes a dead letter; nothing went wrong here
    """A record that cannot be used: the reason, for counting, and one sentence for a person."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason: Reason = reason
        self.detail = detail


def read_event(value: bytes) -> InvocationEvent:
    """An invocation event.

    Raises:
        Unusable: the bytes are no JSON object, or not an event.
    """
    try:
        event = _validate_event(value)
    except ValidationError as error:
        raise _unusable(value, error) from None
    _loaded(value)
    _refuse_deep(value)
    return event


def read_trace(value: bytes) -> ReasoningTrace:
    """A reasoning trace.

    Raises:
        Unusable: the bytes are no JSON object, or not a trace.
    """
    try:
        trace = _validate_trace(value)
    except ValidationError as error:
        raise _unusable(value, error) from None
    _refuse_deep(value)
    _refuse_long("id", trace.id)
    _refuse_long("metadata.session_id", trace.metadata.session_id or "")
    _refuse_long("metadata.task_domain", trace.metadata.task_domain)
    return trace


def session_of(trace: ReasoningTrace, key: bytes | None) -> str:
    """The id of the session that a trace belongs to: its own word, else the record's key, else the trace's id.

    Raises:
        Unusable: the key is too long for a session id.
    """
    named = trace.metadata.session_id or _text(key)
    _refuse_long("key", named)
    return named or trace.id


def present(record: Record, limit: int) -> bytes:
    """The value, if there is one and it has at most `limit` bytes.

    Raises:
        Unusable: a tombstone, an empty value, one that is too large to be part of a session, or a key and headers too large to forward.
    """
    value = record.value
    if not value:
        raise Unusable("empty", "the record has no value" if value is None else "the record's value is empty")
    if len(value) > limit:
        raise Unusable("too_large", f"the record has {len(value)} bytes; a session takes {limit} at most")
    if (record.headers or record.key) and (size := envelope_size(record.key, record.headers)) > KEPT_BYTES:
        raise Unusable("too_large", f"the record's key and headers have {size} bytes; at most {KEPT_BYTES} are taken")
    return value


def event_identity(event: InvocationEvent, record: Record) -> bytes:
    """16 bytes that two deliveries of one event share: from `event_id`, else the CloudEvents id, else the content."""
    if event.event_id is not None:
        return _digest(b"i" + event.event_id.encode())
    for name, content in record.headers:
        if name == "ce_id" and content:  # a header may have no value, and an empty id tells nothing apart
            return _digest(b"c" + content)
    return _digest(b"b" + _canonical(record.value or b""))


def trace_identity(record: Record) -> bytes:
    """16 bytes that two deliveries of a trace share as long as its content is the same."""
    return _digest(b"t" + _canonical(record.value or b""))


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]


def _canonical(value: bytes) -> bytes:
    return orjson.dumps(_loaded(value), option=orjson.OPT_SORT_KEYS)


def _loaded(value: bytes) -> object:
    """What JSON in the strict sense makes of it. The validator knows NaN, and takes 1e999 for infinity."""
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise Unusable("not_json", f"the value is not JSON: {error}") from None


def _refuse_deep(value: bytes) -> None:
    """Refuse what could be read alone, and not as part of a session or a candidate."""
    if len(value) > 2 * _HARMLESS and value.count(b"{") + value.count(b"[") > _HARMLESS:
        try:
            from_json(b"[" * _WRAPPED + value + b"]" * _WRAPPED)
        except ValueError as error:
            raise Unusable("not_json", f"the value is nested too deep: {error}") from None


def _refuse_long(field: str, name: str) -> None:
    if len(name) > MAX_NAME:
        raise Unusable("invalid", f"{field}: must have at most {MAX_NAME} characters, not {len(name)}")


def _text(key: bytes | None) -> str:
    if not key:
        return ""
    try:
        return key.decode()
    except UnicodeDecodeError:
        return key.hex()  # a key of another encoding still names one session


def _unusable(value: bytes, error: ValidationError) -> Unusable:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return Unusable("not_json", f"the value is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}")
    if not first["loc"] and not value.lstrip().startswith(b"{"):
        return Unusable("not_an_object", "the value is JSON, but not an object")
    return Unusable("invalid", explain(error))
