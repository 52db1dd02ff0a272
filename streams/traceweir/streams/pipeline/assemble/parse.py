"""Parses the bytes of a record to the key by which the record is joined, or rejects the record with a reason."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError
from pydantic_core import from_json

from traceweir.schemas.base import MAX_IDENTIFIER_CHARS, explain
from traceweir.schemas.dead_letter import KEPT_BYTES, Headers
from traceweir.schemas.events import EVENT, TYPES
from traceweir.schemas.other_forms import event_in_schema_form, loses_digits, rewritten_json
from traceweir.schemas.trace import ReasoningTrace, instant, require_short_names
from traceweir.streams.base.stages.base import Record, envelope_size
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.pipeline.assemble.closing_rules import Ending, ending_of
from traceweir.streams.pipeline.decoding.envelopes import described, opened
from traceweir.streams.pipeline.decoding.fast_decode import SHORT, NeedsFullValidation, fast_decoder, may_be_deep

_EVENT = fast_decoder(*TYPES.values())
_TRACE = fast_decoder(ReasoningTrace)


_WRAPPED = 8
"""Levels of nesting that the stages can add to a document when they embed it in other documents."""


JoinKey = tuple[bytes, float, bytes, Ending | None]
"""The fields of a record by which it is joined: `(session_id, at, identity, ending)`.

`ending` is None unless the session ends because of the record. `at` is in seconds since 1970: `occurred_at` of an event,
`metadata.created_at` of a trace. `identity` has 16 bytes, which two deliveries of the same event or trace share. A plain
tuple, because one is built per record, and a named tuple takes ten times as long to build.
"""


class InOtherForm(Exception):  # noqa: N818  # an outcome that the caller handles
    """A document is in an envelope, or an event has a part in another form than the schema's, with only one meaning."""

    def __init__(self, value: bytes, key: JoinKey) -> None:
        super().__init__()
        self.value = value
        """The event in the form of the schema, or the document without its envelope, which joins the session."""
        self.key = key


def read_event(record: Record | _InEnvelope, value: bytes) -> JoinKey:
    """Parses an invocation event.

    The identity is the `event_id`; without one, the CloudEvents id; without both, a digest of the content.

    Raises:
        RecordRejected: the bytes are not a JSON object, or not an event.
        InOtherForm: the event is valid only after rewriting, or in an envelope; the outcome has the event and its fields.
    """
    try:
        parsed = _loaded(value) if len(value) > SHORT else None
        try:
            event = _EVENT(value, parsed)
        except NeedsFullValidation:
            parsed = _loaded(value) if parsed is None else parsed
            if (rewritten := _in_schema_form(value, parsed)) is not None:
                raise InOtherForm(rewritten, read_event(record, rewritten)) from None
            event = _validated(EVENT.validate_json, value, parsed)
        if may_be_deep(value):
            _refuse_deep(value)
        if event.event_id is not None:
            identity = blake2b(b"i" + event.event_id.encode(), digest_size=16).digest()
        else:
            identity = _cloud_event_identity(record) or _digest(b"b" + _content(value, parsed))
        return (
            event.session_id.encode(),
            event.occurred_at.timestamp(),
            identity,
            ending_of(event),
        )
    except RecordRejected as why:
        raise _in_envelope(read_event, record, value, why) from None


def read_trace(record: Record | _InEnvelope, value: bytes) -> JoinKey:
    """Parses a reasoning trace.

    The session id is `metadata.session_id`; without one, the record's key; without both, the trace's id. The identity
    is a digest of the content.

    Raises:
        RecordRejected: the bytes are not a JSON object, or not a trace, or a name in the trace is too long.
        InOtherForm: the trace is in an envelope.
    """
    try:
        parsed = _loaded(value) if len(value) > SHORT else None
        try:
            trace = _TRACE(value, parsed)
        except NeedsFullValidation:
            trace = _validated(ReasoningTrace.model_validate_json, value, parsed)
        if may_be_deep(value):
            _refuse_deep(value)
        named = trace.metadata.session_id or _text(record.key)
        try:
            require_short_names(trace)
        except ValueError as error:
            raise RecordRejected("invalid", str(error)) from None
        if len(named) > MAX_IDENTIFIER_CHARS:
            detail = f"key: must have at most {MAX_IDENTIFIER_CHARS} characters, not {len(named)}"
            raise RecordRejected("invalid", detail)  # noqa: TRY301  # as the other problems of a trace
        created = instant(trace.metadata.created_at).timestamp()
        return (named or trace.id).encode(), created, _digest(b"t" + _content(value, parsed)), None
    except RecordRejected as why:
        raise _in_envelope(read_trace, record, value, why) from None


class _InEnvelope(NamedTuple):
    """A record whose value was in an envelope; the stages see its other parts."""

    key: bytes | None
    headers: Headers


def _in_envelope(
    read: Callable[[Any, bytes], JoinKey], record: Record | _InEnvelope, value: bytes, why: RecordRejected
) -> InOtherForm | RecordRejected:
    """Returns the document in the envelopes of a value that cannot be read, or why it cannot be read.

    This comes after the failure, so that records without an envelope pay nothing for it.
    """
    if isinstance(record, _InEnvelope):
        return why
    found = opened(value, record.headers)
    if found is None:
        what = described(value)
        return why if what is None else RecordRejected(why.reason, f"{what} ({why.detail})")
    own = [("ce_id", found.event_id.encode(errors="replace"))] if found.event_id else []
    try:
        return InOtherForm(found.value, read(_InEnvelope(record.key, [*own, *record.headers]), found.value))
    except InOtherForm as other:
        return other
    except RecordRejected as inner:
        return RecordRejected(inner.reason, f"{found.around}: {inner.detail}")


def checked_value(record: Record, limit: int) -> bytes:
    """Returns the value of a record, which has at most `limit` bytes.

    Raises:
        RecordRejected: the record is a tombstone, its value is empty or too large for a session, or its key and headers
            are too large to be forwarded.
    """
    value = record.value
    key = record.key
    if not value:
        raise RecordRejected("empty", "the record has no value" if value is None else "the record's value is empty")
    if len(value) > limit:
        raise RecordRejected("too_large", f"the record has {len(value)} bytes; a session can have at most {limit}")
    if (size := envelope_size(key, record.headers)) > KEPT_BYTES:
        raise RecordRejected(
            "too_large", f"the record's key and headers have {size} bytes; the maximum is {KEPT_BYTES}"
        )
    return value


def _in_schema_form(value: bytes, parsed: Any) -> bytes | None:
    """Returns an event in the form of the schema; None if it has this form, or if rewriting would change a number."""
    try:
        found = event_in_schema_form(parsed)
    except ValueError as error:
        raise RecordRejected("invalid", str(error)) from None
    return rewritten_json(found, value)


def _validated(validate: Callable[[bytes], Any], value: bytes, parsed: object) -> Any:
    if parsed is None:
        _loaded(value)
    try:
        return validate(value)
    except ValidationError as error:
        raise _rejected(value, error) from None


def _cloud_event_identity(record: Record | _InEnvelope) -> bytes | None:
    for name, content in record.headers:
        # Headers can lack a value, and an empty id identifies nothing.
        if name == "ce_id" and content:
            return _digest(b"c" + content)
    return None


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _content(value: bytes, parsed: object) -> bytes:
    """Returns the content in a canonical form, independent of the order of keys.

    `parsed` is the parsed value, if available.
    """
    canonical = orjson.dumps(_loaded(value) if parsed is None else parsed, option=orjson.OPT_SORT_KEYS)
    # orjson reads an integer beyond 64 bits as the nearest float, so that different integers can look equal. In this
    # case the function returns the bytes unchanged. orjson writes such a float with an exponent, and a search for the
    # exponent takes a tenth of the time of a search for digits.
    return value if loses_digits(canonical, value) else canonical


def _loaded(value: bytes) -> Any:
    """Parses strict JSON; pydantic would accept NaN and read 1e999 as infinity."""
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise RecordRejected("not_json", f"the value is not JSON: {error}") from None


def _refuse_deep(value: bytes) -> None:
    """Rejects a document that can be read alone, but is nested too deeply inside a session or a candidate."""
    try:
        from_json(b"[" * _WRAPPED + value + b"]" * _WRAPPED)
    except ValueError as error:
        raise RecordRejected("not_json", f"the value is nested too deeply: {error}") from None


def _text(key: bytes | None) -> str:
    if not key:
        return ""
    try:
        return key.decode()
    except UnicodeDecodeError:
        # A key in another encoding still identifies one session.
        return key.hex()


def _rejected(value: bytes, error: ValidationError) -> RecordRejected:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return RecordRejected("not_json", f"the value is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}")
    if not first["loc"] and not value.lstrip().startswith(b"{"):
        return RecordRejected("not_an_object", "the value is JSON, but not an object")
    return RecordRejected("invalid", explain(error))
