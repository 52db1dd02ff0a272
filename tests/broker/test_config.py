"""`traceweir config` on the embedded broker: what is pushed is shown, compared, taken back, and never lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.command_line import Ended, Run

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.kafka.topic_admin import create_topics
from traceweir.streams.settings import Settings

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher"), pytest.mark.xdist_group("config")]

ONE = '{"criteria": {"response_match_score": 0.5}}'
TWO = '{"criteria": {"response_match_score": 0.8}}'

Config = Callable[..., Ended]


@pytest.fixture
def servers(embedded_broker: EmbeddedBroker) -> str:
    create_topics(Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers))
    return embedded_broker.bootstrap_servers


@pytest.fixture
def config(servers: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Returns a function that runs `traceweir config`, on that broker."""
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", servers)
    return lambda *arguments: run("config", *arguments)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    for name, text in (("one.json", ONE), ("two.json", TWO)):
        (tmp_path / name).write_text(text)
    return str(tmp_path / "one.json"), str(tmp_path / "two.json")


def test_a_config_is_pushed_changed_rolled_back_and_withdrawn(config: Config, files: tuple[str, str]) -> None:
    one, two = files
    assert config("show").out == "no config is on the topic; the workers' config files are in effect\n"

    first = config("push", one, "--app", "travel", "--by", "ada", "--comment", "start")
    assert (first.code, first.err) == (0, "")
    assert first.out.splitlines() == [
        "no config was in effect for app travel on the topic",
        f"pushed version 1 for app travel, digest {read_plan(ONE).digest}",
    ]

    again = config("push", one, "--app", "travel")
    assert again.out == "nothing to push: the config is in effect for app travel already\n"

    assert "would push version 2" in config("push", two, "--app", "travel", "--dry-run").out
    second = config("push", two, "--app", "travel")
    assert second.out.splitlines()[0] == "~ criteria.response_match_score: 0.5 -> 0.8"

    back = json.loads(config("rollback", "--app", "travel", "--json").out)
    assert (back["pushed"]["version"], back["pushed"]["comment"]) == (3, "rollback to version 1")
    assert json.loads(config("show", "--app", "travel").out) == json.loads(ONE)

    assert config("withdraw", "--app", "travel").code == 0
    assert config("show", "--app", "travel").code == 1
    rows = [json.loads(line) for line in config("history", "--app", "travel", "--json").out.splitlines()]
    assert [row["version"] for row in rows] == [1, 2, 3, 4]
    assert (rows[0]["pushed_by"], rows[0]["comment"], rows[3]["digest"]) == ("ada", "start", None)

    digest = read_plan(TWO).digest
    assert json.loads(config("show", "--digest", digest[:10]).out) == json.loads(TWO)
    assert "0.5 -> 0.8" in config("diff", "1", f"digest:{digest}", "--app", "travel").out


def test_what_does_not_exist_is_named_with_what_does(config: Config, files: tuple[str, str]) -> None:
    config("push", files[0])
    for arguments, said in (
        (["show", "--version", "9"], "there is no version 9 for all apps; the versions are: 1"),
        (["show", "--app", "no"], "no config is in effect for app no; there are configs for: *"),
        (["show", "--digest", "zz"], "no digest starts with 'zz'"),
        (["rollback"], "there is no version before version 1"),
        (["rollback", "--to", "7"], "there is no version 7"),
        (["withdraw", "--app", "no"], "no config is in effect for app no"),
        (["diff", "current", "12"], "there is no version 12"),
    ):
        ended = config(*arguments)
        assert (ended.code, ended.out) == (1, "")
        assert said in ended.err


def test_records_of_another_program_are_named_and_change_nothing(
    config: Config, files: tuple[str, str], servers: str
) -> None:
    config("push", files[0])
    producer = Producer({"bootstrap.servers": servers})
    producer.produce("traceweir.configs", value=b"{", key=b"*", partition=0)
    producer.produce("traceweir.configs", value=b"{}", key=b"*", partition=1)
    producer.produce("traceweir.configs", value=b"{}", key=b"a b@", partition=0)
    producer.flush()
    ended = config("show")
    assert ended.out.startswith("* version 1, digest ")
    assert ended.err.count("is never in effect") == 3


def test_a_missing_topic_is_named_with_the_way_out(
    run: Run, embedded_broker: EmbeddedBroker, files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", embedded_broker.bootstrap_servers)
    ended = run("config", "push", files[0])
    assert ended.code == 1
    assert "traceweir.configs" in ended.err


def test_nothing_is_pushed_over_the_versions_of_a_newer_traceweir(
    config: Config, files: tuple[str, str], servers: str
) -> None:
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    producer.produce("traceweir.configs", b'{"envelope": 2, "future": true}', b"version:travel:8", 0)
    assert producer.flush(30) == 0
    pushed = config("push", files[0], "--app", "travel")
    assert pushed.code == 1
    assert "nothing is written, because the topic has newer records: envelope: version 2 is newer than 1" in pushed.err
    assert "no config is on the topic" in config("show").out
