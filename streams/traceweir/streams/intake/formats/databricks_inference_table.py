"""Converts rows of Databricks inference tables, the request logs of a serving endpoint, to rows of Agent Evaluation.

The format reads payload tables, with and without AI Gateway, and the request logs of agents that Databricks derives
from payload tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.finish_reasons import finish_in
from traceweir.schemas.mlflow_spans import decoded
from traceweir.schemas.row_texts import chat_request, responses_api_text
from traceweir.streams.intake.formats.base import (
    AgentRecord,
    DocumentRecords,
    InputContext,
    InputFormat,
    Recognition,
    RecordsOfObject,
    records_of_rows,
)
from traceweir.streams.intake.formats.databricks_rows import DatabricksRowReader
from traceweir.streams.intake.formats.open_streams import answer_in
from traceweir.streams.intake.formats.row_cells import request
from traceweir.streams.intake.formats.row_values import note_row_values
from traceweir.streams.intake.formats.tables import ReadCell, Row, number, text
from traceweir.streams.intake.formats.unread_keys import KnownKeys

REQUEST_ID_COLUMNS = ("databricks_request_id", "client_request_id", "request_id")
TIME_COLUMNS = ("timestamp_ms", "request_time", "timestamp")
DURATION_COLUMNS = ("execution_time_ms", "execution_duration_ms")
SUCCESS_STATUS_CODES = (200, "200")
SOURCE_COLUMNS: Mapping[str, Sequence[str]] = {
    "request_id": REQUEST_ID_COLUMNS,
    "request": ("request_raw", "request"),
    "response": ("response_raw", "response"),
    "trace": ("trace", "response_raw", "response"),
    "execution_time_ms": DURATION_COLUMNS,
}
"""The columns of a log that can contain a column of Agent Evaluation; the first column with a value is used."""
COLUMNS: Mapping[str, ReadCell] = {
    **dict.fromkeys(("conversation_id", *TIME_COLUMNS), text),
    **dict.fromkeys((name for names in SOURCE_COLUMNS.values() for name in names), text),
    **dict.fromkeys(("status_code", "timestamp_ms", *DURATION_COLUMNS), number),
    "request": request,
}


_METADATA_COLUMNS = (
    *("date", "requester", "served_entity_id", "served_model_id", "model_id", "sampling_fraction", "request_date"),
    *("logging_error_codes", "request_metadata", "response_metadata", "schema_version", "app_version", "source"),
    *("endpoint", "endpoint_id", "served_entity_name", "workspace_id", "account_id", "user_id", "tags", "metadata"),
    *("assessments", "trace_id", "state", "status", "experiment_id", "Unnamed: 0", "__index_level_0__"),
)
"""Columns of payload tables and of pandas that are not read."""


class InferenceTableReader(DatabricksRowReader):
    """Converts the rows of one inference table to records."""

    known_keys = KnownKeys("column", COLUMNS, _METADATA_COLUMNS)

    def __init__(self, context: InputContext) -> None:
        super().__init__(context)
        self._first_digests: dict[tuple[str | None, str], str] = {}
        """The digest of the first row of each conversation and request id."""

    def records(self, row: Row) -> list[AgentRecord]:
        """Returns the row as `invocation.recorded`, in the session of its `conversation_id`.

        A row without a `conversation_id` becomes a session of its own, which ends after the row.

        A caller can use the same request id for several requests. If an earlier row of the session has the same id and
        other content, a digest of the row is added to the id. Both rows are then scored, and a file that is sent twice
        still produces duplicates.

        Raises:
            InputError: the row cannot be used, for example because its request failed; the message names row and
                column.
        """
        self.note_unread(row)
        status = row.columns.get("status_code", 200)
        if status not in SUCCESS_STATUS_CODES:
            shown = status if isinstance(status, int | str) else "not 200"
            raise self.error(
                row, f"column 'status_code': the request failed ({str(shown)[:40]!r}), so there is no answer to score"
            )
        columns = self._columns(row)
        conversation = _text(row.columns.get("conversation_id"))
        request_id = self._unique_request_id(row, columns, conversation)
        session_id = conversation or request_id
        if not isinstance(session_id, str):
            names = ", ".join(map(repr, REQUEST_ID_COLUMNS))
            raise self.error(row, f"columns {names}: one of these columns must contain the id of the request")
        identified = columns if request_id is None else columns | {"request_id": request_id}
        return self.recorded(row, identified, session_id, self._request_time(row), ends=conversation is None)

    def source_column(self, row: Row, column: str) -> str:
        """Returns the log's name of a column of Agent Evaluation."""
        return next((name for name in SOURCE_COLUMNS.get(column, ()) if row.columns.get(name)), column)

    def _unique_request_id(self, row: Row, columns: JsonObject, conversation: str | None) -> str | None:
        request_id = _text(columns.get("request_id"))
        if request_id is None:
            return None
        times = {name: row.columns[name] for name in TIME_COLUMNS if name in row.columns}
        digest = hashlib.sha256(self.encoded(row, columns) + self.encoded(row, times)).hexdigest()
        first = self._first_digests.setdefault((conversation, request_id), digest)
        return request_id if first == digest else f"{request_id}#{digest[:16]}"

    def _columns(self, row: Row) -> JsonObject:
        logged = row.columns
        request = _first_record(_parsed_json(logged.get(self.source_column(row, "request"))))
        response = _first_record(_parsed_json(logged.get(self.source_column(row, "response"))))
        response = answer_in(response) or response
        if isinstance(request, dict) and request.keys() & {"text_assessments", "retrieval_assessments"}:
            raise self.error(
                row, "column 'request': is feedback on another request, so there is no answer to score; remove the row"
            )
        trace: JsonValue = logged.get("trace") or None
        if isinstance(response, dict):
            output = response.get("databricks_output")
            if trace is None and isinstance(output, dict):
                trace = output.get("trace")
            response = {name: value for name, value in response.items() if name != "databricks_output"}
        note_row_values(self._context.unread_keys, ("request", request), ("response", response), trace)
        columns: JsonObject = {
            "request_id": next((text for name in REQUEST_ID_COLUMNS if (text := _text(logged.get(name)))), None),
            "request": chat_request(request),
            "response": _chat_response(response),
            "trace": trace,
            "execution_time_ms": next(
                (logged[name] for name in DURATION_COLUMNS if logged.get(name) is not None), None
            ),
        }
        return {name: value for name, value in columns.items() if value is not None}

    def _request_time(self, row: Row) -> datetime:
        name = next((name for name in TIME_COLUMNS if row.columns.get(name) is not None), None)
        if name is None:
            return self._context.base_time
        value = row.columns[name]
        try:
            if isinstance(value, int | float) and not isinstance(value, bool):
                return datetime.fromtimestamp(value / 1000, UTC)
            time = datetime.fromisoformat(value) if isinstance(value, str) else None
        except (ValueError, OverflowError, OSError):
            time = None
        if time is None:
            raise self.error(
                row, f"column {name!r}: must be milliseconds since 1970, or a date-time such as 2026-01-31T12:00:00Z"
            )
        # Spark writes timestamps in UTC and without a time zone.
        return time if time.tzinfo else time.replace(tzinfo=UTC)


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None


def _parsed_json(value: JsonValue) -> JsonValue:
    """Returns the object or list that a JSON text contains; any other value is returned unchanged.

    The request logs of agents contain plain text in place of JSON.
    """
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return decoded(value)
        except ValueError:
            return value
    return value


def _first_record(payload: JsonValue) -> JsonValue:
    """Returns the first request or response in a payload of an MLflow model server; other payloads are unchanged."""
    if isinstance(payload, dict):
        records = payload.get("dataframe_records", payload.get("predictions"))
        if isinstance(records, list) and records:
            return records[0]
        split = payload.get("dataframe_split")
        names, data = (split.get("columns"), split.get("data")) if isinstance(split, dict) else (None, None)
        if isinstance(names, list) and isinstance(data, list) and data and isinstance(data[0], list):
            return {str(name): value for name, value in zip(names, data[0], strict=False)}
    return payload


def _chat_response(response: JsonValue) -> JsonValue:
    """Returns the text of a response of OpenAI's Responses API, with its token usage and why it was cut; any other response
    unchanged."""
    text = responses_api_text(response)
    if text is None or not isinstance(response, dict):
        return response
    finish = finish_in(response)
    known: JsonObject = {"usage": response["usage"]} if response.get("usage") else {}
    known |= {"finish_reason": finish} if finish else {}
    return {"content": text, **known} if known else text


def _read_rows(rows: Iterable[Row], context: InputContext) -> Iterator[DocumentRecords]:
    return records_of_rows(rows, InferenceTableReader(context).records, context)


def _reader(context: InputContext) -> RecordsOfObject:
    table = InferenceTableReader(context)
    return lambda found, document: table.records(Row(document.number, found))


def _recognizes(found: JsonObject) -> bool:
    return "databricks_request_id" in found or "request_raw" in found


INFERENCE_TABLE = InputFormat(
    name="databricks-inference-table",
    description="a serving endpoint's logs",
    read_rows=_read_rows,
    columns=COLUMNS,
    recognition=Recognition("a row of an inference table", _recognizes, _reader),
)
