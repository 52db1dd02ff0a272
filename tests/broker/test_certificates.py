"""`traceweir trust certify` and `withdraw` on the embedded broker: a certificate is a part of the config in effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.command_line import Run
from tests.unit.streams.cli.test_certificates import planted
from tests.unit.streams.cli.test_trust import written

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher"), pytest.mark.xdist_group("config")]

CONFIG = {"criteria": {"safety_v1": 0.5}, "gate": {"required": ["safety_v1"], "require_certified": True}}
TRAVEL = ("--app", "travel")


def test_a_certificate_is_pushed_listed_and_withdrawn(
    embedded_broker: EmbeddedBroker, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = embedded_broker.bootstrap_servers
    create_topics(Settings(kafka_bootstrap_servers=servers))
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", servers)
    monkeypatch.chdir(tmp_path)
    files = written(*planted(0.97, 0.93))
    certify = ("trust", "certify", "--criterion", "helpful", *files, *TRAVEL)

    nothing = run(*certify, "--push")
    assert nothing.code == 1
    assert "no config is in effect for app travel" in nothing.err

    Path("eval.json").write_text(json.dumps(CONFIG))
    assert run("config", "push", "eval.json", *TRAVEL).code == 0
    assert "would push version 2 for app travel" in run(*certify, "--dry-run").out
    assert json.loads(run("config", "show", *TRAVEL).out) == CONFIG

    ended = "the certificate of helpful by model-a: ended: the config has no such criterion"
    assert f"note: {ended}" in run(*certify, "--dry-run").err
    pushed = run(*certify, "--push", "--json")
    assert (pushed.code, json.loads(pushed.out)["pushed"]["version"]) == (0, 2)
    assert json.loads(pushed.out)["notes"] == [ended]
    again = run(*certify, "--push")
    assert again.code == 0
    certificates = json.loads(run("config", "show", *TRAVEL).out)["gate"]["certificates"]
    assert [each["criterion"] for each in certificates] == ["helpful"]

    (row,) = run("trust", "certificates", "--json").out.splitlines()
    assert json.loads(row)["standing"] == "ended: the config has no such criterion"

    unknown = run("trust", "withdraw", "polite", *TRAVEL)
    assert unknown.code == 1
    assert "polite: the config has no certificate of it; it has: helpful" in unknown.err
    assert run("trust", "withdraw", "helpful", *TRAVEL).code == 0
    assert json.loads(run("config", "show", *TRAVEL).out) == CONFIG
