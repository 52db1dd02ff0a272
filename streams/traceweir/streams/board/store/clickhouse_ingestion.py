"""Writes the SQL with which ClickHouse reads results and sessions from Kafka by itself, without `traceweir dashboard`.

`python -m traceweir.streams.board.store.clickhouse_ingestion` writes the SQL file beside this module; `--check`
compares it with the code.

ClickHouse reads each record at least once, and the tables count a record once. The figures are those of an insert by the
dashboard, because both insert into the same table. A record that is not what a worker writes there has no row, and its
place is kept with the reason. Withdrawn traces are records without a value, and dead letters have their reasons in
headers; the dashboard reads these.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel

from traceweir.schemas.dimensions import UNKNOWN_MODEL, TraceContext
from traceweir.schemas.score import GATE, INFORMATIONAL, Cost, Score
from traceweir.schemas.session import Session
from traceweir.streams.board.store.clickhouse_sql import TIME
from traceweir.streams.board.store.clickhouse_tables import write_or_check
from traceweir.streams.board.store.clickhouse_types import NEW_RESULTS, TYPES
from traceweir.streams.board.store.rows import KEPT_TEXT_CHARACTERS
from traceweir.streams.board.store.tables import DIMENSIONS, RESULTS, SESSIONS, Table, TableName
from traceweir.streams.tools.results.table import Column

FILE = Path(__file__).parent / "clickhouse_kafka.sql"
ERRORS = "unread_records"
"""The table of the records that have no row, with their places and reasons."""
QUEUE_COLUMNS = "record String"
"""The columns of a queue; ClickHouse adds the place of each record."""
_PLACE = {
    "written_at": "fromUnixTimestamp64Milli(toInt64(coalesce(toUnixTimestamp64Milli(_timestamp_ms), 0)), 'UTC')",
    "partition": "toInt64(_partition)",
    "offset": "toInt64(_offset)",
}
_RECORDS: Mapping[TableName, type[BaseModel]] = {"results": Score, "sessions": Session}
"""The model of a record of each table."""
_PARTS: Mapping[str, type[BaseModel]] = {"cost": Cost, "trace_context": TraceContext}
"""The fields that are documents; a column of such a field is named after the field and its part."""
_SETTINGS = """SETTINGS
    kafka_broker_list = 'localhost:9092',
    kafka_topic_list = 'traceweir.{table}',
    kafka_group_name = 'clickhouse-{table}',
    kafka_format = 'RawBLOB',
    -- A record that cannot be parsed is a row with its error, and does not stop the others.
    kafka_handle_error_mode = 'stream',
    -- The rows of one consumer are one insert, whose sums are computed together.
    kafka_num_consumers = 1,
    kafka_max_block_size = 65536,
    kafka_flush_interval_ms = 1000"""


def queue(table: Table) -> str:
    """Returns the statement that creates the queue of a table: a reader of the topic."""
    settings = _SETTINGS.format(table=table.name)
    return f"CREATE TABLE {table.name}_queue ({QUEUE_COLUMNS}) ENGINE = Kafka\n{settings}"


def reader(table: Table) -> str:
    """Returns the statement that writes each record of a queue into its table.

    Raises:
        LookupError: a column is no field of a record, and `_CELLS` does not say what its cells are.
    """
    selected = ",\n    ".join(f"{_cell(table, column)} AS `{column.name}`" for column in table.columns)
    target = NEW_RESULTS if table is RESULTS else table.name
    return (
        f"CREATE MATERIALIZED VIEW {table.name}_reader TO {target} AS SELECT\n    {selected}\nFROM {table.name}_queue\n"
        f"WHERE _error = '' AND {_is_record(table)}"
    )


def errors() -> str:
    """Returns the statement that creates the table of the records that have no row."""
    return (
        f"CREATE TABLE IF NOT EXISTS {ERRORS} (topic LowCardinality(String), `partition` Int64, `offset` Int64, written_at {TIME}, "
        "error String, record String CODEC(ZSTD(3)))\n"
        "ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(written_at) ORDER BY (topic, `partition`, `offset`, written_at)"
    )


def error_reader(table: Table) -> str:
    """Returns the statement that keeps each record of a queue that has no row: its place, why, and its first characters."""
    place = ", ".join(f"{_PLACE[name]} AS `{name}`" for name in ("partition", "offset", "written_at"))
    return (
        f"CREATE MATERIALIZED VIEW {table.name}_errors TO {ERRORS} AS SELECT\n"
        f"    '{table.name}' AS topic, {place},\n"
        "    if(_error != '', _error, 'it is not what a worker writes there') AS error,\n"
        f"    substring(if(_error != '', _raw_message, record), 1, {KEPT_TEXT_CHARACTERS}) AS record\n"
        f"FROM {table.name}_queue\nWHERE _error != '' OR NOT ({_is_record(table)})"
    )


def _is_record(table: Table) -> str:
    required = [column.name for column in table.columns if column.type == "time" and not column.nullable]
    times = [_cell(table, column) for column in table.columns if column.name in required]
    return " AND ".join(
        (
            "isValidJSON(record)",
            *(f"JSONExtractString(record, '{name}') != ''" for name in table.key if table.column_types[name] == "text"),
            *(f"isNotNull({time})" for time in times),
        )
    )


def file_text() -> str:
    """Returns the SQL file that users adapt and apply."""
    head = (
        "-- ClickHouse reads results and sessions from Kafka by itself, into the tables of clickhouse_schema.sql.\n"
        "-- Write your brokers and topics into the settings. Use this or `traceweir dashboard` as the writer of a database.\n\n"
    )
    made = [errors()]
    for table in (RESULTS, SESSIONS):
        made += [queue(table), error_reader(table), reader(table)]
    return head + ";\n\n".join(made) + ";\n"


def _cell(table: Table, column: Column) -> str:
    if (sql := _CELLS[table.name].get(column.name) or _PLACE.get(column.name)) is not None:
        return sql
    path = ", ".join(f"'{part}'" for part in _path(table, column.name))
    if column.type == "time":
        return f"parseDateTime64BestEffortOrNull(JSONExtractString(record, {path}), 6, 'UTC')"
    if column.name in ("details", "labels"):
        raw = f"JSONExtractRaw(record, {path})"
        return f"nullIf(nullIf({raw}, ''), 'null')" if column.nullable else raw
    kind = TYPES[column.type]
    return f"JSONExtract(record, {path}, '{f'Nullable({kind})' if column.nullable else kind}')"


def _path(table: Table, name: str) -> Sequence[str]:
    record = _RECORDS[table.name]
    if name in record.model_fields:
        return (name,)
    for field, part in _PARTS.items():
        within = name.removeprefix(f"{field}_")
        if field in record.model_fields and within != name and within in part.model_fields:
            return (field, within)
    # ClickHouse would read an absent key as an empty cell, in silence.
    raise LookupError(
        f"the column {name!r} of the table {table.name} is no field of a {record.__name__}: add the SQL that makes its "
        "cells from the `record` to _CELLS in clickhouse_ingestion.py"
    )


def _last_known(dimension: str) -> str:
    unknown = f" AND each != '{UNKNOWN_MODEL}'" if dimension == "model" else ""
    values = f"arrayMap(event -> JSONExtractString(event, '{dimension}'), JSONExtractArrayRaw(record, 'events'))"
    return f"nullIf(arrayLast(each -> each != ''{unknown}, {values}), '')"


def _reported_status() -> str:
    """Returns the SQL of what `reported_status` returns."""
    metric, status = (f"JSONExtractString(record, '{name}')" for name in ("metric", "status"))
    threshold = "JSONExtract(record, 'threshold', 'Nullable(Float64)')"
    return (
        f"if(isNull({threshold}) AND {status} != 'NOT_EVALUATED' AND {metric} != '{GATE}', '{INFORMATIONAL}', {status})"
    )


_CELLS: Mapping[TableName, Mapping[str, str]] = {
    "results": {"status": _reported_status()},
    "sessions": {
        "events": "toInt64(JSONLength(record, 'events'))",
        "traces": "toInt64(JSONLength(record, 'traces'))",
        **{name: _last_known(name) for name in DIMENSIONS},
        "document": "record",
    },
}
"""By table and column, the SQL of the cells that are made of a record, and are no field of it."""


if __name__ == "__main__":
    sys.exit(write_or_check(FILE, file_text(), sys.argv[1:]))
