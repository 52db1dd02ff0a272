"""Tests the commands that need a Kafka broker when the broker or its topics are not as expected."""

from __future__ import annotations

import socket

import orjson
import pytest
from tests.support.cli_inputs import EVENT, WriteInput
from tests.support.command_line import Run

from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("command", ["worker", "emit {file}", "topics check", "topics create"])
def test_without_a_broker_the_message_names_the_address_and_the_remedy(
    command: str, run: Run, write_input: WriteInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traceweir.streams.worker.kafka.cluster.REQUEST_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", f"127.0.0.1:{silent_server.getsockname()[1]}")
        ended = run(*command.format(file=write_input("events.jsonl", EVENT)).split())

    assert (ended.code, ended.out) == (1, "")
    (message,) = ended.err.splitlines()
    assert message.startswith("no Kafka broker answered at 127.0.0.1:")
    assert "`docker compose up`" in message


def test_topics_check_reports_a_missing_topic_and_topics_create_creates_it(
    run: Run, embedded_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", embedded_broker.bootstrap_servers)

    before = run("topics", "check")
    create = run("topics", "create", "--json")
    after = run("topics", "check")

    assert (before.code, before.out) == (1, "")
    assert "topic 'traceweir.traces' does not exist: run `traceweir topics create`" in before.err.splitlines()
    assert (create.code, create.err) == (0, "")
    assert orjson.loads(create.out).keys() == {"created", "existing", "wrong"}
    assert "traceweir.traces" in orjson.loads(create.out)["created"]
    assert (after.code, after.out, after.err) == (0, "all 17 topics are as they should be\n", "")


@pytest.mark.parametrize("command", ["worker", "topics check", "topics create"])
def test_a_wrong_partition_count_is_reported_for_every_topic(
    command: str, run: Run, embedded_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", embedded_broker.bootstrap_servers)
    run("topics", "create")
    monkeypatch.setenv("TRACEWEIR_PARTITIONS", "8")

    ended = run(*command.split())

    assert ended.code == 1
    assert len(ended.err.splitlines()) == 17
    assert all(
        "has 4 partitions, expected 8" in line and "TRACEWEIR_PARTITIONS=4" in line for line in ended.err.splitlines()
    )
