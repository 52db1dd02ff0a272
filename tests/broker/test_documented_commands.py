"""Every command of README and the documents that needs Kafka runs as shown, beside a worker on the embedded broker."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from tests.audit.committed import Committed
from tests.support.command_line import Run
from tests.support.commands import Shown, documented_commands
from tests.support.paths import ROOT
from tests.support.workers import Fleet

from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker

pytestmark = pytest.mark.broker

ENDLESS = {"broker", "worker", "demo", "otlp", "dashboard", "up", "export", "canary"}
"""Commands that run until Ctrl-C; other tests run them."""
APART = {"anchors", "diff", "embedder", "judge", "shadow", "trust"}
"""Commands that need files, models, a provider or transactions that this test does not have; tests/unit/docs parses them."""
OF_CHALLENGERS = {"--challenger", "promote"}
"""Words of commands that need a champion; tests/broker/test_config_challenger.py runs them."""
FIRST = ["topics", "emit"]
"""Commands that run before the worker has joined sessions; all other commands read what the worker wrote."""
EXIT_CODES = {
    "alerts test rule.json --from 30d": 1,
    "alerts test rule.json --results results.jsonl": 1,
    "dlq show 2:17": 1,
    "dlq replay --from letters.jsonl --dry-run": 1,
    "dlq replay --from letters.jsonl": 1,
    "config rollback --app travel": 1,
    "config show --digest 3f2a91": 1,
}
"""Exit codes other than 0: this test has no such dead letter, version, digest or metric, and exports none that a user could mend."""
DEADLINE_S = 120


def ending_commands() -> list[Shown]:
    shown = [
        command for command in documented_commands() if command.needs_kafka and "--follow" not in command.arguments
    ]
    return [
        command
        for command in shown
        if command.arguments[0] not in ENDLESS | APART
        and command.arguments[:2] != ("alerts", "run")
        and OF_CHALLENGERS.isdisjoint(command.arguments)
    ]


def test_the_commands_run_in_the_order_of_their_needs(
    embedded_broker: EmbeddedBroker, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = embedded_broker.bootstrap_servers
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", servers)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(ROOT / "examples" / "eval.json", tmp_path)
    (tmp_path / "rule.json").write_text('{"id": "shop-helpful", "metric": "helpful"}', "utf-8")
    (tmp_path / "labels.csv").write_text("session_id,verdict\nchat-4711,pass\n", "utf-8")

    def check(command: Shown) -> None:
        monkeypatch.chdir(tmp_path / command.folder)
        ended = run(*command.arguments)
        assert ended.code == EXIT_CODES.get(str(command), 0), f"{command}: {ended.err}"
        if command.output is not None:
            Path(command.output).write_text(ended.out, "utf-8")

    commands = ending_commands()
    assert {*FIRST, "dlq", "eval", "evalset"} <= {command.arguments[0] for command in commands}
    for command in commands:
        if command.arguments[0] in FIRST:
            check(command)
    with Fleet(servers, "traceweir.", tmp_path, ROOT / "examples" / "eval.json") as fleet:
        worker = fleet.start("worker")
        with Committed(servers, "traceweir.", "traceweir.assemble-score-gate") as committed:
            deadline = time.monotonic() + DEADLINE_S
            while not any(row.document["session_id"] == "chat-4711" for row in committed.rows["results"]):
                assert not worker.ended, worker.log.read_text()
                assert time.monotonic() < deadline, worker.log.read_text()
                committed.read(0.2)
        for command in commands:
            if command.arguments[0] not in FIRST:
                check(command)
