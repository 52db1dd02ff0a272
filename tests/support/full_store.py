"""Fills a DuckDB store with any number of results, in the tables as batches would have left them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from traceweir.streams.board.store.duckdb_store import DuckDBStore
from traceweir.streams.board.store.rollups import by_hour
from traceweir.streams.board.store.tables import RESULTS

SPAN = timedelta(days=30)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
END = BEGIN + SPAN
METRICS = ("response_match_score", "tool_trajectory_avg_score", "completeness", "safety_v1", "trace_value", "gate")
AGENTS = 12


def fill(file: Path, results: int) -> None:
    """Writes a store with results of 30 days and of their sessions, in the tables as batches would have left them."""
    DuckDBStore(file, "this benchmark", BEGIN).close()
    columns = ", ".join(f'{_CELLS.get(column.name, "NULL")} AS "{column.name}"' for column in RESULTS.columns)
    with duckdb.connect(str(file), config={"memory_limit": "4GB"}) as connection:
        connection.execute("SET enable_progress_bar = false")
        step_us = int(SPAN.total_seconds() * 1e6 * len(METRICS) / results)
        connection.execute(
            f"CREATE TEMP TABLE numbers AS SELECT range AS number, range // {len(METRICS)} AS session, hash(range) AS chance, "
            f"TIMESTAMP '{BEGIN:%Y-%m-%d}' + to_microseconds({step_us} * (range // {len(METRICS)})) AS moment FROM range({results})"
        )
        connection.execute(
            f"INSERT INTO results SELECT md5_number_lower(session_id), * FROM (SELECT {columns} FROM numbers)"
        )
        connection.execute(
            """
            INSERT INTO sessions SELECT DISTINCT ON (session_id) key, written_at, session_id, segment, revision, 'idle',
            occurred_at, occurred_at, 8, 1, app_name, agent_name, agent_version, environment, model,
            '{"events": "' || repeat(md5(session_id), 20) || '"}', partition, "offset" FROM results
            """
        )
        connection.execute(
            """
            INSERT INTO rollups SELECT date_trunc('minute', occurred_at), metric, level, config_digest, scorer_version,
            app_name, agent_name, agent_version, environment, model, judge, count(*), count(value), coalesce(sum(value), 0),
            coalesce(sum(value * value), 0), count(*) FILTER (status = 'PASSED'), count(*) FILTER (status = 'FAILED'),
            count(*) FILTER (not_evaluated_because = 'missing_input'), 0, 0, 0, 0, 0, 0, 0, 0 FROM results GROUP BY ALL
            """
        )
        connection.execute(f"INSERT INTO rollup_hours {by_hour('rollups')}")
        connection.execute(
            """
            INSERT INTO rejections SELECT date_trunc('minute', occurred_at), app_name, agent_name, agent_version,
            environment, model, 'below_threshold', count(*) FROM results WHERE metric = 'gate' AND status = 'FAILED' GROUP BY ALL
            """
        )


_CELLS: Mapping[str, str] = {
    "written_at": "moment",
    "session_id": "md5(session::VARCHAR)",
    "segment": "0",
    "revision": "0",
    "attempt": "0",
    "level": f"CASE WHEN number % {len(METRICS)} < 4 THEN 'session' ELSE 'trace' END",
    "metric": "(" + str(list(METRICS)) + f")[number % {len(METRICS)} + 1]",
    "value": "CASE WHEN chance % 50 = 0 THEN NULL ELSE (chance % 1000) / 999 END",
    "threshold": "0.5",
    "status": "CASE WHEN chance % 50 = 0 THEN 'NOT_EVALUATED' WHEN (chance % 1000) / 999 >= 0.5 THEN 'PASSED' ELSE 'FAILED' END",
    "not_evaluated_because": "CASE WHEN chance % 50 = 0 THEN 'missing_input' END",
    "rationale": "'The answer names ' || chance % 100 || ' of the parts that the question asks for. ' || md5(number::VARCHAR)",
    "details": """CASE WHEN number % 6 = 5 THEN '{"reasons": ["below_threshold"]}' ELSE '{"parts": ' || chance % 9 || '}' END""",
    "cost_input_tokens": "0",
    "cost_output_tokens": "0",
    "cost_usd": "0",
    "cost_cached": "false",
    "occurred_at": "moment",
    "segment_opened_at": "moment",
    "evaluated_at": "moment + to_seconds(2)",
    "result_id": "uuid()::VARCHAR",
    "scorer_version": "'1'",
    "config_digest": f"'digest-' || session // ({10_000_000 // len(METRICS)} // 4)",
    "metric_digest": f"'measured-' || number % {len(METRICS)}",
    "partition": "session % 4",
    "offset": "number",
    "app_name": f"'app-' || session % {AGENTS} // 4",
    "agent_name": f"'agent-' || session % {AGENTS} // 2",
    "agent_version": f"'version-' || session % {AGENTS}",
    "environment": "'production'",
    "model": f"'model-' || session % {AGENTS} % 2",
}
"""SQL of the cells of a result, by column; the others are empty."""
