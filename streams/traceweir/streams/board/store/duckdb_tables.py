"""Creates the tables of the store in DuckDB, and says which version of them a file has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from traceweir.schemas.score import GATE, INFORMATIONAL
from traceweir.streams.board.store import remains, unjudged
from traceweir.streams.board.store.errors import StoreError
from traceweir.streams.board.store.rollups import (
    FIGURE_TABLES,
    GROUPS,
    HOUR_COLUMNS,
    REJECTION_COLUMNS,
    ROLLUP_COLUMNS,
    by_hour,
)
from traceweir.streams.board.store.tables import (
    ALERTS,
    CHANGES,
    DIMENSIONS,
    KEPT_SCORES,
    LABELS,
    REASONS,
    TABLES,
    Table,
)
from traceweir.streams.tools.results.table import ColumnType

SCHEMA_VERSION = 16
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
    _create_bounded(connection)


def _create_bounded(connection: Any) -> None:
    """Creates what ClickHouse keeps as tables: DuckDB skips rows of other times by itself, and hours are few."""
    connection.execute(
        """
        CREATE OR REPLACE VIEW judge_costs AS SELECT evaluated_at, cost_input_tokens + cost_output_tokens AS tokens, cost_usd AS usd
        FROM (SELECT * FROM results UNION ALL SELECT * FROM replaced_results) WHERE NOT cost_cached
        """
    )
    columns = f"minute, n, agent_name, {', '.join(CHANGES)}"
    firsts = " UNION ALL ".join(
        f"SELECT '{kind}' AS kind, {kind} AS value, {agent} AS agent_name, min(minute) AS minute FROM hours "
        f"WHERE n > 0 AND {kind} IS NOT NULL GROUP BY ALL"
        for kind, agent in ((kind, "agent_name" if kind == "agent_version" else "NULL::VARCHAR") for kind in CHANGES)
    )
    connection.execute(
        f"CREATE OR REPLACE VIEW first_results AS WITH hours AS (SELECT {columns} FROM rollup_hours "
        f"UNION ALL SELECT {columns} FROM rollup_changes) {firsts}"
    )


def _add_hours(connection: Any) -> None:
    _add_columns(connection, "rollups", ROLLUP_COLUMNS)
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


def _add_to_results(*columns: str) -> Callable[[Any], object]:
    """Returns a migration that adds columns, each a name or a name and a type; without a type it is a text."""

    def add(connection: Any) -> None:
        for name in ("results", "replaced_results"):
            for column in columns:
                declared = column if " " in column else f"{column} VARCHAR"
                connection.execute(f"ALTER TABLE {name} ADD COLUMN {declared}")

    return add


def _add_judge_to_figures(connection: Any) -> None:
    for name, columns in (
        ("rollups", ROLLUP_COLUMNS),
        ("rollup_changes", ROLLUP_COLUMNS),
        ("rollup_hours", HOUR_COLUMNS),
        (remains.TABLE, ("key", *remains.COLUMNS)),
    ):
        _add_columns(connection, name, columns)
    # The figures so far are those of no judge. What the store still has of judged results moves to their judges.
    groups = {"minute": "date_trunc('minute', occurred_at)", **{name: name for name in GROUPS if name != "minute"}}
    for sign, judge in ((-1, "NULL"), (1, "judge")):
        figures = {
            "n": "count(*)",
            "evaluated": "count(value)",
            "value_sum": "coalesce(sum(value), 0)",
            "value_square_sum": "coalesce(sum(value * value), 0)",
            "passed": "count(*) FILTER (status = 'PASSED')",
            "failed": "count(*) FILTER (status = 'FAILED')",
            **{reason: f"count(*) FILTER (not_evaluated_because = '{reason}')" for reason in REASONS},
            **{name: f"sum(cost_{name})" for name in ("input_tokens", "output_tokens", "usd")},
        }
        cells = groups | {"judge": judge} | {name: f"{sign} * {sql}" for name, sql in figures.items()}
        connection.execute(
            f"INSERT INTO rollup_changes BY NAME SELECT {', '.join(f'{sql} AS {name}' for name, sql in cells.items())} "
            "FROM results WHERE judge IS NOT NULL GROUP BY ALL"
        )


def _leave_values_without_a_threshold_out_of_pass_rates(connection: Any) -> None:
    tables = ("results", "replaced_results")
    for name in tables:
        connection.execute(f"UPDATE {name} SET status = '{INFORMATIONAL}' WHERE {unjudged.IN_RESULTS}")
    found = unjudged.in_figures(tables)
    connection.execute(f"UPDATE {remains.TABLE} SET status = '{INFORMATIONAL}' WHERE status = 'PASSED' AND {found}")
    for name in ("rollups", "rollup_changes", "rollup_hours"):
        connection.execute(f"UPDATE {name} SET passed = 0 WHERE passed <> 0 AND {found}")


def _drop_freshness(connection: Any) -> None:
    for name in ("freshness", "freshness_changes"):
        connection.execute(f"DROP TABLE IF EXISTS {name}")


def _add_tables(*tables: Table) -> Callable[[Any], object]:
    """Returns a migration that adds tables, with the columns of today."""

    def add(connection: Any) -> None:
        for table in tables:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table.name} (key UBIGINT, {columns_of(table)})")

    return add


def _add_metric_digest(connection: Any) -> None:
    _add_to_results("metric_digest")(connection)
    # `_add_tables` makes the table with the columns of today.
    connection.execute(f"ALTER TABLE {KEPT_SCORES.name} ADD COLUMN IF NOT EXISTS metric_digest VARCHAR")


def _add_columns(connection: Any, name: str, columns: Iterable[str]) -> None:
    """Makes a table anew with these columns; those that it had keep their cells, and the others are empty.

    Rows are stored by the place of their columns, and ALTER TABLE can add a column at the end only.
    """
    types = dict(connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE {name})").fetchall())
    declared = ", ".join(f'"{column}" {types.get(column, TYPES["text"])}' for column in columns)
    connection.execute(f"ALTER TABLE {name} RENAME TO former_rows")
    connection.execute(f"CREATE TABLE {name} ({declared})")
    connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM former_rows")
    connection.execute("DROP TABLE former_rows")


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
    7: _add_judge_to_figures,
    8: _add_to_results("category", "inclusion_probability DOUBLE"),
    9: _leave_values_without_a_threshold_out_of_pass_rates,
    10: _create_bounded,
    11: _add_to_results("segment_opened_at TIMESTAMP"),
    12: _drop_freshness,
    13: _add_tables(LABELS, KEPT_SCORES),
    14: _add_metric_digest,
    15: _add_tables(ALERTS),
}
"""By version, the function that turns tables of this version into those of the next."""
