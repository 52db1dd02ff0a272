"""Reads Traceweir's own format: traces and events as they are on the topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.events import TYPES
from traceweir.schemas.other_forms import event_in_schema_form
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.intake.formats.adk_invocations import IGNORED_OF_ADK
from traceweir.streams.intake.formats.base import (
    AgentRecord,
    DocumentRecords,
    InputContext,
    InputFormat,
    Recognition,
    RecordsOfObject,
    records_of_documents,
)
from traceweir.streams.intake.formats.databricks_rows import COLUMNS, ROW_KEYS, note_inner_keys, read_evaluation_rows
from traceweir.streams.intake.formats.documents import Document


def wire_record(raw: bytes) -> AgentRecord:
    """Returns a document as an unchanged record: a trace if the document has an `@type`, otherwise an event.

    An unreadable document becomes a record too: the worker decides about it.

    >>> wire_record(b'{"type": "session.ended", "session_id": "s1"}')[:2]
    ('event', 's1')
    >>> wire_record(b'{"@type": "ReasoningTrace", "id": "kp:trace:1"}')[:2]
    ('trace', 'kp:trace:1')
    >>> wire_record(b'not JSON')[:2]
    ('event', None)
    """
    try:
        found: JsonValue = orjson.loads(raw)
    except orjson.JSONDecodeError:
        found = None
    return wire_record_of(found, raw)


def wire_record_of(found: JsonValue, raw: bytes) -> AgentRecord:
    """Returns the record of a document that is parsed already; None stands for a document that is not JSON."""
    if not isinstance(found, dict):
        return AgentRecord("event", None, raw)
    if "@type" not in found:
        return AgentRecord("event", _text(found.get("session_id")), raw)
    metadata = found.get("metadata")
    session_id = _text(metadata.get("session_id")) if isinstance(metadata, dict) else None
    return AgentRecord("trace", session_id or _text(found.get("id")), raw)


def read_record(found: JsonValue, document: Document, context: InputContext) -> AgentRecord:
    """Returns a parsed document as an unchanged record, and notes the keys that nothing reads."""
    if isinstance(found, dict):
        kind = found.get("type")
        model = ReasoningTrace if "@type" in found else TYPES.get(kind) if isinstance(kind, str) else None
        if model is not None:
            context.unread_keys.note_model(model, _in_schema_form(found), _IGNORED)
        if isinstance(row := found.get("row"), dict):
            context.unread_keys.note(row, ROW_KEYS)
            note_inner_keys(row, context.unread_keys)
    return wire_record_of(found, document.raw)


def _in_schema_form(found: JsonObject) -> JsonObject:
    """Returns a document with the keys under which it is read, such as `content` of a retrieved piece for its `text`."""
    try:
        return event_in_schema_form(found) or found
    except ValueError:
        # It is refused where it is read, with this error.
        return found


_IGNORED = IGNORED_OF_ADK.with_keys({ReasoningTrace: ("@context", "@type", "type")})
"""The keys that events and traces have beside those of the schemas, such as Google ADK's own in an invocation."""


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None


def is_trace_or_event(found: JsonObject) -> bool:
    """Returns whether a document is a trace or an event, whatever its other keys."""
    kind = found.get("type")
    return "@type" in found or (isinstance(kind, str) and kind in TYPES)


def _reader(context: InputContext) -> RecordsOfObject:
    return lambda found, document: [read_record(found, document, context)]


def _read(documents: Iterable[Document], context: InputContext) -> Iterator[DocumentRecords]:
    return records_of_documents(documents, lambda document: [wire_record(document.raw)])


TRACEWEIR = InputFormat(
    name="traceweir",
    description="traces, events, and documents of all formats below",
    read_documents=_read,
    read_rows=read_evaluation_rows,
    columns=COLUMNS,
    recognition=Recognition("a trace or an event of Traceweir", is_trace_or_event, _reader),
)
"""The default format. In a file, `recognition.read_recognized` reads its documents, whatever their formats."""
