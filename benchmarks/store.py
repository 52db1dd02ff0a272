"""Measures the results store: results per second that it stores, and how long the dashboard's questions take.

No broker: from the bytes of a score to its committed row. Run it with `python -m benchmarks store`, or with another
number of results in the store by `python -m benchmarks.store 10000000`.
"""

import hashlib
import multiprocessing
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa
from tests.support.full_store import AGENTS, BEGIN, END, METRICS, fill

from traceweir.schemas.score import Score, result_id
from traceweir.streams.board.store.duckdb_store import DuckDBStore
from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.overview import overview
from traceweir.streams.board.store.rows import Batch, RowReader, SourcePartition
from traceweir.streams.board.store.selection import Selection
from traceweir.streams.board.store.session_list import sessions
from traceweir.streams.board.store.sessions import not_scored, session
from traceweir.streams.board.store.tables import RESULTS

RESULTS_STORED = 200_000
IN_BATCH, BATCHES, ROUNDS = 10_000, 4, 3
QUESTIONS, WARM_UP = 40, 3


class Record(NamedTuple):
    """The attributes of a record that the store reads."""

    offset: int
    value: bytes
    partition: int = 0
    timestamp: int = int(END.timestamp() * 1000)
    key: bytes = b""
    headers: tuple[tuple[str, bytes], ...] = ()


def run(results: int = RESULTS_STORED) -> None:
    """Prints results per second beside those of a bare insert, then the times of questions, alone and while storing."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store.duckdb"
        # In a process of its own, whose memory does not count.
        filling = multiprocessing.get_context("spawn").Process(target=fill, args=(file, results))
        filling.start()
        filling.join()
        if filling.exitcode:
            raise RuntimeError(f"the store was not filled: exit code {filling.exitcode}")
        print(f"  {results:,} results: {file.stat().st_size / 1e6:,.0f} MB in the file", flush=True)
        store = DuckDBStore(file, "this benchmark", END)
        batches = batches_of_scores()
        for number in range(ROUNDS):
            _print_rates(store, batches, Path(folder) / f"bare-{number}.duckdb")
        print_times("alone", store)
        stop = threading.Event()
        storing = threading.Thread(target=_store_until, args=(stop, store, batches))
        storing.start()
        try:
            print_times("while storing", store)
        finally:
            stop.set()
            storing.join()
        store.close()
    print(f"  most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


def batches_of_scores() -> list[list[Record]]:
    """Returns the records of new scores, in batches."""
    return [
        [Record(n, _score(n).wire()) for n in range(at, at + IN_BATCH)] for at in range(0, BATCHES * IN_BATCH, IN_BATCH)
    ]


def _score(number: int) -> Score:
    subject, at = number // len(METRICS), number % len(METRICS)
    value = number * 37 % 1000 / 999
    occurred_at = END - timedelta(seconds=60 - subject % 60)
    agent = subject % AGENTS
    return Score.model_validate(
        {
            "result_id": result_id(f"new-{subject}", 0, "session", f"new-{subject}", METRICS[at], "digest"),
            "revision": 0,
            "session_id": f"new-{subject}",
            "segment": 0,
            "level": "session" if at < 4 else "trace",
            "metric": METRICS[at],
            "value": value,
            "threshold": 0.5,
            "status": "PASSED" if value >= 0.5 else "FAILED",
            "rationale": f"The answer names {number % 100} of the parts that the question asks for.",
            "details": {"reasons": ["below_threshold"]} if at == 5 else {"parts": number % 9},
            "scorer_version": "1",
            "config_digest": "digest-3",
            "occurred_at": occurred_at,
            "evaluated_at": occurred_at + timedelta(seconds=2),
            "app_name": f"app-{agent // 4}",
            "agent_name": f"agent-{agent // 2}",
            "agent_version": f"version-{agent}",
            "environment": "production",
            "model": f"model-{agent % 2}",
        }
    )


def read(records: list[Record]) -> Batch:
    """Returns the batch that a feed makes of records."""
    batch = Batch(offsets={SourcePartition("results", 0): records[-1].offset + 1})
    RowReader({"results": "results"}).add(batch, "results", records)
    return batch


def _print_rates(store: DuckDBStore, batches: list[list[Record]], bare: Path) -> None:
    """Prints the rates of one round: rows that are only inserted, and records that the store reads and stores."""
    rows = [read(records).rows["results"] for records in batches]
    number, inserted_s, stored_s = BATCHES * IN_BATCH, _inserted_s(rows, bare), 0.0
    for records in batches:
        began = time.perf_counter()
        store.write(read(records))
        stored_s += time.perf_counter() - began
    print(
        f"  stored: {number / stored_s:,.0f} results/s; bare insert of the same rows: {number / inserted_s:,.0f}/s; "
        f"ratio {inserted_s / stored_s:.2f}",
        flush=True,
    )


def _inserted_s(batches: list[list[tuple[object, ...]]], file: Path) -> float:
    with duckdb.connect(str(file)) as connection:
        began = time.perf_counter()
        for number, rows in enumerate(batches):
            columns = [list(column) for column in zip(*rows, strict=True)]
            connection.register("rows", pa.table(columns, list(RESULTS.column_names)))
            create = "INSERT INTO results" if number else "CREATE TABLE results AS"
            connection.execute(f"{create} SELECT * FROM rows")
        return time.perf_counter() - began


def _store_until(stop: threading.Event, store: DuckDBStore, batches: list[list[Record]]) -> None:
    number, began, stored = 0, time.perf_counter(), 0
    while not stop.is_set():
        records = batches[number % BATCHES][:5_000]
        store.write(read(records))
        stored += len(records)
        number += 1
        stop.wait(0.25)
    print(f"  stored meanwhile: {stored / (time.perf_counter() - began):,.0f} results/s", flush=True)


def _questions(store: Store) -> Iterator[tuple[str, Callable[[int], object]]]:
    day, month = Selection(END - timedelta(days=1), END), Selection(BEGIN, END)
    yield "overview of a day", lambda _: overview(store, day)
    yield "overview of 30 days", lambda _: overview(store, month)
    one = Selection(BEGIN, END, {"agent_version": "version-3"}, metric="completeness")
    yield "overview of 30 days, one agent and metric", lambda _: overview(store, one)
    yield "latest sessions", lambda _: sessions(store, month)
    yield "latest failed sessions", lambda _: sessions(store, month, status="FAILED")
    yield (
        "a session",
        lambda number: session(store, hashlib.md5(str(number * 997).encode(), usedforsecurity=False).hexdigest()),
    )
    yield "not scored in a day", lambda _: not_scored(store, day)


def print_times(when: str, store: Store) -> None:
    """Prints how long the questions of the dashboard take."""
    for name, ask in _questions(store):
        times_ms = []
        for number in range(WARM_UP + QUESTIONS):
            began = time.perf_counter()
            ask(number)
            times_ms.append((time.perf_counter() - began) * 1000)
        quantiles = statistics.quantiles(times_ms[WARM_UP:], n=20)
        print(f"  {name}, {when}: {quantiles[9]:.0f} ms (p95 {quantiles[18]:.0f} ms)", flush=True)


if __name__ == "__main__":
    run(*map(int, sys.argv[1:]))
