"""Measures the memory of `traceweir dashboard` while it stores results and answers for all views.

It needs the packages of the extra `dashboard`. Run it with another number of results in the store by
`python -m benchmarks.dashboard_memory 10000000`.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import orjson
from tests.support.full_store import BEGIN, END, fill
from tests.support.results import make_score, put_scores

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

RESULTS_STORED = 200_000
ROUNDS, IN_BATCH, BETWEEN_S = 10, 500, 0.25
MONTH = {"since": BEGIN.isoformat(), "until": END.isoformat()}
DAY = {"since": (END - timedelta(days=1)).isoformat(), "until": END.isoformat()}
METRIC = {"metric": "completeness"}
QUESTIONS: tuple[tuple[str, dict[str, str]], ...] = (
    ("/api/overview", MONTH),
    ("/api/overview", DAY),
    ("/api/sessions", MONTH),
    ("/api/sessions", {**MONTH, "status": "FAILED"}),
    ("/api/sessions", {**MONTH, "text": "s1"}),
    ("/api/metric", MONTH | METRIC),
    ("/api/values", MONTH),
    ("/api/not-scored", MONTH),
    ("/", MONTH),
    ("/sessions", MONTH),
    ("/metric", MONTH | METRIC),
)


def run(results: int = RESULTS_STORED) -> None:
    """Prints the memory of the process at its start, and its peak while it stores and answers."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedBroker() as broker:
        file = Path(folder) / "store.duckdb"
        fill(file, results)
        create_topics(Settings(kafka_bootstrap_servers=broker.bootstrap_servers))
        with dashboard(broker.bootstrap_servers, file) as (pid, address), arriving(broker.bootstrap_servers):
            began = memory_mb(pid)
            with httpx.Client(base_url=address, timeout=120) as client:
                for _ in range(ROUNDS):
                    for path, parameters in QUESTIONS:
                        client.get(path, params=parameters).raise_for_status()
                stored = client.get("/api/state").json()["stored_rows"]
            print(f"  {results:,} results, {stored:,} more stored meanwhile: {began} MB at the start, ", end="")
            print(f"peak {memory_mb(pid, 'VmHWM')} MB", flush=True)


@contextmanager
def dashboard(servers: str, file: Path) -> Iterator[tuple[int, str]]:
    """Runs the command within the block, and yields its process id and its address."""
    settings = {
        "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": servers,
        "TRACEWEIR_STORE": str(file),
        "TRACEWEIR_STORE_RESULTS_DAYS": "36500",
        "TRACEWEIR_STORE_FIGURES_DAYS": "36500",
        "TRACEWEIR_STORE_SESSIONS_DAYS": "36500",
        "TRACEWEIR_DASHBOARD_PORT": "0",
    }
    command = [sys.executable, "-m", "traceweir.streams.cli.entry", "dashboard", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | settings) as process:
        try:
            assert process.stdout is not None
            yield process.pid, orjson.loads(process.stdout.readline())["address"]
        finally:
            process.terminate()


@contextmanager
def arriving(servers: str) -> Iterator[None]:
    """Writes new results until the block ends."""
    stop = threading.Event()

    def produce() -> None:
        number = 0
        while not stop.wait(BETWEEN_S):
            put_scores(
                servers, [make_score(f"new-{number + at}", value=0.5, occurred_at=END) for at in range(IN_BATCH)]
            )
            number += IN_BATCH

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def memory_mb(pid: int, name: str = "VmRSS") -> int:
    """Returns a figure of a process's memory, such as `VmHWM`, its peak, in MB."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024 // 1_000_000


if __name__ == "__main__":
    run(*map(int, sys.argv[1:]))
