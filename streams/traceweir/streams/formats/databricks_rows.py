"""Rows of Databricks Agent Evaluation as records: each row is a session of one invocation."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from uuid import UUID, uuid5

import orjson
from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from traceweir.schemas.base import JsonObject, explain
from traceweir.schemas.evaluation_row import MAX_ROWS, NEWER, TOO_MANY, EvaluationRow
from traceweir.schemas.events import EVENT
from traceweir.streams.formats.base import AgentRecord, DocumentRecords, InputContext, InputFormat, records_of_rows
from traceweir.streams.formats.documents import Document, InputError
from traceweir.streams.formats.tables import AS_JSON, ReadCell, Row, json_or_text, number, text

_NAMESPACE = UUID("2b6a3c5e-08f4-5d0d-9a5a-6d1f9f0c8e41")
_PYTHONS_REQUEST = re.compile(r"\s*\{'(messages|query|history)'")


def request(cell: str) -> JsonValue:
    """The request in a cell of CSV: an object with `messages` or `query`, else text.

    Raises:
        ValueError: it is such an object as Python prints it, and no JSON.
    """
    if not cell.lstrip().startswith("{"):
        return cell
    if _PYTHONS_REQUEST.match(cell):
        raise ValueError(f"is an object as Python prints it, not JSON; {AS_JSON}")
    try:
        found = orjson.loads(cell)
    except orjson.JSONDecodeError:
        return cell
    return found if isinstance(found, dict) and found.keys() & {"messages", "query"} else cell


COLUMNS: Mapping[str, ReadCell] = {
    **dict.fromkeys((*EvaluationRow.model_fields, *NEWER), text),
    **dict.fromkeys(("expected_facts", "expected_retrieved_context", "retrieved_context"), json_or_text),
    **dict.fromkeys(("inputs", "expectations"), json_or_text),
    "request": request,
    "execution_time_ms": number,
}


class RowReader:
    """Makes records of the rows of one input."""

    def __init__(self, context: InputContext) -> None:
        """Take what is known of the input."""
        self._context = context
        self._taken: dict[str, tuple[int, str]] = {}

    def records(self, row: Row) -> list[AgentRecord]:
        """The row as `invocation.recorded`, and the end of its session.

        The session is called by the row's `request_id`, or else by the file's name, the row's number and its content, so that a file that
        is sent twice gives duplicates.

        Raises:
            InputError: the row cannot be used; the message names row and column.
        """
        columns = {name: row.columns[name] for name in COLUMNS if row.columns.get(name) is not None}
        digest = hashlib.sha256(self.encoded(row, columns)).hexdigest()
        given = columns.get("request_id")
        own = f"row {os.path.basename(self._context.source)} {row.number} {digest}"
        session_id = given if isinstance(given, str) and given else str(uuid5(_NAMESPACE, own))
        number, earlier = self._taken.get(session_id, (row.number, digest))
        if earlier != digest:
            raise self.error(
                row, f"column 'request_id': {session_id[:80]!r} is that of row {number}, which is another one"
            )
        records = self.recorded(row, columns, session_id, self._context.base_time, ends=True)
        self._taken[session_id] = number, earlier
        return records

    def recorded(
        self, row: Row, columns: JsonObject, session_id: str, moment: datetime, *, ends: bool
    ) -> list[AgentRecord]:
        """The columns as `invocation.recorded`, and with `ends` the end of the session.

        Raises:
            InputError: they are no row of Agent Evaluation.
        """
        self._validate(row, columns)
        request_id = columns.get("request_id")
        event: JsonObject = {
            "type": "invocation.recorded",
            "session_id": session_id,
            "invocation_id": request_id if isinstance(request_id, str) else "",
            "occurred_at": moment.isoformat(),
            "row": columns,
        }
        end: JsonObject = {"type": "session.ended", "session_id": session_id, "occurred_at": moment.isoformat()}
        records = [self._record(row, session_id, each) for each in ([event, end] if ends else [event])]
        size = sum(len(record.value) for record in records)
        limit = self._context.max_session_bytes
        if size > limit:
            raise self.error(
                row,
                f"has {size} bytes as a session, and one takes {limit} at most (TRACEWEIR_SEGMENT_MAX_BYTES); "
                "leave out what is large in its trace",
            )
        return records

    def encoded(self, row: Row, columns: JsonObject) -> bytes:
        """The columns as JSON.

        Raises:
            InputError: JSON cannot say them; the message names the column.
        """
        try:
            return orjson.dumps(columns, option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError:
            for name, value in columns.items():
                try:
                    orjson.dumps(value)
                except orjson.JSONEncodeError as error:
                    raise self.error(
                        row, f"column {self.called(row, name)!r}: cannot be written as JSON ({error})"
                    ) from None
            raise

    def called(self, row: Row, column: str) -> str:
        """What the input itself calls a column of Agent Evaluation."""
        return column

    def error(self, row: Row, what: str) -> InputError:
        """What is wrong with a row."""
        return self._context.row_error(row, what)

    def _validate(self, row: Row, columns: JsonObject) -> None:
        try:
            EvaluationRow.model_validate_json(self.encoded(row, columns))
        except ValidationError as error:
            found = error.errors(include_url=False)
            raise self.error(row, "; ".join(self._problem(row, each) for each in found[:5])) from None

    def _problem(self, row: Row, error: ErrorDetails) -> str:
        """A problem of pydantic's as `column 'x': rule`."""
        found = error.get("ctx", {}).get("columns") or [str(part) for part in error["loc"][:1]]
        columns = list(dict.fromkeys(self.called(row, column) for column in found))
        where = f"column{'s' if len(columns) > 1 else ''} {' and '.join(map(repr, columns))}: " if columns else ""
        value = error["input"]
        plain = isinstance(value, bool | int | float)
        got = f" (got {orjson.dumps(value).decode()[:40]})" if plain and error["loc"] else ""
        return where + str(error["msg"]).removeprefix("Value error, ") + got

    def _record(self, row: Row, session_id: str, event: JsonObject) -> AgentRecord:
        identity = hashlib.sha256(self.encoded(row, event)).hexdigest()
        value = self.encoded(row, event | {"event_id": str(uuid5(_NAMESPACE, f"event {identity}"))})
        try:
            EVENT.validate_json(value)
        except ValidationError as error:
            raise self.error(row, f"gives no valid event: {explain(error)}") from None
        return AgentRecord("event", session_id, value)


def looks_like_a_row(document: JsonValue) -> bool:
    """Whether a document is a row, and neither a trace nor an event.

    >>> looks_like_a_row({"request": "q", "response": "a"}), looks_like_a_row({"type": "session.ended"})
    (True, False)
    """
    if not isinstance(document, dict) or "type" in document or "@type" in document:
        return False
    return "request" in document or "inputs" in document


class EvaluationRows:
    """The rows of one evaluation set: the first 10,000 are read, and one problem says how many were left out."""

    def __init__(self, context: InputContext) -> None:
        """Take what is known of the input."""
        self._context = context
        self._reader = RowReader(context)
        self._count = 0
        self._first_left_out = 0

    def take(self, row: Row) -> Iterator[DocumentRecords]:
        """The records of the next row, or its problem; nothing of a row behind the limit."""
        self._count += 1
        if self._count > MAX_ROWS:
            self._first_left_out = self._first_left_out or row.number
            return
        yield from records_of_rows([row], self._reader.records, self._context)

    def left_out(self) -> Iterator[DocumentRecords]:
        """After the last row: the problem of the rows behind the limit, if there were some."""
        if self._first_left_out:
            row = Row(self._first_left_out, {})
            what = f"and all behind it are left out: {TOO_MANY.format(MAX_ROWS, self._count)} Divide the file."
            yield DocumentRecords(Document(row.number, b""), [], self._context.row_error(row, what))


def read_evaluation_rows(rows: Iterable[Row], context: InputContext) -> Iterator[DocumentRecords]:
    """The records of each row of an evaluation set, in order."""
    taken = EvaluationRows(context)
    for row in rows:
        yield from taken.take(row)
    yield from taken.left_out()


AGENT_EVALUATION = InputFormat(
    name="databricks-agent-evaluation",
    description="rows of Agent Evaluation only",
    read_rows=read_evaluation_rows,
    columns=COLUMNS,
)
