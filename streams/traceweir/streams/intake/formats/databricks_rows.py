"""Converts rows of Databricks Agent Evaluation, and bare MLflow traces, to records: each row is an invocation."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import orjson
from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from traceweir.schemas.base import JsonObject
from traceweir.schemas.evaluation_row import EXPECTED, MAX_ROWS, NEWER, TOO_MANY, EvaluationRow
from traceweir.schemas.mlflow_identity import TraceIdentity, is_bare_trace, trace_identity
from traceweir.streams.base.json_values import write_json
from traceweir.streams.intake.formats.base import (
    AgentRecord,
    DocumentRecords,
    InputContext,
    InputFormat,
    Recognition,
    RecordsOfObject,
    Sureness,
    records_of_rows,
)
from traceweir.streams.intake.formats.documents import Document, InputError
from traceweir.streams.intake.formats.open_streams import answer_in
from traceweir.streams.intake.formats.row_cells import object_in_place_of_text, request, response, with_parts_read
from traceweir.streams.intake.formats.row_values import note_row_values
from traceweir.streams.intake.formats.session_records import RecordRules, SessionRecords
from traceweir.streams.intake.formats.tables import ReadCell, Row, json_or_text, number, text
from traceweir.streams.intake.formats.unread_keys import KnownKeys, UnreadKeys

_RULES = RecordRules(
    namespace=UUID("2b6a3c5e-08f4-5d0d-9a5a-6d1f9f0c8e41"),
    interval=timedelta(0),
    sorted_keys=True,
)

COLUMNS: Mapping[str, ReadCell] = {
    **dict.fromkeys((*EvaluationRow.model_fields, *NEWER), text),
    **dict.fromkeys(("expected_facts", "expected_retrieved_context", "retrieved_context", "guidelines"), json_or_text),
    **dict.fromkeys(("inputs", "expectations"), json_or_text),
    "request": request,
    **dict.fromkeys(("response", "outputs"), response),
    "execution_time_ms": number,
}


_METADATA_COLUMNS = (
    *("tags", "metadata", "source", "custom_expected", "trace_id", "trace_metadata", "request_metadata", "assessments"),
    *("spans", "state", "status", "status_code", "request_time", "timestamp", "timestamp_ms", "execution_duration"),
    *("request_preview", "response_preview", "client_request_id", "databricks_request_id", "experiment_id", "run_id"),
    *("dataset_id", "dataset_record_id", "create_time", "created_by", "created_at", "last_update_time"),
    *("last_updated_by", "conversation_id", "session_id", "user_id", "id", "Unnamed: 0", "__index_level_0__"),
)
"""Columns of evaluation sets, of MLflow's tables of traces and of pandas that are not read."""
ROW_KEYS = KnownKeys("column", (*COLUMNS, "expectations"), _METADATA_COLUMNS)
_EXPECTATION_KEYS = KnownKeys("key of expectations", EXPECTED)


_ANSWERS = ("response", "outputs")


def note_inner_keys(columns: JsonObject, unread_keys: UnreadKeys) -> None:
    """Notes the keys that nothing reads inside the expectations, the question and the answer of a row."""
    expectations = columns.get("expectations")
    if isinstance(expectations, dict):
        unread_keys.note_all(expectations, _EXPECTATION_KEYS)
    asked, answered = (
        next(((name, columns[name]) for name in names if columns.get(name) is not None), (names[0], None))
        for names in (("request", "inputs"), _ANSWERS)
    )
    note_row_values(unread_keys, asked, answered, columns.get("trace"))


class DatabricksRowReader:
    """Converts the rows of one input to records."""

    known_keys = ROW_KEYS
    """The columns that are read, and those that are well known and not read."""

    def __init__(self, context: InputContext) -> None:
        self._context = context
        self._first_rows: dict[str, tuple[int, str]] = {}
        """The number and the digest of the first row with each id."""

    def records(self, row: Row) -> list[AgentRecord]:
        """Returns the row as `invocation.recorded`, and the end of its session.

        The session id is the row's `request_id`. Without one, the row has the id and the time of its trace, and the
        session is the one that the trace names, which other traces can belong to and which the row does not end; or
        else it has the id of the trace. Without either, the session id is derived from the file's name, the row's
        number and its content, so that a file that is sent twice produces duplicates.

        Raises:
            InputError: the row cannot be used; the message names row and column.
        """
        self.note_unread(row)
        note_inner_keys(row.columns, self._context.unread_keys)
        columns = {name: row.columns[name] for name in COLUMNS if row.columns.get(name) is not None}
        columns |= {name: answer for name in _ANSWERS if (answer := answer_in(columns.get(name))) is not None}
        digest = hashlib.sha256(self.encoded(row, columns)).hexdigest()
        id_column = "request_id"
        identity = TraceIdentity(_text(columns.get("request_id")))
        if not columns.get("request_id") and "trace" in columns:
            id_column = "trace"
            identity = trace_identity(columns["trace"])
            columns |= {"request_id": identity.trace_id} if identity.trace_id else {}
        content_name = f"row {os.path.basename(self._context.source)} {row.number} {digest}"
        row_id = identity.trace_id or _RULES.id_of(content_name)
        first_number, first_digest = self._first_rows.get(row_id, (row.number, digest))
        if first_digest != digest:
            raise self.error(
                row,
                f"column {id_column!r}: {row_id[:80]!r} is also the id of row {first_number}, "
                "which has other content; use a different id in each row",
            )
        records = self.recorded(
            row,
            columns,
            identity.session_id or row_id,
            identity.requested_at or self._context.base_time,
            ends=identity.session_id is None,
        )
        self._first_rows[row_id] = first_number, first_digest
        return records

    def recorded(
        self, row: Row, columns: JsonObject, session_id: str, occurred_at: datetime, *, ends: bool
    ) -> list[AgentRecord]:
        """Returns the columns as `invocation.recorded`; if `ends` is true, also the end of the session.

        Raises:
            InputError: the columns are not a row of Agent Evaluation, or the records are too large for a session.
        """
        columns = with_parts_read(columns)
        if problem := object_in_place_of_text(columns):
            raise self.error(row, problem)
        self._validate(row, columns)
        request_id = columns.get("request_id")
        invocation_id = request_id if isinstance(request_id, str) else ""
        session = SessionRecords(session_id, _RULES, occurred_at, partial(self.error, row))
        session.event({"type": "invocation.recorded", "invocation_id": invocation_id, "row": columns}, at=occurred_at)
        if ends:
            session.event({"type": "session.ended"})
        size = sum(len(record.value) for record in session.records)
        limit = self._context.max_session_bytes
        if size > limit:
            raise self.error(
                row,
                f"has {size} bytes as a session, and a session can have at most {limit} bytes "
                "(TRACEWEIR_SEGMENT_MAX_BYTES); shorten the large parts of its trace",
            )
        return session.records

    def note_unread(self, row: Row) -> None:
        """Notes the columns that nothing reads."""
        self._context.unread_keys.note(row.columns, self.known_keys)
        for name in row.other_columns:
            self._context.unread_keys.note_key(name, self.known_keys)

    def encoded(self, row: Row, columns: JsonObject) -> bytes:
        """Returns the columns as JSON with sorted keys.

        Raises:
            InputError: JSON cannot represent a column; the message names the column.
        """
        try:
            return write_json(columns, sorted_keys=True)
        except (ValueError, orjson.JSONEncodeError):
            for name, value in columns.items():
                try:
                    write_json(value)
                except (ValueError, orjson.JSONEncodeError) as error:
                    raise self.error(
                        row, f"column {self.source_column(row, name)!r}: cannot be written as JSON ({error})"
                    ) from None
            raise

    def source_column(self, row: Row, column: str) -> str:
        """Returns the input's own name of a column of Agent Evaluation."""
        return column

    def error(self, row: Row, what: str) -> InputError:
        """Returns an error that names the row."""
        return self._context.row_error(row, what)

    def _validate(self, row: Row, columns: JsonObject) -> None:
        try:
            EvaluationRow.model_validate_json(self.encoded(row, columns))
        except ValidationError as error:
            found = error.errors(include_url=False)
            raise self.error(row, "; ".join(self._problem(row, each) for each in found[:5])) from None

    def _problem(self, row: Row, error: ErrorDetails) -> str:
        """Returns a problem that pydantic found as `column 'x': rule`."""
        found = error.get("ctx", {}).get("columns") or [str(part) for part in error["loc"][:1]]
        columns = list(dict.fromkeys(self.source_column(row, column) for column in found))
        where = f"column{'s' if len(columns) > 1 else ''} {' and '.join(map(repr, columns))}: " if columns else ""
        value = error["input"]
        is_scalar = isinstance(value, bool | int | float)
        got = f" (got {write_json(value).decode()[:40]})" if is_scalar and error["loc"] else ""
        return where + str(error["msg"]).removeprefix("Value error, ") + got


def _recognizes(found: JsonObject) -> Sureness:
    """Returns how sure it is that a document is a row or a bare MLflow trace.

    >>> _recognizes({"request": "q", "response": "a"}).name, _recognizes({"type": "session.ended"}).name
    ('POSSIBLE', 'NO')
    """
    if "type" in found or "@type" in found:
        return Sureness.NO
    if is_bare_trace(found):
        return Sureness.CERTAIN
    if found.keys().isdisjoint(("request", "inputs", "trace")):
        return Sureness.NO
    return Sureness.POSSIBLE if found.keys().isdisjoint(_OWN_COLUMNS) else Sureness.CERTAIN


_OWN_COLUMNS = (*EXPECTED, "expectations", "retrieved_context")
"""The columns that only rows of evaluation sets have."""


def _with_trace_in_its_column(row: Row) -> Row:
    """Returns a document that is a bare MLflow trace as a row with a single column; any other row unchanged."""
    return row._replace(columns={"trace": row.columns}) if is_bare_trace(row.columns) else row


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None


class EvaluationRows:
    """Converts the first 10,000 rows of one evaluation set; a single problem reports that later rows are left out."""

    def __init__(self, context: InputContext) -> None:
        self._context = context
        self._reader = DatabricksRowReader(context)
        self._count = 0
        self._first_omitted_row = 0
        """The number of the first row after the limit; 0 if the set has no such row."""

    def convert(self, row: Row) -> Iterator[DocumentRecords]:
        """Yields the records of the next row, or its problem; yields nothing for a row after the limit."""
        self._count += 1
        if self._count > MAX_ROWS:
            self._first_omitted_row = self._first_omitted_row or row.number
            return
        yield from records_of_rows([_with_trace_in_its_column(row)], self._reader.records, self._context)

    def omitted_rows(self) -> Iterator[DocumentRecords]:
        """Yields, after the last row, one problem for all rows after the limit; nothing if no row was left out."""
        if self._first_omitted_row:
            row = Row(self._first_omitted_row, {})
            what = f"and all later rows are left out: {TOO_MANY.format(MAX_ROWS, self._count)} Split the file."
            yield DocumentRecords(Document(row.number, b""), [], self._context.row_error(row, what))


def _reader(context: InputContext) -> RecordsOfObject:
    rows = DatabricksRowReader(context)
    return lambda found, document: rows.records(_with_trace_in_its_column(Row(document.number, found)))


def read_evaluation_rows(rows: Iterable[Row], context: InputContext) -> Iterator[DocumentRecords]:
    """Yields the records of each row of an evaluation set, in order."""
    evaluation_set = EvaluationRows(context)
    for row in rows:
        yield from evaluation_set.convert(row)
    yield from evaluation_set.omitted_rows()


AGENT_EVALUATION = InputFormat(
    name="databricks-agent-evaluation",
    description="rows of Agent Evaluation, or MLflow traces, only",
    read_rows=read_evaluation_rows,
    columns=COLUMNS,
    recognition=Recognition("a row of Agent Evaluation", _recognizes, _reader),
)
