"""Writes scores as a table: CSV with the standard library, Parquet with pyarrow, row by row in bounded memory."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol

from pydantic_core import to_json

from traceweir.schemas.score import reported_status
from traceweir.streams.tools.results.reader import FoundScore

ColumnType = Literal["text", "integer", "number", "boolean", "time"]
SUFFIXES = (".csv", ".parquet")
_BATCH_ROWS = 10_000
_BATCH_BYTES = 16_000_000
INTEGERS = range(-(2**63), 2**63)
"""The integers that a column can represent."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class Column(NamedTuple):
    """A column: its name, the type of its cells, and whether a cell can be empty."""

    name: str
    type: ColumnType
    nullable: bool = False


COLUMNS = (
    Column("written_at", "time"),
    Column("session_id", "text"),
    Column("segment", "integer"),
    Column("revision", "integer"),
    Column("attempt", "integer"),
    Column("level", "text"),
    Column("invocation_id", "text", nullable=True),
    Column("trace_id", "text", nullable=True),
    Column("metric", "text"),
    Column("value", "number", nullable=True),
    Column("threshold", "number", nullable=True),
    Column("status", "text"),
    Column("not_evaluated_because", "text", nullable=True),
    Column("rationale", "text"),
    Column("details", "text"),
    Column("cost_input_tokens", "integer"),
    Column("cost_output_tokens", "integer"),
    Column("cost_usd", "number"),
    Column("cost_cached", "boolean"),
    Column("started_at", "time", nullable=True),
    Column("occurred_at", "time"),
    Column("evaluated_at", "time"),
    Column("result_id", "text"),
    Column("scorer_version", "text"),
    Column("config_digest", "text"),
    Column("partition", "integer"),
    Column("offset", "integer"),
    Column("app_name", "text", nullable=True),
    Column("agent_name", "text", nullable=True),
    Column("agent_version", "text", nullable=True),
    Column("environment", "text", nullable=True),
    Column("model", "text", nullable=True),
    Column("user_id", "text", nullable=True),
    Column("labels", "text", nullable=True),
    Column("trace_context_trace_id", "text", nullable=True),
    Column("trace_context_span_id", "text", nullable=True),
    Column("sampling_probability", "number", nullable=True),
    Column("source", "text", nullable=True),
    Column("cause", "text", nullable=True),
    Column("judge", "text", nullable=True),
    Column("category", "text", nullable=True),
    Column("inclusion_probability", "number", nullable=True),
    Column("segment_opened_at", "time", nullable=True),
    Column("metric_digest", "text", nullable=True),
)
"""The columns of an exported table, in their order; new columns come last."""


class UnwritableScoreError(ValueError):
    """A score has a number or a time that the type of its column cannot represent."""


class ScoreRows(Protocol):
    """Receives scores, and writes them as rows."""

    def add(self, found: FoundScore) -> None:
        """Writes a score, now or with a later row.

        Raises:
            UnwritableScoreError: the score has no row; the table is unchanged.
            OSError: the stream cannot be written.
        """


@contextmanager
def csv_table(stream: BinaryIO) -> Iterator[ScoreRows]:
    """Yields a table that writes CSV in UTF-8: a header, times in ISO 8601, an empty cell for a missing value.

    An agent can choose ids and can be quoted in a rationale. A text that a spreadsheet would run as a formula
    therefore starts with an apostrophe.

    Raises:
        OSError: the stream cannot be written.
    """
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="backslashreplace", newline="")
    try:
        yield _Csv(text)
    finally:
        # Flushes, and leaves the stream open.
        text.detach()


@contextmanager
def parquet_table(stream: BinaryIO) -> Iterator[ScoreRows]:
    """Yields a table that writes Parquet, with typed columns and times in UTC.

    Raises:
        ImportError: pyarrow is not installed.
        OSError: the stream cannot be written.
    """
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    types = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
    }
    schema = pa.schema([pa.field(column.name, types[column.type], nullable=column.nullable) for column in COLUMNS])
    with ParquetWriter(stream, schema, compression="zstd") as writer:
        table = _Parquet(schema, writer)
        yield table
        table.flush()


def row_of(found: FoundScore) -> tuple[Any, ...]:
    """Returns the cells of a score, in the order of `COLUMNS`; times are in UTC, `details` and `labels` are JSON.

    `status` is the reported status, so that every reader of a table and of a store counts the same verdicts.

    Raises:
        UnwritableScoreError: an integer has more than 64 bits, or a time is outside the years 1 to 9999.
    """
    cells = list(_cells(found.score))
    try:
        cells[_WRITTEN_AT] = datetime.fromtimestamp(found.at_ms / 1000, UTC)
        cells[_PARTITION] = found.partition
        cells[_OFFSET] = found.offset
        cells[_STATUS] = reported_status(found.score.metric, found.score.status, found.score.threshold)
        for at in _DOCUMENTS:
            if cells[at] is not None:
                cells[at] = to_json(cells[at]).decode()
        if found.score.trace_context is not None:
            cells[_TRACE_ID] = found.score.trace_context.trace_id
            cells[_SPAN_ID] = found.score.trace_context.span_id
        for at in _TIMES:
            if cells[at] is not None:
                cells[at] = cells[at].astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise UnwritableScoreError("a time is outside the years 1 to 9999") from None
    for at in INTEGERS_AT:
        # Whether a range has None takes as many steps as the range has numbers.
        if cells[at] is not None and cells[at] not in INTEGERS:
            raise UnwritableScoreError(f"{COLUMNS[at].name} has more than 64 bits")
    return tuple(cells)


def _attribute(column: str) -> str:
    """Returns the attribute of a Score for a column. `row_of` replaces the cells that need more than an attribute."""
    if column in ("written_at", "partition", "offset"):
        return "result_id"
    return "trace_context" if column.startswith("trace_context_") else column.replace("cost_", "cost.", 1)


_cells = attrgetter(*(_attribute(column.name) for column in COLUMNS))
_WRITTEN_AT, _STATUS, _PARTITION, _OFFSET, _TRACE_ID, _SPAN_ID = (
    [column.name for column in COLUMNS].index(name)
    for name in ("written_at", "status", "partition", "offset", "trace_context_trace_id", "trace_context_span_id")
)
_DOCUMENTS = [at for at, column in enumerate(COLUMNS) if column.name in ("details", "labels")]
_TIMES = [at for at, column in enumerate(COLUMNS) if column.type == "time"]
INTEGERS_AT = [at for at, column in enumerate(COLUMNS) if column.type == "integer"]


class _Csv:
    def __init__(self, stream: io.TextIOWrapper) -> None:
        self._writer = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n")
        self._writer.writerow([column.name for column in COLUMNS])

    def add(self, found: FoundScore) -> None:
        cells = row_of(found)
        self._writer.writerow([csv_cell(cell, kind) for cell, (_, kind, _) in zip(cells, COLUMNS, strict=True)])


class _Parquet:
    def __init__(self, schema: Any, writer: Any) -> None:
        self._schema = schema
        self._writer = writer
        self._rows: list[Sequence[Any]] = []
        self._bytes = 0

    def add(self, found: FoundScore) -> None:
        self._rows.append(row_of(found))
        self._bytes += len(found.value)
        if len(self._rows) >= _BATCH_ROWS or self._bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        import pyarrow as pa

        if self._rows:
            arrays = [
                pa.array(cells, field.type)
                for cells, field in zip(zip(*self._rows, strict=True), self._schema, strict=True)
            ]
            self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
        self._rows = []
        self._bytes = 0


def csv_cell(cell: Any, kind: ColumnType) -> Any:
    """Returns a cell as CSV has it: times in ISO 8601; a text that a spreadsheet would run starts with an apostrophe.

    >>> csv_cell("=1+1", "text"), csv_cell(-1.5, "number"), csv_cell(True, "boolean")
    ("'=1+1", -1.5, 'true')
    """
    if isinstance(cell, datetime):
        return cell.isoformat().replace("+00:00", "Z")
    if isinstance(cell, bool):
        return str(cell).lower()
    if kind == "text" and cell is not None and cell.startswith(_FORMULA_STARTS):
        return f"'{cell}"
    return cell
