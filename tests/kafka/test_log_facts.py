"""What a worker asks the cluster before it trusts its local rows and its positions."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import STAGES, application_id, changelog
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.log_facts import log_facts

pytestmark = pytest.mark.kafka


def test_the_ids_of_topics_and_the_age_of_deletions_are_those_of_the_cluster(settings: Settings) -> None:
    name = changelog(application_id(settings.topic_prefix, STAGES))
    found = log_facts(settings, name, [settings.topics.traces])
    assert found.tombstones_s == 86_400.0
    assert len({*found.ids.values()}) == 2
    assert len({each.partition("/")[0] for each in found.ids.values()}) == 1

    admin = AdminClient({"bootstrap.servers": settings.kafka_bootstrap_servers})
    entry = ConfigEntry("delete.retention.ms", "1234", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result()
    # Brokers learn of a changed option a moment later.
    looks = (log_facts(settings, name, []).tombstones_s for _ in range(200))
    assert next(each for each in looks if each != 86_400.0) == 1.234


def test_the_retention_is_that_of_the_inputs_that_have_one(settings: Settings) -> None:
    name, topics = changelog(application_id(settings.topic_prefix, STAGES)), settings.topics
    admin = AdminClient({"bootstrap.servers": settings.kafka_bootstrap_servers})
    for topic, kept_ms in ((topics.traces, "-1"), (topics.invocations, "3600000")):
        entry = ConfigEntry("retention.ms", kept_ms, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result()

    looks = (log_facts(settings, name, [topics.traces, topics.invocations]).retention_s for _ in range(200))
    expected = {topics.invocations: 3_600.0}
    assert expected in looks  # Brokers learn of a changed option a moment later.


def test_a_topic_that_does_not_exist_is_named(settings: Settings) -> None:
    with pytest.raises(KafkaUnreachableError, match="no-such-topic"):
        log_facts(settings, changelog(application_id(settings.topic_prefix, STAGES)), ["no-such-topic"])
