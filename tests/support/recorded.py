"""Sends recorded sessions of a real agent through a worker, and checks the output, on any broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.audit.committed import Committed
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.topic_admin import create_topics

VARIABLE = "TRACEWEIR_RECORDED_SESSIONS"
DEADLINE_S = 90
Document = dict[str, Any]


def recorded_sessions() -> Path:
    """Returns the file of chat transcripts that the environment names; skips the test if it names none."""
    if not (name := os.environ.get(VARIABLE)):
        pytest.skip(f"needs recorded chat transcripts: set {VARIABLE} to a JSON file of them")
    return Path(name).absolute()


def check_recorded_sessions(servers: str, prefix: str, folder: Path) -> None:
    """Emits the file twice to a worker, and compares the output with the file and with the result of `score`."""
    file = recorded_sessions()
    count = len(json.loads(file.read_bytes()))
    config = folder / "config.json"
    config.write_text("{}")
    create_topics(Settings(kafka_bootstrap_servers=servers, topic_prefix=prefix))
    application = f"{prefix}assemble-score-gate"
    with Committed(servers, prefix, application) as committed, Fleet(servers, prefix, folder, config, "none") as fleet:
        worker = fleet.start("worker")
        rows = committed.rows

        def until(holds: Callable[[], bool]) -> None:
            deadline = time.monotonic() + DEADLINE_S
            while not holds():
                if worker.ended or time.monotonic() > deadline:
                    found = {topic: len(each) for topic, each in rows.items()}
                    pytest.fail(
                        f"the expected records did not arrive; there are {found}; the worker's log:\n{worker.log.read_text()}"
                    )
                committed.read(0.1)

        sent = emit(file, servers, prefix)
        until(lambda: len(rows["results"]) >= 2 * count)
        until(lambda: committed.counts()["gate"]["consumed"] >= count)

        sessions = Counter(session["session_id"] for session in committed.sessions())
        assert (len(sessions), sessions.total()) == (count, count)
        assert {session["closed_because"] for session in committed.sessions()} == {"session.ended"}
        assert sum(len(each["events"]) + len(each["traces"]) for each in committed.sessions()) == sent
        assert rows["dead-letters"] == []
        online = values(row.document for row in rows["results"])
        assert len(online) == count
        assert online == values(score(file, config))

        assert emit(file, servers, prefix) == sent
        until(lambda: committed.counts()["assemble"]["duplicate"] >= sent)
        before = {topic: len(rows[topic]) for topic in ("sessions", "candidates", "results", "network", "dead-letters")}
        assert before == {
            "sessions": count,
            "candidates": count,
            "results": 2 * count,
            "network": sum(accepted(row.document) for row in rows["results"]),
            "dead-letters": 0,
        }
        counters = committed.counts()["assemble"]
        assert (counters["joined"], counters["duplicate"], counters["opened"]) == (sent, sent, count)
        assert counters["consumed"] == counters["joined"] + counters["duplicate"] + counters["forwarded"]
        worker.terminate(30)


def emit(file: Path, servers: str, prefix: str) -> int:
    """Emits the file; returns the number of records sent."""
    ended = traceweir("emit", str(file), "--format", "openai-chat", servers=servers, prefix=prefix)
    assert (ended.returncode, ended.stderr) == (0, "")
    _, _, sent = ended.stdout.partition(": ")
    return sum(int(part.split()[0]) for part in sent.split(", "))


def score(file: Path, config: Path) -> list[Document]:
    """Returns what `score` prints for the file."""
    options = ["--format", "openai-chat", "--config", str(config), "--embedder", "none", "--json"]
    ended = traceweir("score", str(file), *options)
    said = [line for line in ended.stderr.splitlines() if " missed the threshold: " not in line]
    assert said == []
    scores = [json.loads(line) for line in ended.stdout.splitlines()]
    missed = any(each["status"] == "FAILED" for each in scores if each["metric"] != "gate")
    assert ended.returncode == int(missed)
    return scores


def values(scores: Any) -> dict[str, tuple[float, str, Document]]:
    """Returns value, status and details of each trace value, by the result's id."""
    found = [each for each in scores if each["metric"] == "trace_value"]
    return {each["result_id"]: (each["value"], each["status"], each["details"]) for each in found}


def accepted(score: Document) -> bool:
    return bool(score["metric"] == "gate" and score["status"] == "PASSED")


def traceweir(
    *arguments: str, servers: str = "", prefix: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    environment = os.environ | {"TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": servers, "TRACEWEIR_TOPIC_PREFIX": prefix}
    environment |= variables
    return subprocess.run(
        [sys.executable, "-m", "traceweir.streams.cli.main", *arguments],
        env={name: value for name, value in environment.items() if value},
        capture_output=True,
        text=True,
        check=False,
    )
