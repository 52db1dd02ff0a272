"""Defines the figures of the store in ClickHouse: sums per minute and hour that a later sum replaces.

Each record of a result has a row in `figure_records`, in the order of its minute, with the sign 1. A record that another
one replaces has a second row with the sign -1. Both are the same row however often they are inserted. Whenever rows of a
minute and a partition of Kafka come, their sums are computed anew from all of them, and replace the sums before; so are
those of the hour. No sum is ever changed by what comes, so a batch that comes again changes nothing.

All of this is part of the insert into `new_results`, so that it is the same whoever inserts. The sums have the partition
of Kafka in their key, because two readers of different partitions do not see each other's rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from traceweir.schemas.score import GATE
from traceweir.streams.board.store.clickhouse_sql import TIME
from traceweir.streams.board.store.clickhouse_types import NEW_RESULTS, OPENED, RECORDS, VERSION, type_of
from traceweir.streams.board.store.rollups import (
    FIGURE_TABLES,
    FIGURES,
    GROUPS,
    HOUR_COLUMNS,
    REJECTION_COLUMNS,
    ROLLUP_COLUMNS,
)
from traceweir.streams.board.store.tables import CHANGES, DIMENSIONS, REASONS, RESULT_DIMENSIONS, RESULTS

TABLE = "figure_records"
MINUTES = "figure_minutes"
HOURS = "figure_hours"
REJECTIONS = "rejection_records"
COSTS = "judge_costs"
"""What each record of a result has paid, in the order of the time at which it was computed."""
BY_MONTH = {TABLE: "minute", MINUTES: "minute", HOURS: "hour", REJECTIONS: "minute"}
"""The tables of figures, each with the column of time by whose month it is divided."""
_CELLS = (
    "metric", "level", "config_digest", "scorer_version", *RESULT_DIMENSIONS, "value", "status", "not_evaluated_because",
    "cost_input_tokens", "cost_output_tokens", "cost_usd",
)  # fmt: skip
_RECORD = "minute, `partition`, `offset`"
_SLICE = ", ".join(name for name in GROUPS if name != "minute")
"""What rows of one minute are divided by, beside the partition of Kafka."""
_IN_ORDER = " CODEC(DoubleDelta, ZSTD(1))"
"""How times are packed by which rows are ordered."""
_TYPES = {column.name: type_of(column) for column in RESULTS.columns}


def floored(time: str, seconds: int) -> str:
    """Returns the expression of the begin of a minute or an hour."""
    # ClickHouse's toStartOfMinute returns times of 32 bits, which end in the year 2106.
    micros = f"toUnixTimestamp64Micro({time})"
    return f"fromUnixTimestamp64Micro({micros} - positiveModulo({micros}, {seconds * 1_000_000}), 'UTC')"


MINUTE = floored("occurred_at", 60)
_HOUR = floored("minute", 3_600)
_REJECTED_BECAUSE = (
    f"if(metric = '{GATE}' AND status = 'FAILED', "
    "arrayFilter(reason -> reason != '', JSONExtract(details, 'reasons', 'Array(String)')), [])"
)
"""Why the gate rejected a trace, as `rejected_because` returns it."""


def replaced(names: str) -> str:
    """Returns the query of the records that others replace, of the results that are in the insert.

    A record is replaced if another one of the same result has a higher version, whichever was stored first.
    """
    cells = f"{OPENED}, key, result_id, {VERSION}, {_RECORD}"
    return (
        f"SELECT {names} FROM (\n"
        f"        SELECT *, max({VERSION}) OVER (PARTITION BY {OPENED}, key, result_id) AS newest FROM (\n"
        f"            SELECT {OPENED}, key, result_id, {VERSION}, {MINUTE} AS minute, `partition`, `offset` FROM {NEW_RESULTS}\n"
        f"            UNION ALL SELECT {cells} FROM {RECORDS} WHERE ({OPENED}, key) IN (SELECT {OPENED}, key FROM {NEW_RESULTS})\n"
        f"        )\n    ) WHERE {VERSION} < newest"
    )


def statements() -> Iterator[str]:
    """Yields the statements that create the tables and the views of figures."""
    columns = ",\n    ".join(f"{name} {_TYPES[name]}" for name in _CELLS)
    rows = (
        f"minute {TIME}{_IN_ORDER},\n    `partition` Int64,\n    `offset` Int64,\n    sign Int8,\n    reasons Array(String),"
        f"\n    {columns}"
    )
    yield (
        f"CREATE TABLE IF NOT EXISTS {TABLE} (\n    {rows}\n)\n"
        f"ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(minute) ORDER BY ({_RECORD}, sign)"
    )
    yield f"CREATE TABLE IF NOT EXISTS figure_changes AS {TABLE} ENGINE = Null"
    yield f"CREATE MATERIALIZED VIEW IF NOT EXISTS figure_changes_to_records TO {TABLE} AS SELECT * FROM figure_changes"
    yield from _rejection_records()
    yield from _sums()
    new = (
        f"SELECT {MINUTE} AS minute, `partition`, `offset`, toInt8(1) AS sign, {_REJECTED_BECAUSE} AS reasons,\n"
        f"        {', '.join(_CELLS)} FROM {NEW_RESULTS}"
    )
    places = replaced(_RECORD)
    yield (
        f"CREATE MATERIALIZED VIEW IF NOT EXISTS new_results_to_figures TO figure_changes AS SELECT * FROM (\n    {new}\n"
        f"    UNION ALL SELECT * REPLACE (toInt8(-1) AS sign) FROM (\n    {new}\n"
        f"    UNION ALL SELECT * FROM {TABLE} WHERE sign = 1 AND ({_RECORD}) IN (\n    {places})\n"
        f"    ) WHERE ({_RECORD}) IN (\n    {places})\n)"
    )
    yield from _bounded()
    yield from _views()


def _rejection_records() -> Iterator[str]:
    columns = ", ".join(f"{name} {_TYPES[name]}" for name in DIMENSIONS)
    yield (
        f"CREATE TABLE IF NOT EXISTS {REJECTIONS} (minute {TIME}{_IN_ORDER}, `partition` Int64, `offset` Int64, "
        f"sign Int8, reasons Array(LowCardinality(String)), {columns})\n"
        f"ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(minute) ORDER BY ({_RECORD}, sign)"
    )
    yield (
        f"CREATE MATERIALIZED VIEW IF NOT EXISTS figure_changes_to_rejections TO {REJECTIONS} AS "
        f"SELECT {_RECORD}, sign, reasons, {', '.join(DIMENSIONS)} FROM figure_changes WHERE notEmpty(reasons)"
    )


def _sums() -> Iterator[str]:
    """Yields the tables of sums per minute and per hour, and what computes them of the rows that come and those before."""
    groups = ", ".join(f"{name} {_TYPES[name]}" for name in GROUPS if name != "minute")
    integers = [name for name, kind in FIGURES.items() if kind == "integer"]
    sums = ", ".join(
        f"{name} {'Int64' if name in integers else 'Float64'} CODEC({'T64, ' if name in integers else ''}ZSTD(1))"
        for name in FIGURES
    )
    times = ", ".join(f"{name} {TIME}{_IN_ORDER}" for name in ("hour", "minute"))
    columns = f"{times}, `partition` Int64, {groups},\n    {sums}, {VERSION} UInt64"
    for name, time in ((MINUTES, "minute"), (HOURS, "hour")):
        order = "hour, minute" if name == MINUTES else "hour"
        yield (
            f"CREATE TABLE IF NOT EXISTS {name} (\n    {columns},\n    INDEX by_minute minute TYPE minmax GRANULARITY 1\n)\n"
            f"ENGINE = ReplacingMergeTree({VERSION}) PARTITION BY toYYYYMM({time}) ORDER BY ({order}, `partition`, {_SLICE}) "
            "SETTINGS allow_nullable_key = 1"
        )
    yield f"CREATE TABLE IF NOT EXISTS minute_changes AS {MINUTES} ENGINE = Null"
    yield f"CREATE MATERIALIZED VIEW IF NOT EXISTS minute_changes_to_minutes TO {MINUTES} AS SELECT * FROM minute_changes"
    added = ", ".join(f"sum({name}) AS {name}" for name in FIGURES)
    yield (
        f"CREATE MATERIALIZED VIEW IF NOT EXISTS minute_changes_to_hours TO {HOURS} AS\n"
        f"SELECT hour, coalesce(min(counted), min(first)) AS minute, `partition`, {_SLICE}, {added}, max(last) AS {VERSION} FROM (\n"
        f"    SELECT * EXCEPT ({VERSION}, minute), {VERSION} AS last, minute AS first, if(n > 0, minute, NULL) AS counted\n"
        f"    FROM (SELECT * FROM minute_changes UNION ALL "
        f"SELECT * FROM {MINUTES} WHERE (hour, `partition`) IN (SELECT hour, `partition` FROM minute_changes))\n"
        f"    ORDER BY last DESC LIMIT 1 BY first, `partition`, {_SLICE}\n) GROUP BY hour, `partition`, {_SLICE}"
    )
    sql = {
        "n": "sum(toInt64(sign))",
        "evaluated": "sum(toInt64(sign * isNotNull(value)))",
        "value_sum": "sum(sign * coalesce(value, 0.))",
        "value_square_sum": "sum(sign * coalesce(value * value, 0.))",
        "passed": "sum(toInt64(sign * (status = 'PASSED')))",
        "failed": "sum(toInt64(sign * (status = 'FAILED')))",
        **{reason: f"sum(toInt64(sign * coalesce(not_evaluated_because = '{reason}', false)))" for reason in REASONS},
        # What replaced records have cost was paid.
        "input_tokens": "sum((sign > 0) * toFloat64(cost_input_tokens))",
        "output_tokens": "sum((sign > 0) * toFloat64(cost_output_tokens))",
        "usd": "sum((sign > 0) * cost_usd)",
    }
    computed = ",\n    ".join(f"{sql[name]} AS {name}" for name in FIGURES)
    yield (
        f"CREATE MATERIALIZED VIEW IF NOT EXISTS figure_changes_to_minutes TO minute_changes AS SELECT\n"
        f"    {_HOUR} AS hour, minute, `partition`, {_SLICE},\n    {computed},\n"
        # A sum that is computed later knows all rows of the one before.
        f"    toUInt64(toUnixTimestamp64Nano(now64(9))) AS {VERSION}\n"
        f"FROM (SELECT * FROM (SELECT * FROM figure_changes UNION ALL SELECT * FROM {TABLE} "
        f"WHERE (minute, `partition`) IN (SELECT minute, `partition` FROM figure_changes)) LIMIT 1 BY {_RECORD}, sign)\n"
        f"GROUP BY minute, `partition`, {_SLICE}"
    )


def _bounded() -> Iterator[str]:
    """Yields the statements that create tables for questions that would read all history: both stay small.

    A record that is inserted twice is the same row of costs, and changes no minimum.
    """
    yield (
        f"CREATE TABLE IF NOT EXISTS {COSTS} (evaluated_at {TIME} CODEC(Delta, ZSTD(1)), `partition` Int64, `offset` Int64, "
        "tokens Int64 CODEC(T64, ZSTD(1)), usd Float64)\n"
        "ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(evaluated_at) ORDER BY (evaluated_at, `partition`, `offset`)"
    )
    yield (
        f"CREATE MATERIALIZED VIEW IF NOT EXISTS new_results_to_costs TO {COSTS} AS SELECT evaluated_at, `partition`, `offset`, "
        f"cost_input_tokens + cost_output_tokens AS tokens, cost_usd AS usd FROM {NEW_RESULTS} "
        "WHERE NOT cost_cached AND (cost_input_tokens + cost_output_tokens > 0 OR cost_usd > 0)"
    )
    yield (
        "CREATE TABLE IF NOT EXISTS first_results (kind String, value String, agent_name Nullable(String), "
        f"minute SimpleAggregateFunction(min, {TIME}))\n"
        "ENGINE = AggregatingMergeTree ORDER BY (kind, value, agent_name) SETTINGS allow_nullable_key = 1"
    )
    for kind in CHANGES:
        agent = "agent_name" if kind == "agent_version" else "CAST(NULL, 'Nullable(String)')"
        yield (
            f"CREATE MATERIALIZED VIEW IF NOT EXISTS new_results_to_first_{kind}s TO first_results AS "
            f"SELECT '{kind}' AS kind, assumeNotNull({kind}) AS value, {agent} AS agent_name, min({MINUTE}) AS minute "
            f"FROM {NEW_RESULTS} WHERE isNotNull({kind}) GROUP BY value, agent_name"
        )


def _views() -> Iterator[str]:
    """Yields views with the columns of the figures that DuckDB's store keeps; its queries add up their rows."""
    cells = {"reason": "arrayJoin(reasons)", "n": "toInt64(sign)"}
    for name, source, columns, made in (
        ("rollups", MINUTES, ROLLUP_COLUMNS, {}),
        ("rollup_hours", HOURS, HOUR_COLUMNS, {}),
        ("rejections", REJECTIONS, REJECTION_COLUMNS, cells),
    ):
        selected = ", ".join(f"{made.get(column, column)} AS {column}" for column in columns)
        yield f"CREATE VIEW IF NOT EXISTS {name} AS SELECT {selected} FROM {source} FINAL"
    # DuckDB's store adds changes up later; there is nothing to add up here.
    for table in FIGURE_TABLES:
        yield f"CREATE VIEW IF NOT EXISTS {table.changes} AS SELECT * FROM {table.name} WHERE false"
