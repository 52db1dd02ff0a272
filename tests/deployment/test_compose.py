"""docker-compose.yml and the Dockerfile, as far as they can be tested without Docker: what they run is run, or parsed, here."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr
from tests.support.commands import VARIABLES, parse
from tests.support.kustomize import render
from tests.support.paths import ROOT

from traceweir.streams.base.otel_environment import is_sent
from traceweir.streams.base.setting_groups.group import ENV_PREFIX
from traceweir.streams.base.settings import Settings, load_settings
from traceweir.streams.cli.main import main
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_options import options_at_creation

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = sorted(name for name, service in SERVICES.items() if service["image"].startswith("traceweir:"))
FROM_THE_USER = {"TRACEWEIR_DASHBOARD_TOKEN", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"}
"""Variables without a value in the file: a secret, and what is off unless the user turns it on."""
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")


def on_this_machine(service: Mapping[str, Any]) -> list[str]:
    """The service's command, with what is mounted from the project named by its place here."""
    mounts = [mount.split(":") for mount in service.get("volumes", []) if mount.startswith("./")]
    command = list(service["command"])
    for source, target, *_ in mounts:
        command = [word.replace(target, str(ROOT / source), 1) if word.startswith(target) else word for word in command]
    return command


def use(monkeypatch: pytest.MonkeyPatch, service: str, **changes: str) -> Settings:
    """Set the service's environment, and nothing else of ours."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    for variable, value in (SERVICES[service]["environment"] | changes).items():
        if value is not None:  # one that the user sets
            monkeypatch.setenv(variable, value)
    return load_settings()


def run(arguments: list[str]) -> object:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def test_there_are_kafka_topics_a_worker_the_page_and_a_fleet_and_with_a_profile_a_collector() -> None:
    by_profile = {name: service.get("profiles") for name, service in SERVICES.items()}
    always, otel, monitoring = None, ["otel", "full"], ["monitoring", "full"]
    assert by_profile == {
        **dict.fromkeys(("kafka", "topics", "worker", "alerts", "dashboard", "sample", "fleet"), always),
        **dict.fromkeys(("collector", "collect-topics", "collect"), otel),
        **dict.fromkeys(("canary", "prometheus", "grafana", "jaeger"), monitoring),
    }
    assert OURS == ["alerts", "canary", "collect", "collect-topics", "dashboard", "fleet", "sample", "topics", "worker"]


@pytest.mark.parametrize("name", OURS)
def test_its_command_is_one_that_traceweir_takes(name: str) -> None:
    parse(on_this_machine(SERVICES[name]))


@pytest.mark.parametrize("name", OURS)
def test_its_environment_can_be_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = SERVICES[name]["environment"]
    assert {variable for variable in environment if variable.startswith(ENV_PREFIX)} <= VARIABLES
    settings = use(monkeypatch, name)
    assert {variable for variable, value in environment.items() if not isinstance(value, str)} <= FROM_THE_USER
    assert f"//{settings.kafka_bootstrap_servers}" in SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]


def test_all_agree_on_where_kafka_is_and_on_the_number_of_partitions() -> None:
    agreed = ("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", "TRACEWEIR_PARTITIONS")
    assert len({tuple(SERVICES[name]["environment"][variable] for variable in agreed) for name in OURS}) == 1


def test_topics_are_made_and_the_sample_is_sent_whole(
    embedded_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("topics", "sample"):
        use(monkeypatch, name, TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS=embedded_broker.bootstrap_servers)
        assert run(on_this_machine(SERVICES[name])) == 0, capsys.readouterr().err


def test_the_sample_shows_both_decisions_and_has_no_problem(capsys: pytest.CaptureFixture[str]) -> None:
    sample = on_this_machine(SERVICES["sample"])[-1]
    run(["score", sample, "--embedder", "hashing", "--json"])
    shown = capsys.readouterr()
    assert shown.out.count('"decision":"accepted"') == 2
    assert shown.out.count('"decision":"rejected"') == 2
    assert "document " not in shown.err


def test_records_are_sent_and_read_only_once_the_topics_are_there() -> None:
    for name in ("worker", "sample", "fleet"):
        assert SERVICES[name]["depends_on"] == {"topics": {"condition": "service_completed_successfully"}}
    for name in ("collector", "collect"):
        assert SERVICES[name]["depends_on"] == {"collect-topics": {"condition": "service_completed_successfully"}}
    assert SERVICES["topics"]["depends_on"] == {"kafka": {"condition": "service_healthy"}}
    assert "healthcheck" in SERVICES["kafka"]


def test_prometheus_reads_what_serves_metrics_and_the_rules_that_are_mounted(tmp_path: Path) -> None:
    config = yaml.safe_load((ROOT / "monitoring" / "prometheus.yaml").read_text("utf-8"))
    ((job,), (rules,)) = config["scrape_configs"], config["rule_files"]
    ports = {"worker": "6066", **{name: SERVICES[name]["command"][-1] for name in ("alerts", "canary")}}
    assert job["static_configs"][0]["targets"] == [f"{name}:{port}" for name, port in ports.items()]
    assert all(SERVICES[name]["environment"]["TRACEWEIR_WEB_HOST"] == "0.0.0.0" for name in ports)
    assert f"./monitoring/alerts.yaml:{rules}:ro" in SERVICES["prometheus"]["volumes"]
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    file = tmp_path / "prometheus.yaml"
    file.write_text(yaml.safe_dump(config | {"rule_files": [str(ROOT / "monitoring" / "alerts.yaml")]}))
    ended = subprocess.run(["promtool", "check", "config", str(file)], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_ports_are_open_to_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_every_image_is_named_with_its_version() -> None:
    images = [service["image"] for service in SERVICES.values()] + re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert [image for image in images if not re.search(r":v?\d+(\.\d+)+", image)] == []


def test_every_named_volume_is_declared() -> None:
    mounts = [mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])]
    assert {mount for mount in mounts if not mount.startswith(".")} == COMPOSE["volumes"].keys()
    assert all((ROOT / mount).exists() for mount in mounts if mount.startswith("."))


def test_the_workers_state_is_on_its_volume() -> None:
    for name in ("worker", "collect"):
        targets = [mount.split(":")[1] for mount in SERVICES[name]["volumes"]]
        assert re.findall(r"TRACEWEIR_STATE_DIR=(\S+)", DOCKERFILE) == targets
    assert SERVICES["worker"]["volumes"] != SERVICES["collect"]["volumes"]


def test_every_listener_of_kafka_is_mapped() -> None:
    environment = SERVICES["kafka"]["environment"]
    mapped = {pair.split(":")[0] for pair in environment["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")}
    listeners = {listener.split(":")[0] for listener in environment["KAFKA_LISTENERS"].split(",")}
    advertised = {listener.split(":")[0] for listener in environment["KAFKA_ADVERTISED_LISTENERS"].split(",")}
    assert mapped == listeners == advertised | {environment["KAFKA_CONTROLLER_LISTENER_NAMES"]}
    assert environment["KAFKA_INTER_BROKER_LISTENER_NAME"] in advertised


def test_the_topics_have_no_more_copies_than_kafka_has_nodes_and_transactions_have_as_many() -> None:
    copies = SERVICES["topics"]["environment"]["TRACEWEIR_REPLICATION_FACTOR"]
    kafka = SERVICES["kafka"]["environment"]
    assert copies == str(len(kafka["KAFKA_CONTROLLER_QUORUM_VOTERS"].split(",")))
    assert kafka["KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR"] == copies
    needed = options_at_creation("delete", None, int(copies)).get("min.insync.replicas", "1")
    assert kafka["KAFKA_TRANSACTION_STATE_LOG_MIN_ISR"] == needed


def test_the_image_copies_what_is_there_and_not_ignored() -> None:
    ignore = [line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[:1] not in ("", "#")]
    copied = [
        word for line in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()
    ]
    assert ignore[0] == "*"
    assert [source for source in copied if not (ROOT / source).exists()] == []
    assert [source for source in copied if not any(fnmatch.fnmatch(f"!{source}", rule) for rule in ignore)] == []


def test_the_image_runs_as_somebody_who_is_not_root() -> None:
    last = DOCKERFILE.rpartition("FROM ")[2]
    assert re.findall(r"^USER (\S+)", last, re.MULTILINE) == ["traceweir"]
    assert last.index("USER") < last.index("ENTRYPOINT")


def test_the_dashboard_is_reached_with_a_token_only_and_does_not_start_without_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, "dashboard")
    assert run(["dashboard"]) == 2
    assert "TRACEWEIR_DASHBOARD_TOKEN" in capsys.readouterr().err


def start_dashboard(folder: Path, **token: str) -> tuple[str, str]:
    """Starts the service's entry point with another `traceweir`. Returns the token that it got, and what was printed."""
    instead = folder / "bin" / "traceweir"
    instead.parent.mkdir(exist_ok=True)
    instead.write_text('#!/bin/sh\nprintf "%s %s" "$1" "$TRACEWEIR_DASHBOARD_TOKEN" >"$0.got"\n')
    instead.chmod(0o700)
    service = SERVICES["dashboard"]
    command = [word.replace("$$", "$") for word in (*service["entrypoint"], *service["command"])]  # as Compose does
    path = os.pathsep.join((str(instead.parent), str(Path(sys.executable).parent), os.defpath))
    ended = subprocess.run(
        command, cwd=folder, env={"PATH": path} | token, capture_output=True, text=True, check=True, timeout=60
    )
    started, _, got = instead.with_suffix(".got").read_text().partition(" ")
    assert started == "dashboard"
    return got, ended.stdout + ended.stderr


def test_the_page_of_a_trial_has_a_token_of_its_own_that_no_log_shows(tmp_path: Path) -> None:
    token, printed = start_dashboard(tmp_path)
    assert Settings(dashboard_token=SecretStr(token)).dashboard_token is not None  # it is one that the dashboard takes
    assert token not in printed
    assert "http://127.0.0.1:4180" in printed
    assert "docker compose exec dashboard cat token" in printed
    assert (tmp_path / "token").read_text().strip() == token
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert start_dashboard(tmp_path)[0] == token  # a browser stays logged in after a restart


def test_the_token_of_the_user_is_the_one_of_the_page(tmp_path: Path) -> None:
    token, printed = start_dashboard(tmp_path, TRACEWEIR_DASHBOARD_TOKEN="0123456789abcdef")
    assert (token, printed) == ("0123456789abcdef", "")
    assert not (tmp_path / "token").exists()


def test_the_token_is_where_the_shown_command_looks() -> None:
    (workdir,) = re.findall(r"^WORKDIR (\S+)", DOCKERFILE.rpartition("FROM ")[2], re.MULTILINE)
    assert [mount.split(":")[1] for mount in SERVICES["dashboard"]["volumes"]] == [workdir]


def test_the_image_has_the_packages_of_each_command_that_it_runs_here() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    manifests = [found for overlay in (ROOT / "k8s" / "overlays").iterdir() for found in render(overlay)]
    specs = [each["spec"]["template"]["spec"] for each in manifests if "template" in each.get("spec", {})]
    args = [
        container["args"] for spec in specs for container in spec["containers"] if container["image"][:9] == "traceweir"
    ]
    needed = {words[0] for words in (*args, *(SERVICES[name]["command"] for name in OURS))} & extras.keys()
    (installed,) = re.findall(r'"\.\[([a-z,]+)\$', DOCKERFILE)
    assert needed == {"dashboard"}
    assert needed <= set(installed.split(","))


@pytest.mark.parametrize("profile", ["minimal", "otel", "monitoring", "full"])
def test_compose_itself_takes_the_file_with_each_profile(profile: str) -> None:
    if (compose := shutil.which("docker-compose")) is None:
        pytest.skip("docker-compose is not installed: apt-get install docker-compose")
    command = [compose, "--file", str(ROOT / "docker-compose.yml"), "--profile", profile, "config", "--services"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.split()) == sorted(SERVICES)


def test_the_worker_sends_its_traces_to_jaeger_where_the_file_says() -> None:
    (shown,) = re.findall(
        r"export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=(\S+)", (ROOT / "docker-compose.yml").read_text("utf-8")
    )
    assert shown == "http://jaeger:4318/v1/traces"
    assert "jaeger" in SERVICES
    assert "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" in SERVICES["worker"]["environment"]
    assert is_sent("TRACES", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": shown})
    assert ".[otel" in DOCKERFILE
