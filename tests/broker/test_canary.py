"""The canary goes the whole way of a record, and says so when nobody scores it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from tests.audit.committed import Committed
from tests.support.command_line import Run
from tests.support.metrics import samples
from tests.support.workers import Fleet

from traceweir.streams.base.canary_app import CANARY_APP
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = pytest.mark.broker


def test_a_session_of_the_canary_is_decided_and_never_published(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    with EmbeddedBroker() as broker, Fleet(broker.bootstrap_servers, "traceweir.", tmp_path, config) as fleet:
        monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        fleet.start("worker").until_ready()
        ended = run("canary", "--once")
        with Committed(broker.bootstrap_servers, "traceweir.", "traceweir.assemble-score-gate") as committed:
            for _ in range(60):  # the first answer of a busy broker can take seconds
                committed.read(1.0)
                if committed.rows["results"]:
                    break
            results = [row.document for row in committed.rows["results"]]
            published = committed.rows["network"]

    assert (ended.code, ended.err) == (0, "")
    assert re.fullmatch(rf"{CANARY_APP}-[0-9a-f]{{16}}: decided after \d+\.\d\d s, \d+ scores\n", ended.out)
    assert {each["app_name"] for each in results} == {CANARY_APP}
    (decision,) = [each for each in results if each["metric"] == "gate"]
    assert decision["status"] == "FAILED"
    assert {"visibility", "privacy"} <= set(decision["details"]["reasons"])
    assert published == []


@pytest.mark.parametrize("topics", [True, False])
def test_a_session_that_nobody_scores_is_a_failure(
    topics: bool, embedded_broker: EmbeddedBroker, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"canary{topics}.".lower()
    for name, value in (("KAFKA_BOOTSTRAP_SERVERS", embedded_broker.bootstrap_servers), ("TOPIC_PREFIX", prefix)):
        monkeypatch.setenv(f"TRACEWEIR_{name}", value)
    if topics:
        create_topics(Settings())
    ended = run("canary", "--once", "--timeout", "2")
    assert (ended.code, ended.out) == (1, "")
    expected = "no score came for the session" if topics else f"{prefix}results' does not exist"
    assert expected in ended.err


def test_a_broker_that_does_not_answer_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = "{}:{}".format(*silent.getsockname())
        monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", address)
        ended = run("canary", "--once", "--timeout", "1")
    assert (ended.code, ended.out) == (1, "")
    assert f"no session could be sent to Kafka at {address} within 1 s" in ended.err


def test_the_canary_serves_its_failure_and_ends_in_order(embedded_broker: EmbeddedBroker) -> None:
    create_topics(Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers))
    environment = os.environ | {"TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": embedded_broker.bootstrap_servers}
    command = [sys.executable, "-m", "traceweir.streams.cli.entry", "canary", "--timeout", "1", "--port", "0"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        lines = iter(running.stderr)
        address = next(line for line in lines if "metrics: " in line).rpartition("metrics: ")[2].strip()
        assert any("the canary failed" in line for line in lines)
        with urllib.request.urlopen(address, timeout=90) as answer:
            found = samples(answer.read())
        running.send_signal(signal.SIGTERM)
        rest = running.stderr.read()
    assert found == {("canary_success",): 0}
    assert (running.returncode, "Traceback" in rest) == (0, False)
