"""Gives the columns of the store their types in ClickHouse, and a row its version."""

from __future__ import annotations

from traceweir.streams.board.store.clickhouse_sql import KEY, TIME
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS, RESULTS, Table
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
    "reason",
}


def type_of(column: Column) -> str:
    """Returns the type of a column in ClickHouse."""
    kind = TYPES[column.type]
    if column.nullable:
        kind = f"Nullable({kind})"
    return f"LowCardinality({kind})" if column.name in _FEW_VALUES else kind


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
