"""A dashboard that is killed 100 times while results arrive has stored each result once at the end."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from tests.support.patient_http import get
from tests.support.results import make_score, put_scores
from tests.support.scoring import NOW
from tests.support.stores import figures, open_store, recomputed_figures

from traceweir.schemas.score import Score
from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard.server import run_dashboard
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

KILLS = 100
IN_BATCH, BETWEEN_S = 50, 0.1
SESSIONS = 3_000
"""Few enough that later scores revise earlier ones."""
LATEST_KILL_S = 0.5
"""A kill comes at most so long after the start of the process, after its first answer, or after its first batch."""
DEADLINE_S = 300


def dashboard(settings: Settings, ready: Connection) -> None:
    """Runs the dashboard in a process of its own, and sends its address."""
    run_dashboard(settings, ready.send)


@contextmanager
def arriving(servers: str) -> Iterator[list[Score]]:
    """Writes results until the block ends; the list has all of them then."""
    chance, stop, written = random.Random(5), threading.Event(), list[Score]()

    def produce() -> None:
        for second in range(1_000_000):
            scores = [
                make_score(
                    f"s{chance.randrange(SESSIONS)}", value=round(chance.random(), 3), revision=chance.randrange(3)
                )
                for _ in range(IN_BATCH)
            ]
            put_scores(servers, scores, at=NOW + timedelta(seconds=second))
            written.extend(scores)
            if stop.wait(BETWEEN_S):
                break

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield written
    finally:
        stop.set()
        thread.join()


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_a_dashboard_that_is_killed_100_times_under_load_has_stored_each_result_once(
    embedded_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    servers, file, chance = embedded_broker.bootstrap_servers, tmp_path / "store.duckdb", random.Random(6)
    topics = Settings(kafka_bootstrap_servers=servers)
    create_topics(topics)
    settings = topics.model_copy(
        update={
            "store": str(file),
            "dashboard_port": 0,
            "store_results_days": 36_500,
            "store_figures_days": 36_500,
        }
    )
    context = multiprocessing.get_context("forkserver")
    # The first batch imports pandas, which takes longer than the process lives until most of the kills.
    context.set_forkserver_preload([__name__, "pandas"])

    with arriving(servers) as written:
        for _ in range(KILLS):
            addresses, ready = context.Pipe(duplex=False)
            process = context.Process(target=dashboard, args=(settings, ready))
            process.start()
            ready.close()
            if (moment := chance.random()) < 0.7:
                address = addresses.recv()  # fails if the dashboard ends by itself
                if moment < 0.4:
                    wait_until(address, lambda state: state["stored_rows"] > 0)
            process.join(chance.uniform(0, LATEST_KILL_S))
            assert process.exitcode is None, "the dashboard ended by itself"
            os.kill(process.pid or 0, signal.SIGKILL)
            process.join()
    store = open_store(file)
    assert 0 < sum(store.offsets().values()) < len(written), "no kill came between two batches"
    store.close()
    addresses, ready = context.Pipe(duplex=False)
    process = context.Process(target=dashboard, args=(settings, ready))
    process.start()
    wait_until(addresses.recv(), lambda state: state["behind"] == 0)
    os.kill(process.pid or 0, signal.SIGINT)
    process.join()

    assert process.exitcode == 0
    latest: dict[str, Score] = {}
    for score in written:
        before = latest.get(score.session_id)
        if before is None or score.revision >= before.revision:
            latest[score.session_id] = score
    store = open_store(file)
    found = store.query("SELECT session_id, revision, value FROM results ORDER BY session_id")
    assert [tuple(row.values()) for row in found] == [
        (name, score.revision, score.value) for name, score in sorted(latest.items())
    ]
    assert figures(store) == recomputed_figures(store)
    assert sum(store.offsets().values()) == len(written)
    store.close()


def wait_until(address: str, is_so: Callable[[dict[str, Any]], bool]) -> None:
    """Waits until this is so of the state of the dashboard."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_so(state := get(f"{address}/api/state").json()):
        assert time.monotonic() < deadline, f"the dashboard has not come so far: {state}"
        time.sleep(0.05)
