"""Creates the tables of the store in DuckDB, and says which version of them a file has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from traceweir.streams.board.store import remains
from traceweir.streams.board.store.errors import StoreError
from traceweir.streams.board.store.rollups import FIGURE_TABLES, HOUR_COLUMNS, REJECTION_COLUMNS, by_hour
from traceweir.streams.board.store.tables import DIMENSIONS, TABLES, Table
from traceweir.streams.tools.results.reader import GATE
from traceweir.streams.tools.results.table import ColumnType

SCHEMA_VERSION = 8
"""The version of the tables that this version of Traceweir reads and writes."""

TYPES: dict[ColumnType, str] = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "time": "TIMESTAMP",
}
_TOPIC_IDS = "CREATE TABLE topic_ids (topic VARCHAR, topic_id VARCHAR)"
_TOPIC_TIMES = "CREATE TABLE topic_times (topic VARCHAR, current_at TIMESTAMP)"
_REMAINS = "CREATE TABLE {} (key UBIGINT, {})".format(
    remains.TABLE, ", ".join(f'"{name}" {TYPES[kind]}' for name, kind in remains.COLUMNS.items())
)


def prepare(connection: Any, file: str) -> None:
    """Creates the tables in an empty database, or brings those of a former version up to date, in one transaction.

    Raises:
        StoreError: the file is a database of something else, or of a newer version.
    """
    found = version(connection)
    if found is None and _tables(connection):
        raise StoreError(f"{file} is a DuckDB file that Traceweir did not write; name another file")
    if found is not None and found > SCHEMA_VERSION:
        raise StoreError(
            f"{file} has tables of version {found}, and this version of Traceweir reads up to {SCHEMA_VERSION}: "
            "upgrade Traceweir, or name another file"
        )
    if found == SCHEMA_VERSION:
        return
    connection.begin()
    try:
        if found is None:
            _create(connection)
        else:
            for number in range(found, SCHEMA_VERSION):
                MIGRATIONS[number](connection)
        connection.execute("DELETE FROM store_version")
        connection.execute("INSERT INTO store_version VALUES (?)", [SCHEMA_VERSION])
        connection.commit()
    except BaseException:
        connection.rollback()
        raise


def version(connection: Any) -> int | None:
    """Returns the version of the tables in a database; None if it has none of Traceweir."""
    if "store_version" not in _tables(connection):
        return None
    ((found,),) = connection.execute("SELECT max(version) FROM store_version").fetchall()
    if found is None:
        raise StoreError("the store does not say the version of its tables; name another file")
    return int(found)


def columns_of(table: Table) -> str:
    """Returns the columns of a table as SQL declares them."""
    return ", ".join(f'"{column.name}" {TYPES[column.type]}' for column in table.columns)


def _create(connection: Any) -> None:
    statements = [
        "CREATE TABLE store_version (version BIGINT)",
        # The epoch grows with every process that opens the store, so that an earlier one notices that it lost the store.
        "CREATE TABLE owner (epoch BIGINT, holder VARCHAR, since TIMESTAMP)",
        "INSERT INTO owner VALUES (0, '', NULL)",
        "CREATE TABLE next_offsets (topic VARCHAR, partition BIGINT, next_offset BIGINT)",
        _TOPIC_IDS,
        _TOPIC_TIMES,
        "CREATE TABLE unreadable_records (topic VARCHAR, n BIGINT)",
        f"CREATE TABLE rollup_hours ({_declared(HOUR_COLUMNS)})",
        _REMAINS,
    ]
    for figures in FIGURE_TABLES:
        statements += [
            f"CREATE TABLE {name} ({_declared(figures.columns)})" for name in (figures.name, figures.changes)
        ]
    for table in TABLES:
        statements.append(f"CREATE TABLE {table.name} (key UBIGINT, {columns_of(table)})")
        if table.keeps_history:
            statements.append(f"CREATE TABLE replaced_{table.name} (key UBIGINT, {columns_of(table)})")
    for statement in statements:
        connection.execute(statement)


def _add_hours(connection: Any) -> None:
    connection.execute(f"CREATE TABLE rollup_hours ({_declared(HOUR_COLUMNS)})")
    connection.execute(f"INSERT INTO rollup_hours {by_hour('rollups')}")


def _add_remains_and_rejections(connection: Any) -> None:
    connection.execute(_REMAINS)
    for name in ("rejections", "rejection_changes"):
        connection.execute(f"CREATE TABLE {name} ({_declared(REJECTION_COLUMNS)})")
    connection.execute(
        f"""
        INSERT INTO rejections SELECT date_trunc('minute', occurred_at), {", ".join(DIMENSIONS)}, reason, count(*) FROM (
        SELECT occurred_at, {", ".join(DIMENSIONS)}, unnest(TRY_CAST(details -> '$.reasons' AS VARCHAR[])) AS reason
        FROM results WHERE metric = '{GATE}' AND status = 'FAILED') WHERE reason <> '' GROUP BY ALL
        """
    )


def _add_to_results(column: str) -> Callable[[Any], object]:
    def add(connection: Any) -> None:
        for name in ("results", "replaced_results"):
            connection.execute(f"ALTER TABLE {name} ADD COLUMN {column} VARCHAR")

    return add


def _declared(columns: Mapping[str, ColumnType]) -> str:
    return ", ".join(f'"{name}" {TYPES[kind]}' for name, kind in columns.items())


def _tables(connection: Any) -> set[str]:
    return {name for (name,) in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()}


MIGRATIONS: dict[int, Callable[[Any], object]] = {
    1: lambda connection: connection.execute(_TOPIC_IDS),
    2: _add_hours,
    3: _add_remains_and_rejections,
    4: lambda connection: connection.execute(_TOPIC_TIMES),
    5: _add_to_results("cause"),
    6: _add_to_results("judge"),
    7: _add_to_results("category"),
}
"""By version, the function that turns tables of this version into those of the next."""
