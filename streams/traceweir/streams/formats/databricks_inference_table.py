"""Rows of Databricks' inference tables, which log what a serving endpoint was asked and gave, as rows of Agent Evaluation.

Read are the payload tables, with AI Gateway and without, and the agents' request logs made of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.mlflow_spans import decoded
from traceweir.streams.formats.base import AgentRecord, DocumentRecords, InputContext, InputFormat, records_of_rows
from traceweir.streams.formats.databricks_rows import RowReader, request
from traceweir.streams.formats.tables import ReadCell, Row, number, text

REQUEST_IDS = ("databricks_request_id", "client_request_id", "request_id")
MOMENTS = ("timestamp_ms", "request_time", "timestamp")
DURATIONS = ("execution_time_ms", "execution_duration_ms")
OK = (200, "200")
SOURCES: Mapping[str, Sequence[str]] = {
    "request_id": REQUEST_IDS,
    "request": ("request_raw", "request"),
    "response": ("response_raw", "response"),
    "trace": ("trace", "response_raw", "response"),
    "execution_time_ms": DURATIONS,
}
"""Which columns of a log may hold a column of Agent Evaluation, the first before the others."""
COLUMNS: Mapping[str, ReadCell] = {
    **dict.fromkeys(("conversation_id", *MOMENTS), text),
    **dict.fromkeys((name for names in SOURCES.values() for name in names), text),
    **dict.fromkeys(("status_code", "timestamp_ms", *DURATIONS), number),
    "request": request,
}


class InferenceTableReader(RowReader):
    """Makes records of the rows of an inference table."""

    def __init__(self, context: InputContext) -> None:
        super().__init__(context)
        self._ids: dict[tuple[str | None, str], str] = {}

    def records(self, row: Row) -> list[AgentRecord]:
        """The row as `invocation.recorded`, in the session of its `conversation_id`; without one it is a session of its own, which ends.

        An id that another row of the session has already is the caller's, who need not have told requests apart: a digest of the row is
        added to it, so that both are scored, and a file that is sent twice gives duplicates.

        Raises:
            InputError: the row cannot be used, as of a request that failed; the message names row and column.
        """
        status = row.columns.get("status_code", 200)
        if status not in OK:
            shown = status if isinstance(status, int | str) else "not 200"
            raise self.error(
                row, f"column 'status_code': the request failed ({str(shown)[:40]!r}), so there is no answer to score"
            )
        columns = self._columns(row)
        conversation = _text(row.columns.get("conversation_id"))
        request_id = self._told_apart(row, columns, conversation)
        session_id = conversation or request_id
        if not isinstance(session_id, str):
            raise self.error(row, f"columns {', '.join(map(repr, REQUEST_IDS))}: one must name the request")
        named = columns if request_id is None else columns | {"request_id": request_id}
        return self.recorded(row, named, session_id, self._moment(row), ends=conversation is None)

    def called(self, row: Row, column: str) -> str:
        """What the log calls it."""
        return next((name for name in SOURCES.get(column, ()) if row.columns.get(name)), column)

    def _told_apart(self, row: Row, columns: JsonObject, conversation: str | None) -> str | None:
        request_id = _text(columns.get("request_id"))
        if request_id is None:
            return None
        moments = {name: row.columns[name] for name in MOMENTS if name in row.columns}
        digest = hashlib.sha256(self.encoded(row, columns) + self.encoded(row, moments)).hexdigest()
        first = self._ids.setdefault((conversation, request_id), digest)
        return request_id if first == digest else f"{request_id}#{digest[:16]}"

    def _columns(self, row: Row) -> JsonObject:
        given = row.columns
        request = _first(_json(given.get(self.called(row, "request"))))
        response = _first(_json(given.get(self.called(row, "response"))))
        if isinstance(request, dict) and request.keys() & {"text_assessments", "retrieval_assessments"}:
            raise self.error(row, "column 'request': is feedback on another request, not a request of its own")
        trace: JsonValue = given.get("trace") or None
        if isinstance(response, dict):
            output = response.get("databricks_output")
            if trace is None and isinstance(output, dict):
                trace = output.get("trace")
            response = {name: value for name, value in response.items() if name != "databricks_output"}
        columns: JsonObject = {
            "request_id": next((text for name in REQUEST_IDS if (text := _text(given.get(name)))), None),
            "request": _asked(request),
            "response": _answered(response),
            "trace": trace,
            "execution_time_ms": next((given[name] for name in DURATIONS if given.get(name) is not None), None),
        }
        return {name: value for name, value in columns.items() if value is not None}

    def _moment(self, row: Row) -> datetime:
        name = next((name for name in MOMENTS if row.columns.get(name) is not None), None)
        if name is None:
            return self._context.base_time
        given = row.columns[name]
        try:
            if isinstance(given, int | float) and not isinstance(given, bool):
                return datetime.fromtimestamp(given / 1000, UTC)
            moment = datetime.fromisoformat(given) if isinstance(given, str) else None
        except (ValueError, OverflowError, OSError):
            moment = None
        if moment is None:
            raise self.error(
                row, f"column {name!r}: must be milliseconds since 1970, or a date-time such as 2026-01-31T12:00:00Z"
            )
        return (
            moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        )  # Spark's timestamps are written without a zone, in UTC


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None


def _json(value: JsonValue) -> JsonValue:
    """What the text holds, if it is JSON's object or list; the request logs hold bare text."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return decoded(value)
        except ValueError:
            return value
    return value


def _first(payload: JsonValue) -> JsonValue:
    """The one request or answer in a payload of a model server's."""
    if isinstance(payload, dict):
        records = payload.get("dataframe_records", payload.get("predictions"))
        if isinstance(records, list) and records:
            return records[0]
        split = payload.get("dataframe_split")
        names, data = (split.get("columns"), split.get("data")) if isinstance(split, dict) else (None, None)
        if isinstance(names, list) and isinstance(data, list) and data and isinstance(data[0], list):
            return {str(name): value for name, value in zip(names, data[0], strict=False)}
    return payload


def _asked(request: JsonValue) -> JsonValue:
    """The request; one of OpenAI's Responses API has its messages in `input`."""
    if isinstance(request, dict) and "messages" not in request and "query" not in request:
        given = request.get("input")
        if isinstance(given, list):
            return {"messages": [_flat(message) for message in given]}
        return given if isinstance(given, str) else request
    return request


def _answered(response: JsonValue) -> JsonValue:
    """The response; of one of OpenAI's Responses API the texts of its messages."""
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(output, list):
        return response
    messages = [item for item in output if isinstance(item, dict) and item.get("type", "message") == "message"]
    texts = [text for message in messages for text in _texts(message.get("content"))]
    return "\n".join(texts) if texts else response


def _flat(message: JsonValue) -> JsonValue:
    texts = _texts(message.get("content")) if isinstance(message, dict) else ()
    return {**message, "content": "\n".join(texts)} if isinstance(message, dict) and texts else message


def _texts(content: JsonValue) -> Sequence[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else ()
    return [text for part in parts if isinstance(part, dict) and isinstance(text := part.get("text"), str)]


def _read_rows(rows: Iterable[Row], context: InputContext) -> Iterator[DocumentRecords]:
    return records_of_rows(rows, InferenceTableReader(context).records, context)


INFERENCE_TABLE = InputFormat(
    name="databricks-inference-table",
    description="a serving endpoint's logs",
    read_rows=_read_rows,
    columns=COLUMNS,
)
