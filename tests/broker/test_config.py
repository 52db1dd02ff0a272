"""`traceweir config` on the embedded broker: what is pushed is shown, compared, taken back, and never lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.command_line import Ended, Run

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.scoring.configs.log import ConfigLog
from traceweir.streams.worker.kafka.client_options import aiokafka_options
from traceweir.streams.worker.kafka.config_digests import ConfigDigests
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics
from traceweir.streams.worker.runtime.single_record import write_record

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
    which = config("rollback", "--app", "travel")
    assert (which.code, "`traceweir config rollback --to N` puts version N in effect" in which.err) == (1, True)
    rows = [json.loads(line) for line in config("history", "--app", "travel", "--json").out.splitlines()]
    assert [row["version"] for row in rows] == [1, 2, 3, 4]
    assert (rows[0]["pushed_by"], rows[0]["comment"], rows[3]["digest"]) == ("ada", "start", None)

    digest = read_plan(TWO).digest
    assert json.loads(config("show", "--digest", digest[:10]).out) == json.loads(TWO)
    assert "0.5 -> 0.8" in config("diff", "1", f"digest:{digest}", "--app", "travel").out


async def test_the_config_file_of_a_worker_is_shown_by_its_digest(
    config: Config, servers: str, files: tuple[str, str]
) -> None:
    settings = Settings(kafka_bootstrap_servers=servers)
    write, digests = partial(write_record, aiokafka_options(settings)), []
    for plan in (read_plan(ONE), read_plan(None)):
        log = ConfigLog(read_plan)
        await ConfigDigests(log, plan, settings.topics.configs, write).look()
        digests.append(plan.digest)

    shown = await asyncio.to_thread(config, "show", "--digest", digests[0][:12])
    assert json.loads(shown.out) == json.loads(ONE)
    assert shown.err.startswith(f"a config by which a worker scores, digest {digests[0][:12]}, recorded ")
    changed = await asyncio.to_thread(config, "diff", f"digest:{digests[0]}", files[1])
    assert changed.out.splitlines()[0] == "~ criteria.response_match_score: 0.5 -> 0.8"

    default = await asyncio.to_thread(config, "show", "--digest", digests[1])
    assert (default.code, default.out) == (0, "null\n")
    assert default.err.startswith("the default criteria by which a worker scores")
    without = await asyncio.to_thread(config, "diff", f"digest:{digests[1]}", files[1])
    assert (without.code, "the digest of the default criteria, which have no document" in without.err) == (1, True)
    assert (await asyncio.to_thread(config, "history")).out == "no config was pushed for all apps\n"


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
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    producer.produce("traceweir.configs", value=b"{", key=b"*", partition=0)
    producer.produce("traceweir.configs", value=b"{}", key=b"*", partition=1)
    producer.produce("traceweir.configs", value=b"{}", key=b"a b@", partition=0)
    producer.flush()
    ended = config("show")
    assert ended.out.startswith("* version 1, digest ")
    assert ended.err.count("is never in effect") == 3


def test_a_config_that_no_worker_uses_is_said_to_be_out_of_effect(
    config: Config, servers: str, files: tuple[str, str]
) -> None:
    config("push", files[0])
    pushed = json.loads(config("show", "--version", "1", "--json").out)
    forged = pushed | {"selector": "travel", "config": {"criteria": {"of_a_missing_plugin": 1}}}
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    producer.produce("traceweir.configs", key=b"travel", value=json.dumps(forged).encode(), partition=0)
    assert not producer.flush(10)

    shown = config("show")
    assert [line.split(",")[0] for line in shown.out.splitlines()] == ["* version 1", "travel version 1"]
    warnings = shown.err.splitlines()
    for arguments in (["show", "--app", "travel"], ["diff", "current", files[0], "--app", "travel"]):
        warnings.append(config(*arguments).err.splitlines()[0])
    assert len(warnings) == 3
    for warning in warnings:
        assert warning.startswith("warning: workers with the metrics of this machine do not use travel version 1: ")
        assert "criteria.of_a_missing_plugin: there is no such metric" in warning


def test_a_missing_topic_is_named_with_the_way_out(
    run: Run, embedded_broker: EmbeddedBroker, files: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", embedded_broker.bootstrap_servers)
    ended = run("config", "push", files[0])
    assert ended.code == 1
    assert "traceweir.configs" in ended.err


def test_nothing_is_pushed_over_the_config_of_a_newer_traceweir_until_it_is_withdrawn(
    config: Config, files: tuple[str, str], servers: str
) -> None:
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    newer = b'{"envelope": 2, "future": true}'
    for key in (b"version:travel:8", b"travel", b"digest:abc"):
        producer.produce("traceweir.configs", newer, key, 0)
    assert producer.flush(30) == 0

    for arguments in (("push", files[0]), ("push", files[0], "--dry-run"), ("rollback",)):
        refused = config(*arguments, "--app", "travel")
        assert (refused.code, refused.out) == (1, "")
        assert "the latest config for app travel is of a newer version of Traceweir" in refused.err
        assert "envelope: version 2 is newer than 1" in refused.err
    assert "no config is on the topic" in config("show").out

    assert "pushed version 1 for all apps" in config("push", files[0]).out
    withdrawn = json.loads(config("withdraw", "--app", "travel", "--json").out)
    assert withdrawn["pushed"]["version"] == 9
    assert "pushed version 10 for app travel" in config("push", files[0], "--app", "travel").out


def test_forged_versions_and_digests_are_named_and_change_no_history(
    config: Config, files: tuple[str, str], servers: str
) -> None:
    config("push", files[0])
    forged = json.loads(config("show", "--version", "1", "--json").out) | {"config": json.loads(TWO)}
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for key in (b"version:*:7", b"digest:abc"):
        producer.produce("traceweir.configs", json.dumps(forged).encode(), key, 0)
    assert producer.flush(30) == 0
    history = config("history")
    assert len(history.out.splitlines()) == 1
    assert "version: 1 is not the number in the record's key, 7" in history.err
    assert "is not the digest in the record's key, 'abc'" in history.err
    assert json.loads(config("show", "--version", "1").out) == json.loads(ONE)
    assert json.loads(config("show", "--digest", read_plan(ONE).digest).out) == json.loads(ONE)
