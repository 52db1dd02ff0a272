"""Defines the tables of the store in ClickHouse, as SQL that users can also apply themselves.

`python -m traceweir.streams.board.store.clickhouse_tables` writes the SQL files beside this module; `--check` compares
them with the code.

ClickHouse has no transactions across tables. Therefore a row that is written twice must count once: every table of rows
is a ReplacingMergeTree, ordered by what no revision of a record changes, and its version is that of the record. Results,
sessions and dead letters are in the order of a day that no revision changes, and divided by its month.

Results are inserted into `new_results`, which keeps nothing. `results` receives them, and `replaced_results` those that
others replace, so that each text is stored once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from traceweir.streams.board.store import clickhouse_figures
from traceweir.streams.board.store.clickhouse_sql import TIME
from traceweir.streams.board.store.clickhouse_types import (
    NEW_RESULTS,
    OPENED,
    OPENED_AT,
    RECORDS,
    VERSION,
    declared,
    key_of,
    opened_of,
    version_of,
)
from traceweir.streams.board.store.tables import ALERTS, RESULTS, TABLES, Table

SCHEMA_VERSION = 12
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
    yield from _entry()
    yield from clickhouse_figures.statements()
    yield _written(SCHEMA_VERSION)


def migration(version: int) -> Iterator[str]:
    """Yields the statements that bring the tables of a former version up to date, in their order; none if there are none.

    A process that is killed leaves the former version, and the next one begins again: each statement can be repeated.
    """
    if version in MIGRATIONS:
        for former in range(version, SCHEMA_VERSION):
            yield from MIGRATIONS[former]
            yield _written(former + 1)


def _written(version: int) -> str:
    return f"INSERT INTO store_version VALUES ({version})"


def file_text() -> str:
    """Returns the SQL file that users can apply."""
    head = (
        "-- Creates the tables of Traceweir's results store in an empty database of ClickHouse.\n"
        "-- `traceweir dashboard` does the same when TRACEWEIR_STORE is the address of an empty database.\n"
        "-- Queries need `SETTINGS final = 1`: a record can be written twice, and a later revision replaces a row.\n\n"
    )
    return head + ";\n\n".join(statements()) + ";\n"


def _columns(table: Table) -> str:
    return ",\n    ".join(f"`{column.name}` {declared(column)}" for column in table.columns)


def _head(table: Table) -> str:
    """Returns the columns that ClickHouse computes of a row."""
    opened = f"{OPENED} Date32 DEFAULT {opened_of(table)},\n    " if table.name in OPENED_AT else ""
    return f"key UInt64 DEFAULT {key_of(table)},\n    {VERSION} UInt128 DEFAULT {version_of(table)},\n    {opened}"


def _table(table: Table) -> str:
    skipped = [f"INDEX by_time {table.time} TYPE minmax GRANULARITY 1"]
    order = ["key", *table.key]
    divided = ""
    if table.name in OPENED_AT:
        # A session is searched by its key alone.
        skipped.append("INDEX by_key key TYPE bloom_filter(0.001) GRANULARITY 1")
        divided = f"PARTITION BY toYYYYMM({OPENED}) "
    if "trace_id" in table.column_names and table.name in OPENED_AT:
        skipped.append("INDEX by_trace trace_id TYPE bloom_filter(0.001) GRANULARITY 1")
    if table.name in ("results", "sessions"):
        order = [OPENED, *order]
    skipped += [
        # Four characters are the shortest text of which the index knows where it is.
        f"INDEX words_of_{name} lowerUTF8(ifNull({name}, '')) TYPE ngrambf_v1(4, 262144, 2, 0) GRANULARITY 1"
        for name in ("rationale", "session_id", "document")
        if name in table.column_names
        and table.name in ("results", "sessions")
        and (table.name, name) != ("results", "session_id")
    ]
    return (
        f"CREATE TABLE IF NOT EXISTS {table.name} (\n    {_head(table)}{_columns(table)},\n    {f',{chr(10)}    '.join(skipped)}\n)\n"
        f"ENGINE = ReplacingMergeTree({VERSION}) {divided}ORDER BY ({', '.join(order)})"
    )


MIGRATIONS: Mapping[int, Sequence[str]] = {11: [_table(ALERTS)]}
"""By version, the statements that turn tables of this version into those of the next.

The order and the partitions of a table cannot be changed: version 11 has no way from a former one. Each version from the
first one here has its statements.
"""


def _entry() -> Iterator[str]:
    """Yields the table into which results are inserted, and what keeps them, what they replace, and their places."""
    names = ", ".join([OPENED, "key", VERSION, *(f"`{name}`" for name in RESULTS.column_names)])
    order = ", ".join([OPENED, "key", *RESULTS.key])
    yield f"CREATE TABLE IF NOT EXISTS {NEW_RESULTS} (\n    {_head(RESULTS)}{_columns(RESULTS)}\n)\nENGINE = Null"
    yield (
        f"CREATE TABLE IF NOT EXISTS replaced_{RESULTS.name} (\n    {_head(RESULTS)}{_columns(RESULTS)},\n"
        f"    INDEX by_key key TYPE bloom_filter(0.001) GRANULARITY 1\n)\n"
        f"ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM({OPENED}) ORDER BY ({order}, {VERSION})"
    )
    yield (
        f"CREATE TABLE IF NOT EXISTS {RECORDS} ({OPENED} Date32, key UInt64, result_id String, {VERSION} UInt128 CODEC(ZSTD(1)), "
        f"minute {TIME} CODEC(Delta, ZSTD(1)), `partition` Int64 CODEC(T64, ZSTD(1)), `offset` Int64 CODEC(T64, ZSTD(1)))\n"
        f"ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM({OPENED}) ORDER BY ({OPENED}, key, result_id, {VERSION})"
    )
    yield f"CREATE MATERIALIZED VIEW IF NOT EXISTS {NEW_RESULTS}_to_results TO {RESULTS.name} AS SELECT {names} FROM {NEW_RESULTS}"
    yield (
        f"CREATE MATERIALIZED VIEW IF NOT EXISTS {NEW_RESULTS}_to_records TO {RECORDS} AS SELECT {OPENED}, key, result_id, {VERSION}, "
        f"{clickhouse_figures.MINUTE} AS minute, `partition`, `offset` FROM {NEW_RESULTS}"
    )
    identity = f"({OPENED}, key, result_id, {VERSION})"
    replaced = clickhouse_figures.replaced(identity[1:-1])
    sessions = clickhouse_figures.replaced(f"{OPENED}, key")
    yield (
        f"CREATE MATERIALIZED VIEW IF NOT EXISTS {NEW_RESULTS}_to_replaced TO replaced_{RESULTS.name} AS SELECT {names} FROM (\n"
        f"    SELECT {names} FROM {NEW_RESULTS}\n"
        f"    UNION ALL SELECT {names} FROM {RESULTS.name} WHERE ({OPENED}, key) IN (\n    {sessions})\n"
        f") WHERE {identity} IN (\n    {replaced})"
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
