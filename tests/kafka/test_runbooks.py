"""The commands of the runbooks run beside a worker on Apache Kafka, and an open transaction is seen in its metrics."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import time

import pytest
from aiokafka import AIOKafkaProducer
from tests.support.commands import blocks
from tests.support.kafka import NEEDS_NODES, kafka_home
from tests.support.metrics import samples
from tests.support.paths import ROOT
from tests.support.workers import Fleet, Worker

pytestmark = pytest.mark.kafka

TOOLS = {"kafka-transactions.sh": "org.apache.kafka.tools.TransactionsCommand"}
"""Classes of the tools that a distribution can have without a script."""
RUN_ELSEWHERE = {"traceweir", "kubectl", "timedatectl"}
"""`test_documented_commands` and `test_k8s` have the commands of the first two; `timedatectl` is a part of systemd."""
PAGES_ELSEWHERE = ("http://127.0.0.1:4180", "http://127.0.0.1:6068", "http://127.0.0.1:6071")
"""The dashboard, an exporter and the alerts, which do not run here; `test_dashboard`, `test_export_webhook` and the unit
tests of alerts ask for their pages."""
AGE = ("transactions_open_age_seconds", "traces")
DEADLINE_S = 60


def runbook_commands() -> list[str]:
    pages = [(ROOT / "docs" / name).read_text("utf-8") for name in ("alerts.md", "operations.md")]
    lines = [line for page in pages for block in blocks(page, "bash") for line in block.splitlines()]
    found = dict.fromkeys(line for line in lines if line and not line.startswith("#"))
    return [
        line
        for line in found
        if shlex.split(line)[0] not in RUN_ELSEWHERE and not any(page in line for page in PAGES_ELSEWHERE)
    ]


def test_each_command_of_the_runbooks_runs(fleet: Fleet, kafka: str, prefix: str) -> None:
    home = kafka_home() or pytest.skip(NEEDS_NODES)
    if shutil.which("curl") is None:
        pytest.skip("needs curl: apt-get install curl")
    worker = fleet.start("one")
    worker.until_ready()
    address = re.findall(r"health: (http://\S+)/healthz", worker.log.read_text())[-1]
    commands = runbook_commands()
    assert {shlex.split(each)[0] for each in commands} == {
        "curl",
        "df",
        "kafka-configs.sh",
        "kafka-topics.sh",
        "kafka-transactions.sh",
    }
    for command in commands:
        words = shlex.split(command.replace("$TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", kafka))
        if (script := words[0]).startswith("kafka-"):
            known = home / "bin" / script
            words[:1] = [str(known)] if known.exists() else [str(home / "bin" / "kafka-run-class.sh"), TOOLS[script]]
        words = [word.replace("http://127.0.0.1:6066", address) for word in words]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        if words[0].endswith("kafka-configs.sh") and "ClassNotFoundException" in ended.stderr:
            # A distribution that was shortened for tests has the script, and not its class.
            continue
        assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
        if words[0] == "curl":
            assert ended.stdout.strip(), command
        if "list" in words:
            assert prefix.rstrip(".") in ended.stdout  # the transactional ids of the worker


async def test_a_transaction_that_stays_open_has_a_growing_age_until_it_ends(
    fleet: Fleet, kafka: str, prefix: str
) -> None:
    worker = fleet.start("one")
    worker.until_ready()
    async with AIOKafkaProducer(bootstrap_servers=kafka, transactional_id=f"{prefix}agent") as agent:
        await agent.begin_transaction()
        await agent.send_and_wait(f"{prefix}traces", b"{}", partition=0)
        assert until_age(worker, prefix, above=1.0) > 1.0
        await agent.commit_transaction()
        assert until_age(worker, prefix, above=-1.0, below=0.1) == 0.0


def until_age(worker: Worker, prefix: str, above: float, below: float = 1e9) -> float:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        _, body = worker.get("/metrics")
        age = samples(body).get((AGE[0], f"{prefix}{AGE[1]}"), -1.0)
        if above < age < below:
            return age
        assert time.monotonic() < deadline, f"the age is {age}"
        time.sleep(0.05)
