"""Reads Traceweir's own format: traces, events, rows of Agent Evaluation and MLflow traces, in any mixture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.streams.formats.base import AgentRecord, DocumentRecords, InputContext, InputFormat, Recognition
from traceweir.streams.formats.databricks_rows import COLUMNS, EvaluationRows, looks_like_a_row, read_evaluation_rows
from traceweir.streams.formats.documents import Document
from traceweir.streams.formats.tables import row_of

_ROW_KEYS = (b'"request"', b'"inputs"', b'"trace"', b'"spans"')
"""A row or a trace has one of these keys. Bytes without these keys are neither, so they are not parsed here."""


def _read(documents: Iterable[Document], context: InputContext) -> Iterator[DocumentRecords]:
    """Yields each row as an invocation, and every other document as an unchanged record.

    An unreadable document becomes a record too: the worker decides about it.
    """
    rows = EvaluationRows(context)
    for document in documents:
        row = row_of(document) if any(key in document.raw for key in _ROW_KEYS) else None
        if row is not None and looks_like_a_row(row.columns):
            yield from rows.convert(row)
        else:
            yield DocumentRecords(document, [wire_record(document.raw)])
    yield from rows.omitted_rows()


def wire_record(raw: bytes) -> AgentRecord:
    """Returns a document as a record: a trace if the document has an `@type`, otherwise an event.

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
    if not isinstance(found, dict):
        return AgentRecord("event", None, raw)
    if "@type" not in found:
        return AgentRecord("event", _text(found.get("session_id")), raw)
    metadata = found.get("metadata")
    session_id = _text(metadata.get("session_id")) if isinstance(metadata, dict) else None
    return AgentRecord("trace", session_id or _text(found.get("id")), raw)


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None


def _recognizes(found: JsonObject) -> bool:
    return "@type" in found or "type" in found


def _records(found: JsonObject, document: Document, context: InputContext) -> list[AgentRecord]:
    return [wire_record(document.raw)]


TRACEWEIR = InputFormat(
    name="traceweir",
    description="traces and events, rows of Agent Evaluation, or MLflow traces",
    read_documents=_read,
    read_rows=read_evaluation_rows,
    columns=COLUMNS,
    recognition=Recognition(_recognizes, _records),
)
