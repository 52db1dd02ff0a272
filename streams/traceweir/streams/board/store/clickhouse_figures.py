"""Defines the figures of the store in ClickHouse: a signed row for each record of a result, in the order of time.

A record adds a row with the sign 1. When another record replaces it, a row with the sign -1 and otherwise the same cells
subtracts it. Both are the same row however often they are inserted, so that a batch that is stored twice counts once. The
rows are in the order of time, because figures are asked for by time: results are in the order of their sessions, and the
figures of a day would need all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceweir.schemas.score import GATE
from traceweir.streams.board.store.clickhouse_sql import TIME
from traceweir.streams.board.store.clickhouse_types import VERSION, type_of
from traceweir.streams.board.store.rollups import (
    BUCKET_GROWTH,
    FIGURE_TABLES,
    FRESHNESS_COLUMNS,
    HOUR_COLUMNS,
    REJECTION_COLUMNS,
    ROLLUP_COLUMNS,
)
from traceweir.streams.board.store.tables import CHANGES, REASONS, RESULT_DIMENSIONS, RESULTS

TABLE = "figure_records"
COSTS = "judge_costs"
"""What each record of a result has paid, in the order of the time at which it was computed."""
REMOVED = "removed_results"
"""Where retention leaves the places of the records whose results it removes: a later revision has to subtract them."""
_CELLS = (
    "metric", "level", "config_digest", "scorer_version", *RESULT_DIMENSIONS, "value", "status", "not_evaluated_because",
    "cost_input_tokens", "cost_output_tokens", "cost_usd",
)  # fmt: skip
_RECORD = "minute, `partition`, `offset`"


def _floored(time: str, seconds: int) -> str:
    # ClickHouse's toStartOfMinute returns times of 32 bits, which end in the year 2106.
    micros = f"toUnixTimestamp64Micro({time})"
    return f"fromUnixTimestamp64Micro({micros} - positiveModulo({micros}, {seconds * 1_000_000}), 'UTC')"


_MINUTE = _floored("occurred_at", 60)
_BUCKET = (
    "toInt64(ceil(log(greatest((toUnixTimestamp64Micro(evaluated_at) - toUnixTimestamp64Micro(occurred_at)) / 1000, 1.)) "
    f"/ log({BUCKET_GROWTH})))"
)
_REASONS = (
    f"if(metric = '{GATE}' AND status = 'FAILED', "
    "arrayFilter(reason -> reason != '', JSONExtract(details, 'reasons', 'Array(String)')), [])"
)
"""Why the gate rejected a trace, as `rejected_because` returns it."""


def statements() -> Iterator[str]:
    """Yields the statements that create the tables and the views of figures."""
    types = {column.name: type_of(column) for column in RESULTS.columns}
    columns = ",\n    ".join(f"{name} {types[name]}" for name in _CELLS)
    yield (
        f"CREATE TABLE IF NOT EXISTS {TABLE} (\n    minute {TIME},\n    `partition` Int64,\n    `offset` Int64,\n    sign Int8,\n"
        f"    bucket Int64,\n    reasons Array(String),\n    {columns}\n)\nENGINE = ReplacingMergeTree ORDER BY ({_RECORD}, sign)"
    )
    yield (
        f"CREATE MATERIALIZED VIEW IF NOT EXISTS results_to_figures TO {TABLE} AS SELECT\n    {_MINUTE} AS minute,\n"
        f"    `partition`, `offset`, toInt8(1) AS sign,\n    {_BUCKET} AS bucket,\n    {_REASONS} AS reasons,\n"
        f"    {', '.join(_CELLS)}\nFROM {RESULTS.name}"
    )
    yield (
        f"CREATE TABLE IF NOT EXISTS {REMOVED} (key UInt64, result_id String, {VERSION} UInt128, minute {TIME}, "
        f"`partition` Int64, `offset` Int64) ENGINE = ReplacingMergeTree ORDER BY (key, result_id, {VERSION})"
    )
    yield from bounded()
    yield from _views()


def bounded() -> Iterator[str]:
    """Yields the statements that create tables for questions that would read all history: both stay small.

    A record that is inserted twice is the same row of costs, and changes no minimum.
    """
    yield (
        f"CREATE TABLE IF NOT EXISTS {COSTS} (evaluated_at {TIME}, `partition` Int64, `offset` Int64, tokens Int64, usd Float64)\n"
        "ENGINE = ReplacingMergeTree ORDER BY (evaluated_at, `partition`, `offset`)"
    )
    yield f"CREATE MATERIALIZED VIEW IF NOT EXISTS results_to_costs TO {COSTS} AS {_costs(RESULTS.name)}"
    yield (
        "CREATE TABLE IF NOT EXISTS first_results (kind String, value String, agent_name Nullable(String), "
        f"minute SimpleAggregateFunction(min, {TIME}))\n"
        "ENGINE = AggregatingMergeTree ORDER BY (kind, value, agent_name) SETTINGS allow_nullable_key = 1"
    )
    for kind in CHANGES:
        view = f"results_to_first_{kind}s"
        yield f"CREATE MATERIALIZED VIEW IF NOT EXISTS {view} TO first_results AS {_first(kind, RESULTS.name, _MINUTE)}"


def filling() -> Iterator[str]:
    """Yields the statements that fill the tables of `bounded` from records that were stored before; each can be repeated."""
    yield f"INSERT INTO {COSTS} {_costs(f'{RESULTS.name}_versions')}"
    for kind in CHANGES:
        yield f"INSERT INTO first_results {_first(kind, TABLE, 'minute')}"


def _costs(table: str) -> str:
    return (
        f"SELECT evaluated_at, `partition`, `offset`, cost_input_tokens + cost_output_tokens AS tokens, cost_usd AS usd "
        f"FROM {table} WHERE NOT cost_cached AND (cost_input_tokens + cost_output_tokens > 0 OR cost_usd > 0)"
    )


def _first(kind: str, table: str, minute: str) -> str:
    agent = "agent_name" if kind == "agent_version" else "CAST(NULL, 'Nullable(String)')"
    return (
        f"SELECT '{kind}' AS kind, assumeNotNull({kind}) AS value, {agent} AS agent_name, min({minute}) AS minute "
        f"FROM {table} WHERE isNotNull({kind}) GROUP BY value, agent_name"
    )


def subtraction(keys: Sequence[int] | None = None) -> str:
    """Returns the query whose rows subtract the replaced records: of the sessions with these keys, or of all.

    A record is replaced if another one of the same result has a higher version, whichever was stored first.
    """
    where = f"WHERE key IN ({', '.join(map(str, keys))})" if keys is not None else ""
    return (
        f"SELECT * REPLACE (toInt8(-1) AS sign) FROM (SELECT * FROM {TABLE} WHERE sign = 1 AND ({_RECORD}) IN (\n"
        f"    SELECT {_RECORD} FROM (\n"
        f"        SELECT {_RECORD}, {VERSION}, max({VERSION}) OVER (PARTITION BY key, result_id) AS newest FROM (\n"
        f"            SELECT key, result_id, {VERSION}, {_MINUTE} AS minute, `partition`, `offset` FROM {RESULTS.name}_versions {where}\n"
        f"            UNION ALL SELECT key, result_id, {VERSION}, {_RECORD} FROM {REMOVED} {where}\n"
        f"        )\n    ) WHERE {VERSION} < newest\n))"
    )


def subtraction_view() -> str:
    """Returns the statement with which ClickHouse subtracts the replaced records by itself, for a database that it fills."""
    known = f"SELECT {_RECORD} FROM {TABLE} WHERE sign = -1"
    return (
        f"CREATE MATERIALIZED VIEW IF NOT EXISTS replaced_to_figures REFRESH EVERY 10 MINUTE APPEND TO {TABLE} AS\n"
        f"SELECT * FROM (\n{subtraction()}\n) WHERE ({_RECORD}) NOT IN ({known})"
    )


def remains(condition: str) -> str:
    """Returns the query that makes rows of `REMOVED` of the results that a condition selects."""
    return f"SELECT key, result_id, {VERSION}, {_MINUTE} AS minute, `partition`, `offset` FROM {RESULTS.name} FINAL WHERE {condition}"


def _views() -> Iterator[str]:
    """Yields views with the columns of the figures that DuckDB's store keeps; its queries add up their rows."""
    cells = {
        "hour": _floored("minute", 3_600),
        "n": "toInt64(sign)",
        "evaluated": "toInt64(sign * isNotNull(value))",
        "value_sum": "sign * coalesce(value, 0.)",
        "value_square_sum": "sign * coalesce(value * value, 0.)",
        "passed": "toInt64(sign * (status = 'PASSED'))",
        "failed": "toInt64(sign * (status = 'FAILED'))",
        **{reason: f"toInt64(sign * coalesce(not_evaluated_because = '{reason}', false))" for reason in REASONS},
        # What replaced records have cost was paid.
        "input_tokens": "(sign > 0) * toFloat64(cost_input_tokens)",
        "output_tokens": "(sign > 0) * toFloat64(cost_output_tokens)",
        "usd": "(sign > 0) * cost_usd",
        "reason": "arrayJoin(reasons)",
    }
    for name, columns in (
        ("rollups", ROLLUP_COLUMNS),
        ("rollup_hours", HOUR_COLUMNS),
        ("freshness", FRESHNESS_COLUMNS),
        ("rejections", REJECTION_COLUMNS),
    ):
        selected = ",\n    ".join(f"{cells.get(column, column)} AS {column}" for column in columns)
        yield f"CREATE VIEW IF NOT EXISTS {name} AS SELECT\n    {selected}\nFROM {TABLE} FINAL"
    # DuckDB's store adds changes up later; there is nothing to add up here.
    for table in FIGURE_TABLES:
        yield f"CREATE VIEW IF NOT EXISTS {table.changes} AS SELECT * FROM {table.name} WHERE false"
