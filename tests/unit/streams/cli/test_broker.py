"""Tests `traceweir broker`, which runs the embedded broker."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient


@pytest.mark.slow
def test_the_broker_prints_its_address_and_says_that_it_is_not_kafka(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "traceweir.streams.cli.main", "broker"]
    with (tmp_path / "err").open("wb") as err, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err) as process:
        try:
            assert process.stdout is not None
            name, _, servers = process.stdout.readline().decode().strip().partition("=")
            topics = AdminClient({"bootstrap.servers": servers, "log_level": 0}).list_topics(timeout=10).topics
        finally:
            process.send_signal(signal.SIGINT)
        rest = process.stdout.read()

    assert name == "export TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"
    assert {"traceweir.traces", "traceweir.results"} <= topics.keys()
    assert (process.returncode, rest) == (130, b"")
    assert "not Apache Kafka" in (tmp_path / "err").read_text()
    assert "Traceback" not in (tmp_path / "err").read_text()
