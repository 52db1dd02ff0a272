"""A topic that somebody deletes while it is asked for counts as one that does not exist."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import ConfigResource

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka import cluster
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.log_facts import log_facts

KEPT = {"cleanup.policy": "delete", "retention.ms": "1000", "delete.retention.ms": "60000"}


class Deleting:
    """A cluster like confluent-kafka's admin client, whose topics in `gone` vanish once something is asked about them."""

    def __init__(self, topics: Sequence[str], gone: Sequence[str]) -> None:
        self._topics, self._gone = {*topics, *gone}, {*gone}

    def __call__(self, options: object) -> Deleting:
        return self

    def list_topics(self, timeout: float) -> object:
        topics = {name: SimpleNamespace(partitions=range(4)) for name in self._topics}
        return SimpleNamespace(brokers={1: None}, topics=topics, cluster_id="apache")

    def describe_configs(self, asked: Sequence[ConfigResource], request_timeout: float) -> dict[ConfigResource, Any]:
        values = {name: SimpleNamespace(value=value) for name, value in KEPT.items()}
        return {resource: self._answer(resource.name, values) for resource in asked}

    def describe_topics(self, asked: TopicCollection, request_timeout: float, **_: object) -> dict[str, Any]:
        found = SimpleNamespace(topic_id="id", authorized_operations=[])
        return {name: self._answer(name, found) for name in asked.topic_names}

    def _answer(self, name: str, value: object) -> Future[object]:
        answer: Future[object] = Future()
        if name in self._gone:
            self._topics.discard(name)
            answer.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        else:
            answer.set_result(value)
        return answer


def test_a_deleted_topic_of_a_shadow_does_not_end_a_worker_that_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "AdminClient", Deleting(["log", "input", "results"], gone=["results.shadow.v2"]))
    facts = log_facts(Settings(), "log", ["input"], writes=lambda topic: topic.startswith("results"))
    assert facts.tombstones_s == 60.0
    assert [*facts.batch_bytes] == ["results"]


def test_a_deleted_input_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "AdminClient", Deleting(["log"], gone=["input"]))
    with pytest.raises(KafkaUnreachableError, match="the topics input do not exist"):
        log_facts(Settings(), "log", ["input"])


def test_ids_and_rights_are_those_of_the_topics_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "AdminClient", Deleting(["kept"], gone=["gone"]))
    assert cluster.Cluster(Settings()).topic_ids(["kept", "gone"]) == {"kept": "id"}
    monkeypatch.setattr(cluster, "AdminClient", Deleting(["kept"], gone=["gone"]))
    assert cluster.Cluster(Settings()).not_writable(["kept", "gone"]) == []


def test_a_topic_that_a_broker_does_not_know_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class New(Deleting):
        """Knows a new topic at the second time."""

        def _answer(self, name: str, value: object) -> Future[object]:
            answer = super()._answer(name, value)
            self._topics |= self._gone
            self._gone = set()
            return answer

    monkeypatch.setattr(cluster, "AdminClient", New([], gone=["new"]))
    assert cluster.Cluster(Settings()).topic_options(["new"]) == {"new": KEPT}
