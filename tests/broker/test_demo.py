"""A shortened run of the demo produces what the fleet expects, and a wrong expectation is detected.

The first test stands in `make test` for the suite `make test-broker`: it shows that the whole path works.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.demo.agents import ResultsSeen
from traceweir.streams.cli.demo.commands import run_demo
from traceweir.streams.cli.demo.interruption import INTERRUPTED
from traceweir.streams.cli.demo.ledger import Counts, expected_counts
from traceweir.streams.cli.demo.sessions import Emission
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = pytest.mark.xdist_group("demo")

SECONDS = 8.0


def test_the_worker_produces_what_the_fleet_expects(capfd: pytest.CaptureFixture[str]) -> None:
    code = run_demo(keep=False, as_json=True, seed=1, seconds=SECONDS)

    out, err = capfd.readouterr()
    summary = json.loads(out)
    assert (code, summary["problems"], summary["ok"]) == (0, [], True)
    assert all(equation["holds"] for equation in summary["equations"])
    assert all(count["expected"] == count["observed"] for count in summary["counts"].values())
    assert summary["counts"]["sessions"]["observed"] >= 40
    assert summary["redaction"] == [
        {"trace_id": "kp:trace:demo-secrets", "published": True, "secrets": 4, "secrets_published": 0}
    ]
    assert err == ""


@pytest.mark.broker
def test_a_missing_expected_session_is_reported_as_a_problem(capfd: pytest.CaptureFixture[str]) -> None:
    def too_many(emissions: Sequence[Emission], outcomes: Mapping[str, Counts]) -> Counts:
        counts = expected_counts(emissions, outcomes)
        return {**counts, "sessions": counts["sessions"] + 1}

    code = run_demo(keep=False, as_json=True, seed=2, seconds=SECONDS, expect=too_many)

    summary = json.loads(capfd.readouterr().out)
    sessions = summary["counts"]["sessions"]["observed"]
    assert (code, summary["ok"]) == (1, False)
    assert summary["problems"] == [f"sessions: {sessions + 1} expected, {sessions} observed"]


@pytest.mark.broker
def test_the_story_sees_how_many_results_there_are(embedded_broker: EmbeddedBroker) -> None:
    settings = Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers)
    create_topics(settings)
    producer = Producer({"bootstrap.servers": embedded_broker.bootstrap_servers, "log_level": 0})
    for number in range(5):
        producer.produce(settings.topics.results, b"{}", partition=number % settings.partitions)
    assert producer.flush(30) == 0
    with ResultsSeen(settings) as results:
        results.count()
        assert results.number == 5


@pytest.mark.broker
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks /proc for the demo's children")
def test_ctrl_c_leaves_no_process_and_no_file_behind(tmp_path: Path) -> None:
    running = "raise SystemExit(run_demo(keep=False, as_json=False, seed=1, seconds=30))"
    command = f"from traceweir.streams.cli.demo.commands import run_demo; {running}"
    demo = subprocess.Popen(
        [sys.executable, "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert demo.stdout is not None
    assert b"the worker starts" in demo.stdout.readline()
    (worker,) = map(int, Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text().split())

    demo.send_signal(signal.SIGINT)
    out, err = demo.communicate(timeout=60)

    assert (demo.returncode, err) == (INTERRUPTED, b"")
    assert b"records sent" in out
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
