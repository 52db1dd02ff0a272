"""Reads what identifies an MLflow trace: its id, its session and its time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import orjson
from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.mlflow_spans import metadata_of, number

SESSION = "mlflow.trace.session"
"""The key of the metadata with the id of the session that a trace belongs to."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TraceIdentity(NamedTuple):
    """Holds what identifies a trace; None for each part that the trace does not contain."""

    trace_id: str | None = None
    session_id: str | None = None
    """The session that the application named, which can contain several traces."""
    requested_at: datetime | None = None
    """The time of the request; timezone-aware."""


def trace_identity(document: JsonValue) -> TraceIdentity:
    """Returns the identity of a trace of MLflow 2 or 3, from its JSON text or its parsed JSON.

    A document that is not a trace has no identity; validating it is not the task of this function.

    >>> trace_identity('{"info": {"trace_id": "tr-1", "trace_metadata": {"mlflow.trace.session": "chat"}}}')[:2]
    ('tr-1', 'chat')
    """
    if isinstance(document, str):
        try:
            document = orjson.loads(document)
        except orjson.JSONDecodeError:
            return TraceIdentity()
    info = document.get("info") if isinstance(document, dict) else None
    if not isinstance(info, dict):
        return TraceIdentity()
    return TraceIdentity(
        _text(info.get("trace_id")) or _text(info.get("request_id")),
        _text(metadata_of(info).get(SESSION)),
        _requested_at(info),
    )


def is_bare_trace(document: JsonObject) -> bool:
    """Returns whether a document has the form of an MLflow trace: an object with `info` and with `data.spans`.

    >>> is_bare_trace({"info": {}, "data": {"spans": []}}), is_bare_trace({"info": {}, "data": []})
    (True, False)
    """
    data = document.get("data")
    return isinstance(document.get("info"), dict) and isinstance(data, dict) and "spans" in data


def _requested_at(info: JsonObject) -> datetime | None:
    """Returns the time of the request: `request_time` of MLflow 3, an ISO 8601 text, or `timestamp_ms` of MLflow 2."""
    milliseconds = number(info.get("timestamp_ms"))
    given = info.get("request_time")
    try:
        if isinstance(given, str):
            found = datetime.fromisoformat(given)
            return found if found.tzinfo else None
        return None if milliseconds is None else _EPOCH + timedelta(milliseconds=milliseconds)
    except (ValueError, OverflowError):
        return None


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None
