"""Tests the errors of a cluster that cannot be reached or used: a single message, and no output on stderr."""

from __future__ import annotations

import socket
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import ALL_STAGES, STAGES
from traceweir.streams.worker.kafka import cluster
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.topic_admin import (
    Inspection,
    check_partitions,
    check_topics,
    check_transactions,
    create_topics,
    inspect_topics,
    reach,
)
from traceweir.streams.worker.kafka.topic_problems import expected_topics


@pytest.fixture
def unused_address() -> str:
    """Returns a `host:port` on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    return f"127.0.0.1:{port}"


@pytest.mark.slow
def test_an_unreachable_broker_is_reported_with_address_reason_and_remedy(
    unused_address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KafkaUnreachableError) as caught:
        reach(Settings(kafka_bootstrap_servers=unused_address), timeout_s=0.5)

    message = str(caught.value)
    assert message.startswith(f"no Kafka broker answered at {unused_address} within 0.5 s (")
    assert "Connection refused" in message
    assert "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS" in message
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_server_that_never_answers_is_reported_as_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        settings = Settings(kafka_bootstrap_servers=f"127.0.0.1:{silent_server.getsockname()[1]}")
        with pytest.raises(KafkaUnreachableError, match="no Kafka broker answered"):
            reach(settings, timeout_s=0.5)


def test_an_invalid_certificate_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    settings = Settings(kafka_security_protocol="SSL", kafka_ssl_cafile=tmp_path / "ca.pem")

    with pytest.raises(KafkaUnreachableError, match=r"Kafka's client does not start: .*ssl\.ca\.location"):
        check_topics(settings)


TIMED_OUT = -185
"""librdkafka's code of a request that timed out."""


class Cluster:
    """Answers as confluent-kafka's admin client does: with these brokers, and with this error for configurations."""

    def __init__(self, brokers: Collection[int], error: int = TIMED_OUT) -> None:
        self._brokers, self._error = brokers, error

    def __call__(self, options: object) -> Cluster:
        return self

    def list_topics(self, name: str | None = None, timeout: float = 0) -> object:
        names = {*expected_topics(Settings(), STAGES), *expected_topics(Settings(), ALL_STAGES)}
        topics = {name: SimpleNamespace(partitions=range(4)) for name in names}
        return SimpleNamespace(brokers=dict.fromkeys(self._brokers), topics=topics, cluster_id="apache")

    def describe_configs(self, asked: Sequence[object], request_timeout: float) -> dict[object, Future[object]]:
        answer: Future[object] = Future()
        answer.set_exception(KafkaException(KafkaError(self._error, "Failed while waiting for response")))
        return dict.fromkeys(asked, answer)


def test_a_cluster_that_names_no_broker_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "AdminClient", Cluster([]))
    monkeypatch.setattr(cluster, "REQUEST_TIMEOUT_S", 0.0)
    with pytest.raises(KafkaUnreachableError, match=r"127\.0\.0\.1:9092 answers, and has named no broker for 0 s"):
        check_transactions(Settings())


class Strict(Cluster):
    """A cluster without topics, with a policy that refuses every new one."""

    def list_topics(self, name: str | None = None, timeout: float = 0) -> object:
        return SimpleNamespace(brokers={1: None}, topics={}, cluster_id="apache")

    def create_topics(self, wanted: Sequence[NewTopic], request_timeout: float) -> dict[str, Future[object]]:
        refused: Future[object] = Future()
        refused.set_exception(KafkaException(KafkaError(KafkaError.POLICY_VIOLATION, "segment.bytes is too small")))
        return {each.topic: refused for each in wanted}


def test_a_topic_that_a_policy_of_the_cluster_refuses_is_named_with_its_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster, "AdminClient", Strict([1]))
    creation = create_topics(Settings())
    assert creation.created == ()
    (problem,) = [each for each in creation.wrong if each.startswith("topic 'traceweir.network' ")]
    assert "could not be created: segment.bytes is too small; the cluster has rules for topics" in problem
    assert "refuses 1 copies or one of cleanup.policy=compact, segment.bytes=16777216, " in problem
    assert "Create the topic yourself with 4 partitions, cleanup.policy=compact and what the cluster accepts" in problem


@pytest.mark.parametrize("topic", ["otlp_spans", "traceweir.traces"])
def test_an_input_with_too_few_partitions_is_told_to_get_more_and_never_to_be_deleted(
    monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    monkeypatch.setattr(cluster, "AdminClient", Cluster([1]))

    (problem,) = check_partitions(Settings(partitions=8), [topic])

    assert problem.startswith(f"topic {topic!r} has 4 partitions, expected 8 or more: add partitions with `")
    assert f"--alter --topic {topic} --partitions 8`" in problem
    assert "delete" not in problem


def test_an_input_can_have_more_partitions_and_another_topic_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "AdminClient", Cluster([1]))
    settings = Settings(partitions=3)
    inputs = {"otlp_spans", "otlp_logs", "traceweir.traces", "traceweir.invocations"}

    problems = check_partitions(settings, settings.topics.cleanup_policies(ALL_STAGES))

    wrong = {problem.split("'")[1] for problem in problems}
    assert wrong == settings.topics.cleanup_policies(ALL_STAGES).keys() - inputs
    assert all("has 4 partitions, expected 3: " in problem for problem in problems)


@pytest.mark.parametrize(
    ("expected", "advice"), [(2, ""), (3, "; 4 is no multiple of 3, so that Kafka's default partitioner puts most")]
)
def test_an_input_with_more_partitions_is_named_with_the_number_that_spares_work(
    monkeypatch: pytest.MonkeyPatch, expected: int, advice: str
) -> None:
    monkeypatch.setattr(cluster, "AdminClient", Cluster([1], KafkaError.TOPIC_AUTHORIZATION_FAILED))

    remarks = inspect_topics(Settings(partitions=expected)).remarks

    begin = f"has 4 partitions, more than TRACEWEIR_PARTITIONS={expected}: workers read all of them"
    assert [remark.split("'")[1] for remark in remarks] == ["traceweir.traces", "traceweir.invocations"]
    for remark in remarks:
        assert remark.split("' ", 1)[1].startswith(begin + advice)
        assert ("6 partitions avoid this" in remark) == bool(advice)


def test_a_cluster_that_does_not_return_the_configuration_of_topics_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster, "AdminClient", Cluster([1], TIMED_OUT))
    monkeypatch.setattr(cluster, "METADATA_DELAY_S", 0.0)
    with pytest.raises(
        KafkaUnreachableError, match=r"did not return the configuration of the topics \(.*Failed while waiting"
    ):
        check_topics(Settings())


def test_without_the_right_to_read_settings_the_topics_are_usable_and_one_warning_names_the_right(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster, "AdminClient", Cluster([1], KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert check_topics(Settings()) == []
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    warning = "the settings of topic 'traceweir.alerts' and 16 more are not checked, because"
    assert record.getMessage().startswith(f"{warning} this user lacks the right DescribeConfigs on them; ")
    assert inspect_topics(Settings()) == Inspection((), (record.getMessage(),))
