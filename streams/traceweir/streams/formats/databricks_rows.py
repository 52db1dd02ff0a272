"""Rows of Databricks Agent Evaluation as records: each row is a session of one invocation."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from datetime import datetime
from uuid import UUID, uuid5

import orjson
from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from traceweir.schemas.base import JsonObject, explain
from traceweir.schemas.evaluation_row import NEWER, EvaluationRow
from traceweir.schemas.events import EVENT
from traceweir.streams.formats.documents import InputError
from traceweir.streams.formats.openai_chat import Recorded
from traceweir.streams.formats.tables import Row

COLUMNS = (*EvaluationRow.model_fields, *NEWER, "expectations")
_NAMESPACE = UUID("2b6a3c5e-08f4-5d0d-9a5a-6d1f9f0c8e41")


class RowReader:
    """Makes records of the rows of one input."""

    columns: Collection[str] = COLUMNS
    """Those that it looks at."""

    def __init__(self, source: str, base_time: datetime, max_bytes: int) -> None:
        """Take where the rows are from.

        Args:
            source: The file's path or name.
            base_time: When a row that does not say so was recorded.
            max_bytes: How large a record may be to become part of a session.
        """
        self._source, self._base_time, self._max_bytes = source, base_time, max_bytes
        self._taken: dict[str, tuple[int, str]] = {}

    def records(self, row: Row) -> list[Recorded]:
        """The row as `invocation.recorded`, and the end of its session.

        The session is called by the row's `request_id`, or else by the file's name, the row's number and its content, so that a file that
        is sent twice gives duplicates.

        Raises:
            InputError: the row cannot be used; the message names row and column.
        """
        self.refuse_unread(row)
        columns = {name: row.columns[name] for name in COLUMNS if row.columns.get(name) is not None}
        digest = hashlib.sha256(self.encoded(row, columns)).hexdigest()
        given = columns.get("request_id")
        own = f"row {os.path.basename(self._source)} {row.number} {digest}"
        session_id = given if isinstance(given, str) and given else str(uuid5(_NAMESPACE, own))
        number, earlier = self._taken.get(session_id, (row.number, digest))
        if earlier != digest:
            raise self.error(
                row, f"column 'request_id': {session_id[:80]!r} is that of row {number}, which is another one"
            )
        records = self.recorded(row, columns, session_id, self._base_time, ends=True)
        self._taken[session_id] = number, earlier
        return records

    def recorded(
        self, row: Row, columns: JsonObject, session_id: str, moment: datetime, *, ends: bool
    ) -> list[Recorded]:
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
        if size > self._max_bytes:
            raise self.error(
                row,
                f"has {size} bytes as a session, and one takes {self._max_bytes} at most (TRACEWEIR_SEGMENT_MAX_BYTES); "
                "leave out what is large in its trace",
            )
        return records

    def refuse_unread(self, row: Row) -> None:
        """Refuse a row that could not be read.

        Raises:
            InputError: it could not.
        """
        if row.problem is not None:
            raise self.error(row, row.problem)

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
        return InputError(f"{self._source}: row {row.number}{' ' if _speaks_of_the_row(what) else ', '}{what}")

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

    def _record(self, row: Row, session_id: str, event: JsonObject) -> Recorded:
        identity = hashlib.sha256(self.encoded(row, event)).hexdigest()
        value = self.encoded(row, event | {"event_id": str(uuid5(_NAMESPACE, f"event {identity}"))})
        try:
            EVENT.validate_json(value)
        except ValidationError as error:
            raise self.error(row, f"gives no valid event: {explain(error)}") from None
        return Recorded("event", session_id, value)


def looks_like_a_row(document: JsonValue) -> bool:
    """Whether a document is a row, and neither a trace nor an event.

    >>> looks_like_a_row({"request": "q", "response": "a"}), looks_like_a_row({"type": "session.ended"})
    (True, False)
    """
    if not isinstance(document, dict) or "type" in document or "@type" in document:
        return False
    return "request" in document or "inputs" in document


def _speaks_of_the_row(what: str) -> bool:
    return not what.startswith("column")
