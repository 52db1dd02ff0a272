"""Gives the columns of the store their types in ClickHouse, and a row its version and its day."""

from __future__ import annotations

from collections.abc import Mapping

from traceweir.streams.board.store.clickhouse_sql import KEY, TIME
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS, RESULTS, Table, TableName
from traceweir.streams.tools.results.table import Column, ColumnType

TYPES: dict[ColumnType, str] = {
    "text": "String",
    "integer": "Int64",
    "number": "Float64",
    "boolean": "Bool",
    "time": TIME,
}
VERSION = "version"
"""The column by which a ReplacingMergeTree decides which row of a record counts."""
OPENED = "opened"
"""The column of the day by which rows are ordered, and by whose month a table is divided."""
OPENED_AT: Mapping[TableName, str] = {
    "results": "segment_opened_at",
    "sessions": "first_record_at",
    "dead_letters": "written_at",
}
"""By table, the time that no later record of the same row changes. A table without such a time is not divided."""
UNDATED = "197001"
"""The partition of rows without such a time, and of those outside the years 2020 to 2059: a forged time makes no partition."""
NEW_RESULTS = "new_results"
"""The table into which results are inserted. It keeps nothing: its views fill the others."""
RECORDS = "result_records"
"""The place and the version of every record of a result, also of those whose results were removed."""
_LONG_TEXTS = {"rationale", "details", "document", "labels", "detail", "record_value", "record_key"}
_FEW_VALUES = {
    *RESULT_DIMENSIONS,
    "metric",
    "level",
    "status",
    "not_evaluated_because",
    "cause",
    "category",
    "scorer_version",
    "config_digest",
    "metric_digest",
    "reason",
}


def type_of(column: Column) -> str:
    """Returns the type of a column in ClickHouse."""
    kind = TYPES[column.type]
    if column.nullable:
        kind = f"Nullable({kind})"
    return f"LowCardinality({kind})" if column.name in _FEW_VALUES else kind


def declared(column: Column) -> str:
    """Returns the type of a column and how it is packed: texts hard, and numbers by what they have in common."""
    packing = ""
    if column.name in _LONG_TEXTS:
        packing = " CODEC(ZSTD(3))"
    elif column.type == "time":
        packing = " CODEC(Delta, ZSTD(1))"
    elif column.type == "integer":
        packing = " CODEC(T64, ZSTD(1))"
    elif column.type == "number":
        packing = " CODEC(Gorilla, ZSTD(1))"
    return type_of(column) + packing


def opened_of(table: Table) -> str:
    """Returns the expression of the column `OPENED`."""
    time = f"`{OPENED_AT[table.name]}`"
    dated = f"{time} >= toDateTime64('2020-01-01', 6, 'UTC') AND {time} < toDateTime64('2060-01-01', 6, 'UTC')"
    return f"if(coalesce({dated}, false), toDate32(assumeNotNull({time})), toDate32(0))"


def key_of(table: Table) -> str:
    """Returns the expression of the column `key`: a number made of the first column of the table's key."""
    return KEY.format(table.key[0])


def version_of(table: Table) -> str:
    """Returns the expression of the column `VERSION`: of two rows of a record, the one with the higher number counts."""
    if table is RESULTS:
        # No two records of a result have the same number: figures subtract all but the one with the highest.
        bits = (("revision", 32, 96), ("attempt", 32, 64), ("`offset`", 48, 16), ("`partition`", 16, 0))
        return " + ".join(f"bitShiftLeft(toUInt128(least({name}, {2**width - 1})), {at})" for name, width, at in bits)
    # Later records win; all records of a key are in one partition.
    return f"toUInt128({table.version[0] if table.version else '`offset`'})"
