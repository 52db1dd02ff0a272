"""Measures a store in ClickHouse that grows: what a page reads, how long it takes, and the memory, at several sizes.

The engine is in this process (`make test-clickhouse` installs it). The largest size is a month of results, and a page of a
day should read as much at each size. Sizes can be named: `python -m benchmarks.clickhouse_growth 1000000 10000000`. The rows
that are read are those of the engine's plan (`EXPLAIN ESTIMATE`), because the engine in a process counts none.
"""

from __future__ import annotations

import os
import resource
import secrets
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from traceweir.streams.board.store.clickhouse_sql import translated
from traceweir.streams.board.store.clickhouse_store import SETTINGS
from traceweir.streams.board.store.opening import open_store
from traceweir.streams.board.store.overview import overview
from traceweir.streams.board.store.selection import Selection
from traceweir.streams.board.store.session_list import sessions
from traceweir.streams.board.store.sessions import session

SIZES = (1_000_000, 3_000_000, 10_000_000)
ROUNDS = 5
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_INSERTED_AT_ONCE = 200_000
_METRICS = 6
_MOMENT = "toDateTime64('2026-01-01', 6, 'UTC') + toIntervalMillisecond(intDiv(86400000 * number, {a_day}))"
_SESSION = f"intDiv(number, {_METRICS})"
_CELLS = {
    "written_at": "moment",
    "session_id": f"hex(MD5(toString({_SESSION})))",
    "segment": "0",
    "revision": "0",
    "attempt": "0",
    "level": f"if(number % {_METRICS} < 4, 'session', 'trace')",
    "metric": f"concat('metric-', toString(number % {_METRICS}))",
    "value": "(chance % 1000) / 999",
    "threshold": f"if(number % {_METRICS} = 0, NULL, 0.5)",
    "status": f"multiIf(number % {_METRICS} = 0, 'INFORMATIONAL', chance % 1000 > 500, 'PASSED', 'FAILED')",
    "rationale": "concat('The answer names ', toString(chance % 100), ' of the parts that the question asks for. ', hex(chance))",
    "details": "concat('{\"parts\": ', toString(chance % 9), '}')",
    "cost_input_tokens": "0",
    "cost_output_tokens": "0",
    "cost_usd": "0",
    "cost_cached": "false",
    "occurred_at": "moment",
    "evaluated_at": "moment + toIntervalSecond(2 + chance % 30)",
    "segment_opened_at": "moment",
    "result_id": "hex(MD5(toString(number)))",
    "scorer_version": "'1'",
    "config_digest": f"concat('digest-', toString(intDiv({_SESSION}, 400000)))",
    "partition": f"{_SESSION} % 4",
    "offset": "number",
    "app_name": f"concat('app-', toString({_SESSION} % 3))",
    "agent_name": f"concat('agent-', toString({_SESSION} % 6))",
    "agent_version": f"concat('version-', toString({_SESSION} % 12))",
}


class Asked:
    """Answers queries; counts the rows that the engine plans to read for them, if it is to."""

    def __init__(self, client: Any, *, counts: bool = False) -> None:
        self._client = client
        self._counts = counts
        self.rows = 0

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Returns the rows of a query, as a store does."""
        text, values = translated(sql, parameters or {})
        found = self._client.query(text, parameters=values, settings=SETTINGS)
        if self._counts:
            plan = self._client.query(f"EXPLAIN ESTIMATE {text}", parameters=values, settings=SETTINGS)
            self.rows += sum(dict(zip(plan.column_names, row, strict=True))["rows"] for row in plan.result_rows)
        return [dict(zip(found.column_names, row, strict=True)) for row in found.result_rows]


def run(*sizes: int) -> None:
    """Prints, for each number of results, the time to store more, and times and rows read of each question."""
    if find_spec("chdb") is None:
        print("  skipped: the ClickHouse engine is not installed; `make test-clickhouse` installs it")
        return
    import clickhouse_connect

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clickhouse"
        name = f"benchmark_{secrets.token_hex(4)}"
        client = clickhouse_connect.get_client(interface="chdb", path=str(path))
        client.command(f"CREATE DATABASE {name}")
        client.database = name
        open_store(f"chdb://{path}?database={name}", "this benchmark", BEGIN).close()
        stored = 0
        a_day = max(sizes or SIZES) // 30
        for size in sizes or SIZES:
            began = time.perf_counter()
            for at in range(stored, size, _INSERTED_AT_ONCE):
                _insert(client, at, min(_INSERTED_AT_ONCE, size - at), a_day)
            print(
                f"  {size:,} results: {(size - stored) / (time.perf_counter() - began):,.0f} stored/s, "
                f"{_bytes(path) / size:.0f} bytes each on disk, at most {_memory_gb():.1f} GB of memory, load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            stored = size
            _ask(client, BEGIN + timedelta(days=size / a_day), size)
        client.close()


def _insert(client: Any, begin: int, number: int, a_day: int) -> None:
    names = ", ".join(f"`{name}`" for name in _CELLS)
    cells = ", ".join(_CELLS.values())
    moment = _MOMENT.format(a_day=a_day)
    client.command(
        f"INSERT INTO new_results ({names}) SELECT {cells} FROM (SELECT *, {moment} AS moment, cityHash64(number) AS chance "
        f"FROM numbers({begin}, {number})) SETTINGS min_insert_block_size_bytes = 0"
    )


def _ask(client: Any, end: datetime, size: int) -> None:
    day = Selection(end - timedelta(days=1), end)
    month = Selection(end - timedelta(days=30), end)
    ((one,),) = client.query(f"SELECT hex(MD5(toString({size // _METRICS - 7})))").result_rows
    for title, ask in (
        ("overview of a day", lambda store: overview(store, day)),
        ("overview of 30 days", lambda store: overview(store, month)),
        ("latest failed sessions", lambda store: sessions(store, day, status="FAILED", limit=50)),
        ("a session", lambda store: session(store, one)),
    ):
        counted = Asked(client, counts=True)
        ask(counted)
        times = []
        for _ in range(ROUNDS):
            asked = Asked(client)
            began = time.perf_counter()
            ask(asked)
            times.append(time.perf_counter() - began)
        ordered = sorted(times)
        print(
            f"    {title}: {1000 * ordered[len(ordered) // 2]:,.0f} ms, p95 {1000 * ordered[int(0.95 * len(ordered))]:,.0f} ms, "
            f"{counted.rows:,} rows read",
            flush=True,
        )


def _bytes(path: Path) -> int:
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())


def _memory_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024


if __name__ == "__main__":
    run(*map(int, sys.argv[1:]))
