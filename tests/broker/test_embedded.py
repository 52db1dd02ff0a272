"""The embedded broker stores records, creates topics, has a recognizable cluster id, and ends with its block."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import STAGES
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS, EmbeddedBroker, is_embedded
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.topic_admin import check_topics, create_topics, reach
from traceweir.streams.worker.kafka.topic_problems import expected_topics
from traceweir.streams.worker.run import run_worker
from traceweir.streams.worker.runtime.health import PortTakenError


@pytest.fixture
def settings(embedded_broker: EmbeddedBroker) -> Settings:
    return Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers)


def test_a_record_is_read_as_it_was_sent(embedded_broker: EmbeddedBroker) -> None:
    client = {"bootstrap.servers": embedded_broker.bootstrap_servers}
    producer = Producer(client)
    producer.produce("t", key=b"k", value=b"v", partition=2, headers=[("h", b"1")], timestamp=1_700_000_000_000)
    assert producer.flush(10) == 0

    consumer = Consumer(client | {"group.id": "g"})
    consumer.assign([TopicPartition("t", 2, 0)])
    record = consumer.poll(10)
    consumer.close()

    assert record is not None
    assert record.error() is None
    assert (record.key(), record.value(), record.headers()) == (b"k", b"v", [("h", b"1")])
    assert record.timestamp()[1] == 1_700_000_000_000


def test_the_partition_of_a_key_equals_librdkafkas_murmur2(embedded_broker: EmbeddedBroker) -> None:
    keys = [b"session-%d" % number * (number % 5 + 1) for number in range(200)]
    placed: dict[bytes, int] = {}
    producer = Producer(
        {"bootstrap.servers": embedded_broker.bootstrap_servers, "log_level": 0, "partitioner": "murmur2_random"}
    )
    for key in keys:
        producer.produce("t", key=key, on_delivery=lambda _, record: placed.update({record.key(): record.partition()}))
    assert producer.flush(10) == 0

    assert placed == {key: partition_of(key, PARTITIONS) for key in keys}


def test_the_cluster_id_identifies_an_embedded_broker(settings: Settings) -> None:
    assert is_embedded(reach(settings))


def test_topics_are_created_once_and_then_left_unchanged(settings: Settings) -> None:
    names = tuple(expected_topics(settings, STAGES))

    assert check_topics(settings) == [f"topic {name!r} does not exist: run `traceweir topics create`" for name in names]

    first = create_topics(settings)
    assert (first.created, first.existing, first.wrong) == (names, (), ())
    assert check_topics(settings) == []

    second = create_topics(settings)
    assert (second.created, second.existing, second.wrong) == ((), names, ())


def test_a_wrong_partition_count_is_reported_for_every_topic(settings: Settings) -> None:
    wanted = settings.model_copy(update={"partitions": 8})

    creation = create_topics(wanted)

    assert (creation.created, creation.existing) == ((), ())
    assert len(creation.wrong) == len(expected_topics(wanted, STAGES))
    assert all("has 4 partitions, expected 8" in each and "TRACEWEIR_PARTITIONS=4" in each for each in creation.wrong)


def test_the_broker_is_unreachable_after_its_with_block() -> None:
    with EmbeddedBroker() as broker:
        settings = Settings(kafka_bootstrap_servers=broker.bootstrap_servers)
        reach(settings)

    with pytest.raises(KafkaUnreachableError):
        reach(settings, timeout_s=0.5)


def test_two_embedded_brokers_share_no_topics(settings: Settings) -> None:
    create_topics(settings)
    with EmbeddedBroker() as other:
        there = Settings(kafka_bootstrap_servers=other.bootstrap_servers)
        assert len(check_topics(there)) == len(expected_topics(there, STAGES))


def test_the_broker_writes_nothing_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with EmbeddedBroker():
        pass
    assert capfd.readouterr() == ("", "")


def test_a_worker_with_exactly_once_does_not_start_on_an_embedded_broker(settings: Settings) -> None:
    with pytest.raises(NotReadyError, match="exactly_once, but the embedded broker has no transactions"):
        run_worker(settings.model_copy(update={"delivery": "exactly_once"}), read_plan({}), STAGES)


@pytest.mark.parametrize(
    ("document", "config", "logged"),
    [
        (None, None, ["no config, so the default criteria are on: tool_call_count_v1; "]),
        ({}, Path("eval.json"), ["eval.json has no criteria, so a session without traces gets no score; "]),
        (
            {"criteria": {"response_match_score": 0.8}},
            None,
            [
                "criteria of the config: response_match_score >= 0.8",
                "every criterion of the config needs a reference, so that a session without one has no verdict: ",
                "measured only where a reference says what was expected: response_match_score; ",
            ],
        ),
    ],
)
def test_a_worker_says_at_start_which_criteria_are_on(
    document: Any, config: Path | None, logged: list[str], settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        # The worker ends at the taken port, after the checks and before it uses the embedded broker.
        changes = {"web_host": "127.0.0.1", "web_port": taken.getsockname()[1]}
        for stages, expected in ((STAGES, logged), (("gate",), [])):
            caplog.clear()
            with pytest.raises(PortTakenError):
                run_worker(settings.model_copy(update=changes), read_plan(document), stages, config=config)
            lines = [record.getMessage() for record in caplog.records if record.name == "traceweir.streams.worker"]
            assert [line[: len(start)] for line, start in zip(lines, expected, strict=True)] == expected
