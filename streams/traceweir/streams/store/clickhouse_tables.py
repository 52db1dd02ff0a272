"""Defines the tables of the store in ClickHouse, as SQL that users can also apply themselves.

`python -m traceweir.streams.store.clickhouse_tables` writes the SQL files beside this module; `--check` compares them with
the code.

ClickHouse has no transactions across tables. Therefore a row that is written twice must count once: every table of rows
is a ReplacingMergeTree, ordered by what no revision of a record changes, and its version is that of the record. Figures are
views of these rows, so that no figure can differ from them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from traceweir.streams.results.table import Column, ColumnType
from traceweir.streams.store.clickhouse_sql import TIME
from traceweir.streams.store.rollups import BUCKET_GROWTH, FRESHNESS_COLUMNS, HOUR_COLUMNS, ROLLUP_COLUMNS
from traceweir.streams.store.tables import DIMENSIONS, REASONS, RESULTS, TABLES, Table

SCHEMA_VERSION = 1
"""The version of the tables that this version of Traceweir reads and writes."""
FILE = Path(__file__).parent / "clickhouse_schema.sql"

TYPES: dict[ColumnType, str] = {
    "text": "String",
    "integer": "Int64",
    "number": "Float64",
    "boolean": "Bool",
    "time": TIME,
}
_FEW_VALUES = {
    *DIMENSIONS,
    "metric",
    "level",
    "status",
    "not_evaluated_because",
    "scorer_version",
    "config_digest",
    "reason",
}
_VERSION = "version"
_BIT = 64


def statements() -> Iterator[str]:
    """Yields the statements that create the tables and views in an empty database, in their order."""
    yield "CREATE TABLE IF NOT EXISTS store_version (version UInt64) ENGINE = ReplacingMergeTree ORDER BY version"
    # The epoch grows with every process that opens the store, so that an earlier one notices that it lost the store.
    yield f"CREATE TABLE IF NOT EXISTS owner (epoch UInt64, token String, holder String, since {TIME}) ENGINE = MergeTree ORDER BY epoch"
    # What belongs to one batch is one insert into one table, which is stored as a whole or not at all.
    yield (
        "CREATE TABLE IF NOT EXISTS feed_state (kind LowCardinality(String), topic String, partition Int64, number Int64, text String, "
        "version UInt64) ENGINE = ReplacingMergeTree(version) ORDER BY (kind, topic, partition)"
    )
    yield (
        "CREATE VIEW IF NOT EXISTS unreadable_records AS "
        "SELECT topic, number AS n FROM feed_state FINAL WHERE kind = 'unreadable'"
    )
    for table in TABLES:
        yield _table(table)
        if table.keeps_history:
            yield from _history(table)
    yield from _figures()
    yield f"INSERT INTO store_version VALUES ({SCHEMA_VERSION})"


def file_text() -> str:
    """Returns the SQL file that users can apply."""
    head = (
        "-- Creates the tables of Traceweir's results store in an empty database of ClickHouse.\n"
        "-- `traceweir dashboard` does the same when TRACEWEIR_STORE is the address of an empty database.\n"
        "-- Queries need `SETTINGS final = 1`: a record can be written twice, and a later revision replaces a row.\n\n"
    )
    return head + ";\n\n".join(statements()) + ";\n"


def type_of(column: Column) -> str:
    """Returns the type of a column in ClickHouse."""
    kind = TYPES[column.type]
    if column.nullable:
        kind = f"Nullable({kind})"
    return f"LowCardinality({kind})" if column.name in _FEW_VALUES else kind


def _columns(table: Table) -> str:
    return ",\n    ".join(f"`{column.name}` {type_of(column)}" for column in table.columns)


def _version_of(table: Table) -> str:
    if not table.version:
        return "toUInt128(`offset`)"  # later records win; all records of a key are in one partition
    if len(table.version) == 1:
        return f"toUInt128({table.version[0]})"
    first, second = table.version
    return f"bitShiftLeft(toUInt128({first}), {_BIT}) + toUInt128({second})"


def _table(table: Table) -> str:
    return (
        f"CREATE TABLE IF NOT EXISTS {table.name} (\n    key UInt64 DEFAULT cityHash64({table.key[0]}),\n    "
        f"{_VERSION} UInt128 DEFAULT {_version_of(table)},\n    {_columns(table)},\n    "
        f"INDEX by_time {table.time} TYPE minmax GRANULARITY 1\n)\n"
        f"ENGINE = ReplacingMergeTree({_VERSION}) ORDER BY ({', '.join(['key', *table.key])})"
    )


def _history(table: Table) -> Iterator[str]:
    names, key = ", ".join(f"`{name}`" for name in table.column_names), ", ".join(["key", *table.key])
    yield (
        f"CREATE TABLE IF NOT EXISTS {table.name}_versions AS {table.name} ENGINE = ReplacingMergeTree ORDER BY ({key}, {_VERSION})"
    )
    yield (
        f"CREATE MATERIALIZED VIEW IF NOT EXISTS {table.name}_to_versions TO {table.name}_versions AS "
        f"SELECT key, {_VERSION}, {names} FROM {table.name}"
    )
    yield (
        f"CREATE VIEW IF NOT EXISTS replaced_{table.name} AS SELECT key, {names} FROM (\n"
        f"    SELECT *, max({_VERSION}) OVER (PARTITION BY {key}) AS newest FROM {table.name}_versions FINAL\n"
        f") WHERE {_VERSION} < newest"
    )


def _figures() -> Iterator[str]:
    """Yields views with the columns of the figures that DuckDB's store keeps; each result is a row of them.

    The figures of DuckDB are sums per minute, and its queries add them up. Here they add up single results.
    """
    cells = {
        "minute": _floored("occurred_at", 60),
        "hour": _floored("occurred_at", 3_600),
        "n": "toInt64(1)",
        "evaluated": "toInt64(isNotNull(value))",
        "value_sum": "coalesce(value, 0.)",
        "value_square_sum": "coalesce(value * value, 0.)",
        "passed": "toInt64(status = 'PASSED')",
        "failed": "toInt64(status = 'FAILED')",
        **{reason: f"toInt64(coalesce(not_evaluated_because = '{reason}', false))" for reason in REASONS},
        "input_tokens": "toFloat64(cost_input_tokens)",
        "output_tokens": "toFloat64(cost_output_tokens)",
        "usd": "cost_usd",
        "bucket": (
            "toInt64(ceil(log(greatest((toUnixTimestamp64Micro(evaluated_at) - toUnixTimestamp64Micro(occurred_at)) / 1000, 1.)) "
            f"/ log({BUCKET_GROWTH})))"
        ),
    }
    for name, columns in (
        ("rollups", ROLLUP_COLUMNS),
        ("rollup_hours", HOUR_COLUMNS),
        ("freshness", FRESHNESS_COLUMNS),
    ):
        selected = ",\n    ".join(f"{cells.get(column, column)} AS {column}" for column in columns)
        yield f"CREATE VIEW IF NOT EXISTS {name} AS SELECT\n    {selected}\nFROM {RESULTS.name} FINAL"
    # DuckDB's store adds changes up later; there is nothing to add up here.
    for name, source in (("rollup_changes", "rollups"), ("freshness_changes", "freshness")):
        yield f"CREATE VIEW IF NOT EXISTS {name} AS SELECT * FROM {source} WHERE false"


def _floored(time: str, seconds: int) -> str:
    # ClickHouse's toStartOfMinute returns times of 32 bits, which end in the year 2106.
    micros = f"toUnixTimestamp64Micro({time})"
    return f"fromUnixTimestamp64Micro({micros} - positiveModulo({micros}, {seconds * 1_000_000}), 'UTC')"


def write_or_check(file: Path, text: str, arguments: Sequence[str]) -> int:
    """Writes a generated file, or compares the file with its text if the arguments have `--check`; returns the exit code."""
    if "--check" not in arguments:
        file.write_text(text)
    elif not file.exists() or file.read_text() != text:
        sys.stderr.write(f"{file} differs from the code: run `make format`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(write_or_check(FILE, file_text(), sys.argv[1:]))
