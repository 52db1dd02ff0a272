"""Reads the ids in a record that is refused, as far as they can be read, whatever else is wrong with it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import msgspec
import orjson
from pydantic_core import from_json

from traceweir.schemas.base import MAX_IDENTIFIER_CHARS
from traceweir.schemas.dead_letter import KEPT_BYTES, Headers
from traceweir.schemas.events import TYPES
from traceweir.schemas.refused_record import TRACE
from traceweir.streams.base.stages.base import MAX_BATCH_BYTES
from traceweir.streams.pipeline.decoding.envelopes import opened

MAX_KEPT_BYTES = 128
"""The longest id that is kept beside the id of the session, in bytes of its JSON."""


class ReadableIds(NamedTuple):
    """The ids in a record; None for an id that is missing, not readable, or too long."""

    session_id: str | None
    type: str | None
    """The type of an event that the schema knows, or `trace`."""
    invocation_id: str | None = None
    trace_id: str | None = None
    event_id: str | None = None


class KeyedRecord(Protocol):
    """A record as far as it can name its session."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


def readable_ids(record: KeyedRecord, *, is_trace: bool) -> ReadableIds:
    """Returns the ids in a record that is no valid event or trace. It reads only the keys that it looks for.

    The session is the one that the document names, also if it is cut off or broken behind that name; without a readable
    name, that of the key. A document that is broken is read up to the place where it is broken, and at most in its first
    64 kB.

    >>> from traceweir.streams.base.stages.base import UnreadableBatch
    >>> value = b'{"type": "tool.called", "session_id": "s-1", "invocation_id": "i-1", "args": {"q": "cut o'
    >>> readable_ids(UnreadableBatch("t", 0, 0, 0, value, ""), is_trace=False)[:3]
    ('s-1', 'tool.called', 'i-1')
    """
    value = record.value or b""
    # The keys of an envelope can be those of its content.
    inner = opened(value, record.headers) if len(value) <= MAX_BATCH_BYTES else None
    found = _keys(value if inner is None else inner.value) or {}
    key = _session_id(_text(record.key))
    if is_trace:
        metadata = found.get("metadata")
        inside = metadata if isinstance(metadata, dict) else {}
        trace_id = short_id(found.get("id"))
        session_id = _session_id(inside.get("session_id")) or key or _session_id(found.get("id"))
        return ReadableIds(session_id, TRACE, trace_id=trace_id)
    kind = found.get("type")
    return ReadableIds(
        _session_id(found.get("session_id")) or key,
        kind if isinstance(kind, str) and kind in TYPES else None,
        short_id(found.get("invocation_id")) or _inner_invocation(found),
        event_id=short_id(found.get("event_id")),
    )


def _inner_invocation(found: dict[str, Any]) -> str | None:
    """Returns the id that an invocation has in its own document."""
    inner = found.get("invocation")
    return short_id(inner.get("invocation_id") or inner.get("invocationId")) if isinstance(inner, dict) else None


class _Metadata(msgspec.Struct):
    session_id: msgspec.Raw = msgspec.Raw()


class _Invocation(msgspec.Struct):
    invocation_id: msgspec.Raw = msgspec.Raw()
    invocationId: msgspec.Raw = msgspec.Raw()  # noqa: N815


class _Document(msgspec.Struct):
    session_id: msgspec.Raw = msgspec.Raw()
    type: msgspec.Raw = msgspec.Raw()
    invocation_id: msgspec.Raw = msgspec.Raw()
    event_id: msgspec.Raw = msgspec.Raw()
    id: msgspec.Raw = msgspec.Raw()
    metadata: msgspec.Raw = msgspec.Raw()
    invocation: msgspec.Raw = msgspec.Raw()


_document = msgspec.json.Decoder(_Document).decode
_metadata = msgspec.json.Decoder(_Metadata).decode
_invocation = msgspec.json.Decoder(_Invocation).decode
_string = msgspec.json.Decoder(str).decode


def _keys(value: bytes) -> dict[str, Any] | None:
    """Returns the keys of a document that name something; None if the value has none of them, or is no object."""
    try:
        # This skips the other values, so that a large document takes no memory.
        document = _document(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _broken(value)
    found: dict[str, Any] = _strings(document, "session_id", "type", "invocation_id", "event_id", "id")
    for name, decode, ids in (
        ("metadata", _metadata, ("session_id",)),
        ("invocation", _invocation, ("invocation_id", "invocationId")),
    ):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found[name] = _strings(decode(getattr(document, name)), *ids)
    return found if any(found.values()) else None


def _strings(document: msgspec.Struct, *names: str) -> dict[str, str | None]:
    return {name: _string_in(getattr(document, name)) for name in names}


def _string_in(raw: msgspec.Raw) -> str | None:
    try:
        return _string(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _broken(value: bytes) -> dict[str, Any] | None:
    text = value[:KEPT_BYTES].decode(errors="replace")
    found: Any
    try:
        found = from_json(text, allow_partial=True)
    except ValueError:
        try:
            end = _end_of_json(text)
            found = from_json(text[:end], allow_partial=True)
        except ValueError:
            return None
    return found if isinstance(found, dict) and found else None


def _end_of_json(text: str) -> int:
    """Returns the position up to which a text can be the beginning of JSON."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return error.pos
    return len(text)


def _session_id(found: object) -> str | None:
    return found if isinstance(found, str) and 0 < len(found) <= MAX_IDENTIFIER_CHARS and _is_utf8(found) else None


def short_id(found: object) -> str | None:
    """Returns an id that can be kept beside that of the session; None for a longer one, and for what is no id."""
    if not (isinstance(found, str) and found and _is_utf8(found)):
        return None
    return found if len(orjson.dumps(found)) <= MAX_KEPT_BYTES else None


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(key: bytes | None) -> str | None:
    if not key or len(key) > 4 * MAX_IDENTIFIER_CHARS:
        return None
    try:
        return key.decode()
    except UnicodeDecodeError:
        # As a trace without a session id names its session.
        return key.hex()
