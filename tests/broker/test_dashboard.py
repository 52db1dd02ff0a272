"""`traceweir dashboard` stores each record once, whenever it is killed, and answers for the whole store."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.anchors import CRITERION, verdict
from tests.support.command_line import Run
from tests.support.patient_http import get
from tests.support.results import make_score, put_scores
from tests.support.scoring import NOW
from tests.support.stores import CLICKHOUSE, figures, recomputed_figures

from traceweir.schemas.score import Score
from traceweir.streams.base.settings import Settings
from traceweir.streams.board.store.opening import open_store
from traceweir.streams.tools.anchors.topics import verdicts_writer
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.slow]

DEADLINE_S = 90
KILLS = 3
"""Few, because each start takes seconds; the test of the store plays more."""


@pytest.fixture
def servers(embedded_broker: EmbeddedBroker) -> str:
    create_topics(Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers))
    return embedded_broker.bootstrap_servers


@contextmanager
def running_dashboard(servers: str, store: Path | str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Runs `traceweir dashboard` on a free port, and yields the process and its address."""
    variables = {
        "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": servers,
        "TRACEWEIR_STORE": str(store),
        "TRACEWEIR_STORE_RESULTS_DAYS": "36500",
        "TRACEWEIR_STORE_FIGURES_DAYS": "36500",
        "TRACEWEIR_DASHBOARD_PORT": "0",
    }
    command = [sys.executable, "-m", "traceweir.streams.cli.entry", "dashboard", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | variables) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())["address"]
        finally:
            process.kill()


def wait_for(address: str, holds: Callable[[dict[str, Any]], bool]) -> None:
    """Waits until a condition of the dashboard's state holds."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        state = get(f"{address}/api/state").json()
        if holds(state):
            return
        time.sleep(0.02)
    raise AssertionError(f"the dashboard has not reached the state: {state}")


def has_stored(rows: int, state: dict[str, Any]) -> bool:
    return bool(state["stored_rows"] >= rows or state["behind"] == 0)


@pytest.mark.parametrize("form", ["{}/store.duckdb", pytest.param("chdb://{}/clickhouse", marks=CLICKHOUSE)])
def test_a_dashboard_that_is_killed_at_random_points_has_stored_each_result_once(
    form: str, servers: str, tmp_path: Path
) -> None:
    chance, written, store = random.Random(3), dict[str, Score](), form.format(tmp_path)
    batches = []
    for _ in range(30):
        scores = [
            make_score(f"s{chance.randrange(400)}", value=chance.random(), revision=chance.randrange(3))
            for _ in range(100)
        ]
        batches.append(scores)
        for score in scores:
            before = written.get(score.session_id)
            if before is None or score.revision >= before.revision:
                written[score.session_id] = score

    def produce() -> None:
        for number, scores in enumerate(batches):
            put_scores(servers, scores, at=NOW + timedelta(seconds=number))
            killed.wait(0.1)  # ends early when the test fails; the load lasts through the kills

    killed = threading.Event()
    producing = threading.Thread(target=produce)
    producing.start()
    try:
        for _ in range(KILLS):
            with running_dashboard(servers, store) as (process, address):
                rows = chance.randrange(100)
                wait_for(address, partial(has_stored, rows))
                assert all(each.stat().st_mode & 0o077 == 0 for each in tmp_path.iterdir())
                process.send_signal(signal.SIGKILL)
    finally:
        killed.set()
        producing.join()

    with running_dashboard(servers, store) as (process, address):
        wait_for(address, lambda state: state["behind"] == 0)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    opened = open_store(store, "this test", NOW)
    found = opened.query("SELECT session_id, revision, value FROM results ORDER BY session_id")
    assert [tuple(row.values()) for row in found] == [
        (name, score.revision, score.value) for name, score in sorted(written.items())
    ]
    assert figures(opened) == recomputed_figures(opened)
    assert sum(opened.offsets().values()) == sum(map(len, batches))
    opened.close()


def parts(state: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {part["check"]: (part["state"], part["text"]) for part in state["health"]}


def test_a_dashboard_whose_broker_ends_knows_nothing_of_it_any_more_and_still_stops(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedBroker() as broker:
        create_topics(Settings(kafka_bootstrap_servers=broker.bootstrap_servers))
        with running_dashboard(broker.bootstrap_servers, tmp_path / "store.duckdb") as (process, address):
            told = ("not checked", "the embedded broker does not say which workers run; 0 records behind")
            wait_for(address, lambda state: parts(state)["workers"] == told and state["behind"] == 0)
            wait_for(address, lambda state: all(part["state"] != "failure" for part in state["health"]))
            assert get(f"{address}/healthz").json() == {"healthy": True, "problems": []}

            broker.__exit__(None, None, None)

            wait_for(address, lambda state: state["problem"] is not None)
            state = get(f"{address}/api/state").json()
            assert state["behind"] is None
            assert parts(state)["workers"] == ("failure", "unknown while no broker answers")
            health = get(f"{address}/healthz")
            assert health.status_code == 503
            assert health.json()["problems"][0].startswith("broker: no Kafka broker has answered for more than 15 s")
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            assert "leaked" not in capfd.readouterr().err


def test_a_dashboard_reads_what_anchors_say(servers: str, tmp_path: Path) -> None:
    settings = Settings(kafka_bootstrap_servers=servers)
    verdicts_writer(settings).write({b"a": verdict("a", label="fail").wire()})
    with running_dashboard(servers, tmp_path / "store.duckdb") as (_, address):
        wait_for(address, lambda _: get(f"{address}/api/v1/anchors").json()["criteria"] != [])
        found = get(f"{address}/api/v1/anchors").json()
        (criterion,) = found["criteria"]
        assert (criterion["criterion"], criterion["verdicts"], criterion["pass"]) == (CRITERION, 1, 0)
        assert (criterion["agreement"]["agree"], criterion["agreement"]["anchors"]) == (0, 1)
        assert (found["problem"], found["unreadable"]) == (None, 0)


def test_a_second_dashboard_is_told_which_process_has_the_store(
    servers: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store.duckdb"
    with running_dashboard(servers, store) as (process, address):
        wait_for(address, lambda state: state["behind"] == 0)
        monkeypatch.setenv("TRACEWEIR_STORE", str(store))
        monkeypatch.setenv("TRACEWEIR_DASHBOARD_PORT", "0")

        ended = run("dashboard")

    assert ended.code == 1
    assert f"{store} is in use by the process {process.pid}" in ended.err


@pytest.mark.parametrize(
    ("name", "value", "code", "message"),
    [
        ("HOST", "0.0.0.0", 2, "set TRACEWEIR_DASHBOARD_TOKEN to a secret that clients send"),
        ("TOKEN", "short", 2, "TRACEWEIR_DASHBOARD_TOKEN: the value (not shown) must be 16 characters or more"),
        ("HOST", "192.0.2.1", 2, "is not a loopback address"),
    ],
)
def test_an_unsafe_address_or_token_is_refused(
    name: str, value: str, code: int, message: str, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRACEWEIR_STORE", str(tmp_path / "store.duckdb"))
    monkeypatch.setenv(f"TRACEWEIR_DASHBOARD_{name}", value)

    ended = run("dashboard")

    assert (ended.code, message in ended.err) == (code, True), ended.err
    assert not (tmp_path / "store.duckdb").exists()


def test_a_taken_port_is_named_with_the_way_out(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("TRACEWEIR_STORE", str(tmp_path / "store.duckdb"))
        monkeypatch.setenv("TRACEWEIR_DASHBOARD_PORT", str(port))

        ended = run("dashboard")

    assert ended.code == 1
    assert f"port {port} on 127.0.0.1 cannot be bound" in ended.err
