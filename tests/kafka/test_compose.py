"""Runs the services of docker-compose.yml with their commands and variables.

Only Kafka's address and two names differ.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer

from traceweir.streams.base.setting_groups.group import ENV_PREFIX

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
SAMPLE_SESSIONS = 4
WAIT_S = 60


class Services:
    """Starts the compose file's services as processes."""

    def __init__(self, kafka: str, folder: Path) -> None:
        self.prefix, self._folder = f"compose-{uuid.uuid4().hex[:8]}.", folder
        self._changes = {
            "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": kafka,
            "TRACEWEIR_TOPIC_PREFIX": self.prefix,
            "TRACEWEIR_STATE_DIR": str(folder / "state"),
            "TRACEWEIR_WEB_PORT": "0",
        }

    @contextmanager
    def started(self, name: str, *more: str) -> Iterator[subprocess.Popen[bytes]]:
        """Starts the service and yields its process, which is killed at the end of the block if it still runs."""
        inherited = {variable: value for variable, value in os.environ.items() if not variable.startswith(ENV_PREFIX)}
        # A variable without a value is taken from the environment, as Compose does.
        given = {variable: value for variable, value in SERVICES[name]["environment"].items() if value is not None}
        command = [word.replace("/examples", str(ROOT / "examples")) for word in SERVICES[name]["command"]]
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [Path(sys.executable).with_name("traceweir"), *command, *more],
                env=inherited | given | self._changes,
                cwd=self._folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    def finished(self, name: str, *more: str) -> str:
        """Runs the service with more arguments to its end, checks its exit code, and returns its output."""
        with self.started(name, *more) as process:
            code = process.wait(WAIT_S)
        printed = (self._folder / f"{name}.log").read_text()
        assert code == 0, printed
        return printed


Records = list[tuple[str, Any]]
"""Committed records, as topic and document."""


def metrics(scores: Records) -> set[str]:
    return {score["metric"] for _, score in scores}


def read(kafka: str, topics: list[str], is_enough: Callable[[Records], bool]) -> Records:
    """Returns the first committed records of the topics that are enough."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe(topics)
    found: Records = []
    deadline = monotonic() + WAIT_S
    try:
        while not is_enough(found):
            assert monotonic() < deadline, f"the expected records did not arrive; there are {found}"
            record = consumer.poll(0.5)
            if record is not None and not record.error():
                found.append((record.topic(), json.loads(record.value())))
    finally:
        consumer.close()
    return found


def test_the_sample_results_in_scores_decisions_and_published_traces(kafka: str, tmp_path: Path) -> None:
    services = Services(kafka, tmp_path)
    results, network = f"{services.prefix}results", f"{services.prefix}network"
    services.finished("topics")
    with services.started("worker") as worker:
        services.finished("sample")
        # The default criteria add two scores of each session: of its invocation, and of the session itself.
        found = read(kafka, [results, network], lambda found: len(found) == 4 * SAMPLE_SESSIONS + 2)
        worker.terminate()
        assert worker.wait(WAIT_S) == 0
    scores = {(score["session_id"], score["metric"]): score["status"] for topic, score in found if topic == results}
    counted = {key: scores.pop(key) for key in [*scores] if key[1] == "tool_call_count_v1"}
    assert (len(counted), {*counted.values()}) == (SAMPLE_SESSIONS, {"PASSED"})
    assert scores == {
        ("rail-1001", "trace_value"): "PASSED",
        ("rail-1001", "gate"): "PASSED",
        ("help-2001", "trace_value"): "PASSED",
        ("help-2001", "gate"): "PASSED",
        ("code-3001", "trace_value"): "FAILED",
        ("code-3001", "gate"): "FAILED",
        ("clinic-4001", "trace_value"): "FAILED",
        ("clinic-4001", "gate"): "FAILED",
    }
    published = {trace["id"]: trace["task"]["objective"] for topic, trace in found if topic == network}
    assert published == {
        "kp:trace:rail-1001": "Book two seats from Busan to Seoul on Friday",
        "kp:trace:help-2001": "Let [REDACTED:email] log in again",
    }


def test_the_sessions_of_the_fleet_are_scored_and_decided(kafka: str, tmp_path: Path) -> None:
    expected = {"trace_value", "gate", "tool_call_count_v1"}  # The compose file's worker has no config.
    services = Services(kafka, tmp_path)
    services.finished("topics")
    with services.started("worker") as worker:
        printed = services.finished("fleet", "--seconds", "8")
        read(kafka, [f"{services.prefix}results"], lambda found: metrics(found) >= expected)
        worker.terminate()
        assert worker.wait(WAIT_S) == 0
    assert int(printed.split()[0]) > 300
