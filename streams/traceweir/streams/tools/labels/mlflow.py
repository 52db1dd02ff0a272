"""Makes labels of what people wrote to the traces of MLflow as assessments."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.mlflow_assessments import valid_assessments
from traceweir.schemas.mlflow_identity import SESSION, is_bare_trace, trace_identity
from traceweir.schemas.mlflow_spans import decoded, number
from traceweir.scorers.databricks_names import full_name

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def mlflow_trace_of(document: JsonObject) -> JsonObject | None:
    """Returns the MLflow trace that a document is, or has in its column `trace`; None if it has none."""
    if is_bare_trace(document):
        return document
    held = document.get("trace")
    if isinstance(held, str):
        try:
            held = decoded(held)
        except ValueError:
            return None
    return held if isinstance(held, dict) and is_bare_trace(held) else None


def human_feedback(trace: JsonObject, request_id: JsonValue = None) -> Iterator[JsonObject]:
    """Yields the columns of a label for each assessment of a person; those of code and of judges are left out.

    The session is the one that the trace names, or else has the id of the trace, as when the trace is scored. The judged
    invocation has the id of the trace; an assessment of the whole session has the session's id in its metadata.

    Args:
        trace: The trace.
        request_id: The id of the row that has the trace, which is then that of its session and of its invocation.
    """
    identity = trace_identity(trace)
    named = request_id if isinstance(request_id, str) and request_id else None
    session = named or identity.session_id or identity.trace_id
    info = trace["info"]
    for name, assessment in valid_assessments(info if isinstance(info, dict) else {}):
        source = assessment.get("source")
        feedback = assessment.get("feedback")
        if not isinstance(source, dict) or source.get("source_type") != "HUMAN" or not isinstance(feedback, dict):
            continue
        metadata = assessment.get("metadata")
        of_session = isinstance(metadata, dict) and SESSION in metadata
        columns: JsonObject = {
            "session_id": session,
            "invocation_id": None if of_session else named or identity.trace_id,
            "criterion": full_name(name),
            "annotator": source.get("source_id"),
            "note": assessment.get("rationale"),
            "occurred_at": _time(assessment.get("last_update_time") or assessment.get("create_time")),
            **_answer(feedback.get("value")),
        }
        yield columns


def _answer(given: JsonValue) -> JsonObject:
    if isinstance(given, bool):
        return {"verdict": "pass" if given else "fail"}
    if (found := number(given)) is not None:
        return {"value": found}
    if isinstance(given, str) and given.strip().lower() in ("yes", "no", "pass", "fail", "unsure"):
        return {"verdict": given}
    return {"category": given}


def _time(given: JsonValue) -> JsonValue:
    """Returns a time as ISO 8601; MLflow writes that, or milliseconds since 1970."""
    milliseconds = number(given)
    if milliseconds is None:
        return given
    try:
        return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat()
    except OverflowError:
        return given
