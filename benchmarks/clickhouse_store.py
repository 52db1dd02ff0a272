"""Measures the results store in ClickHouse, with the engine in this process: results per second, and times of questions.

No server and no broker. It needs the packages of `make test-clickhouse`. Run it with another number of results in the store
by `python -m benchmarks.clickhouse_store 10000000`.
"""

import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
from tests.support.full_store import END, fill

from benchmarks.store import (
    BATCHES,
    IN_BATCH,
    RESULTS_STORED,
    ROUNDS,
    Record,
    batches_of_scores,
    print_times,
    read,
)
from traceweir.streams.board.store.clickhouse_types import NEW_RESULTS, type_of
from traceweir.streams.board.store.opening import Store, open_store
from traceweir.streams.board.store.tables import RESULTS, SESSIONS

COPIED_AT_ONCE = 100_000


def run(results: int = RESULTS_STORED) -> None:
    """Prints results per second beside those of a bare insert, then the times of questions."""
    if find_spec("chdb") is None:
        print("  skipped: the ClickHouse engine is not installed; `make test-clickhouse` installs it")
        return
    with tempfile.TemporaryDirectory() as folder, _database(Path(folder) / "clickhouse") as (address, client):
        store = open_store(address, "this benchmark", END)
        _copy(Path(folder) / "store.duckdb", client, results)
        print(f"  {results:,} results", flush=True)
        batches = batches_of_scores()
        for number in range(ROUNDS):
            _print_rates(store, client, batches, f"bare_{number}")
        print_times("alone", store)
        store.close()


@contextmanager
def _database(folder: Path) -> Iterator[tuple[str, Any]]:
    import clickhouse_connect

    name = f"benchmark_{secrets.token_hex(4)}"
    client = clickhouse_connect.get_client(interface="chdb", path=str(folder))
    client.command(f"CREATE DATABASE {name}")
    client.database = name
    try:
        yield f"chdb://{folder}?database={name}", client
    finally:
        client.close()


def _copy(file: Path, client: Any, results: int) -> None:
    fill(file, results)
    with duckdb.connect(str(file), read_only=True) as connection:
        for table in (RESULTS, SESSIONS):
            reader = connection.sql(f"SELECT * EXCLUDE (key) FROM {table.name}").to_arrow_reader(COPIED_AT_ONCE)
            for batch in reader:
                rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
                name = NEW_RESULTS if table is RESULTS else table.name
                client.insert(name, rows, column_names=table.column_names)


def _print_rates(store: Store, client: Any, batches: list[list[Record]], bare: str) -> None:
    """Prints the rates of one round: rows that are only inserted, and records that the store reads and stores."""
    columns = ", ".join(f"`{column.name}` {type_of(column)}" for column in RESULTS.columns)
    client.command(f"CREATE TABLE {bare} ({columns}) ENGINE = MergeTree ORDER BY tuple()")
    rows = [read(records).rows["results"] for records in batches]
    number, began = BATCHES * IN_BATCH, time.perf_counter()
    for each in rows:
        client.insert(bare, each, column_names=RESULTS.column_names)
    inserted_s, began = time.perf_counter() - began, time.perf_counter()
    for records in batches:
        store.write(read(records))
    stored_s = time.perf_counter() - began
    print(
        f"  stored: {number / stored_s:,.0f} results/s; bare insert of the same rows: {number / inserted_s:,.0f}/s; "
        f"ratio {inserted_s / stored_s:.2f}",
        flush=True,
    )


if __name__ == "__main__":
    run(*map(int, sys.argv[1:]))
