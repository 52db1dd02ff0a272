"""Writes sessions of a list as CSV, JSON lines or Parquet, with what the page shows of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import orjson

from traceweir.streams.board.store.answers import SessionSummary
from traceweir.streams.tools.results.table import Column, csv_cell

ExportFormat = Literal["csv", "jsonl", "parquet"]
COLUMNS = (
    Column("session_id", "text"),
    Column("segment", "integer"),
    Column("status", "text"),
    Column("revision", "integer", nullable=True),
    Column("closed_at", "time", nullable=True),
    Column("app_name", "text", nullable=True),
    Column("agent_name", "text", nullable=True),
    Column("agent_version", "text", nullable=True),
    Column("environment", "text", nullable=True),
    Column("model", "text", nullable=True),
    Column("question", "text", nullable=True),
    Column("answer", "text", nullable=True),
    Column("passed", "integer"),
    Column("failed", "integer"),
    Column("informational", "integer"),
    Column("not_evaluated", "integer"),
    Column("failed_metrics", "text"),
    Column("trace_value", "number", nullable=True),
    Column("gate", "text", nullable=True),
    Column("tools", "text"),
    Column("failed_tools", "text"),
    Column("input_tokens", "integer", nullable=True),
    Column("output_tokens", "integer", nullable=True),
    Column("duration_s", "number", nullable=True),
    Column("judge_usd", "number"),
    Column("metric_value", "number", nullable=True),
)
"""The columns of CSV and Parquet, in their order. Lists of names are texts of JSON."""


class ExportedFile(NamedTuple):
    """A file for a browser."""

    content: bytes
    media_type: str
    name: str


def exported(sessions: Sequence[SessionSummary], form: ExportFormat) -> ExportedFile:
    """Returns a file with a row for each session.

    An agent can choose ids and write answers: in CSV, a text that a spreadsheet would run starts with an apostrophe.
    """
    if form == "csv":
        return ExportedFile(_csv(sessions), "text/csv; charset=utf-8", "sessions.csv")
    if form == "jsonl":
        lines = [orjson.dumps({"status": each.status, **each.model_dump(mode="json")}) for each in sessions]
        return ExportedFile(b"".join(line + b"\n" for line in lines), "application/x-ndjson", "sessions.jsonl")
    return ExportedFile(_parquet(sessions), "application/vnd.apache.parquet", "sessions.parquet")


def _row(session: SessionSummary) -> list[Any]:
    cells = [getattr(session, column.name) for column in COLUMNS]
    return [orjson.dumps(cell).decode() if isinstance(cell, list) else cell for cell in cells]


def _csv(sessions: Sequence[SessionSummary]) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([column.name for column in COLUMNS])
    for each in sessions:
        writer.writerow([csv_cell(cell, column.type) for cell, column in zip(_row(each), COLUMNS, strict=True)])
    return stream.getvalue().encode(errors="backslashreplace")


def _parquet(sessions: Sequence[SessionSummary]) -> bytes:
    import pyarrow as pa
    from pyarrow.parquet import write_table

    types = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
    }
    schema = pa.schema([pa.field(column.name, types[column.type], nullable=column.nullable) for column in COLUMNS])
    rows = [_row(each) for each in sessions]
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    stream = io.BytesIO()
    write_table(pa.table(columns, schema=schema), stream, compression="zstd")
    return stream.getvalue()
