"""Defines the tables of the store in ClickHouse, as SQL that users can also apply themselves.

`python -m traceweir.streams.board.store.clickhouse_tables` writes the SQL files beside this module; `--check` compares
them with the code.

ClickHouse has no transactions across tables. Therefore a row that is written twice must count once: every table of rows
is a ReplacingMergeTree, ordered by what no revision of a record changes, and its version is that of the record.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from traceweir.schemas.score import INFORMATIONAL
from traceweir.streams.board.store import clickhouse_figures, unjudged
from traceweir.streams.board.store.clickhouse_sql import TIME
from traceweir.streams.board.store.clickhouse_types import VERSION, key_of, type_of, version_of
from traceweir.streams.board.store.tables import RESULTS, TABLES, Table

SCHEMA_VERSION = 9
"""The version of the tables that this version of Traceweir reads and writes."""
FILE = Path(__file__).parent / "clickhouse_schema.sql"


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
    yield from clickhouse_figures.statements()
    yield f"INSERT INTO store_version VALUES ({SCHEMA_VERSION})"


def migration(version: int) -> Iterator[str]:
    """Yields the statements that bring the tables of a former version up to date, in their order; none if there are none.

    A process that is killed leaves the former version, and the next one begins again: each statement can be repeated.
    """
    if version not in (7, 8):
        return
    yield from clickhouse_figures.bounded()
    yield from clickhouse_figures.filling()
    if version == 7:
        yield from _without_verdicts()
    yield f"INSERT INTO store_version VALUES ({SCHEMA_VERSION})"


def _without_verdicts() -> Iterator[str]:
    tables = (RESULTS.name, f"{RESULTS.name}_versions")
    conditions = {clickhouse_figures.TABLE: f"status = 'PASSED' AND {unjudged.in_figures(tables)}"}
    for name, condition in {**conditions, **dict.fromkeys(tables, unjudged.IN_RESULTS)}.items():
        yield f"ALTER TABLE {name} UPDATE status = '{INFORMATIONAL}' WHERE {condition} SETTINGS mutations_sync = 2"


def file_text() -> str:
    """Returns the SQL file that users can apply."""
    head = (
        "-- Creates the tables of Traceweir's results store in an empty database of ClickHouse.\n"
        "-- `traceweir dashboard` does the same when TRACEWEIR_STORE is the address of an empty database.\n"
        "-- Queries need `SETTINGS final = 1`: a record can be written twice, and a later revision replaces a row.\n\n"
    )
    return head + ";\n\n".join(statements()) + ";\n"


def _columns(table: Table) -> str:
    return ",\n    ".join(f"`{column.name}` {type_of(column)}" for column in table.columns)


def _table(table: Table) -> str:
    return (
        f"CREATE TABLE IF NOT EXISTS {table.name} (\n    key UInt64 DEFAULT {key_of(table)},\n    "
        f"{VERSION} UInt128 DEFAULT {version_of(table)},\n    {_columns(table)},\n    "
        f"INDEX by_time {table.time} TYPE minmax GRANULARITY 1\n)\n"
        f"ENGINE = ReplacingMergeTree({VERSION}) ORDER BY ({', '.join(['key', *table.key])})"
    )


def _history(table: Table) -> Iterator[str]:
    names = ", ".join(f"`{name}`" for name in table.column_names)
    key = ", ".join(["key", *table.key])
    yield (
        f"CREATE TABLE IF NOT EXISTS {table.name}_versions AS {table.name} ENGINE = ReplacingMergeTree ORDER BY ({key}, {VERSION})"
    )
    yield (
        f"CREATE MATERIALIZED VIEW IF NOT EXISTS {table.name}_to_versions TO {table.name}_versions AS "
        f"SELECT key, {VERSION}, {names} FROM {table.name}"
    )
    yield (
        f"CREATE VIEW IF NOT EXISTS replaced_{table.name} AS SELECT key, {names} FROM (\n"
        f"    SELECT *, max({VERSION}) OVER (PARTITION BY {key}) AS newest FROM {table.name}_versions FINAL\n"
        f") WHERE {VERSION} < newest"
    )


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
