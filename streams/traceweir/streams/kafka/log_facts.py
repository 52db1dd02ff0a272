"""Asks the cluster what local state and stored positions depend on: the ids of topics, and how long deletions are kept."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import cache
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from traceweir.streams.kafka.client_options import confluent_options
from traceweir.streams.kafka.embedded_broker import is_embedded
from traceweir.streams.kafka.errors import KafkaUnreachableError
from traceweir.streams.settings import Settings

log = logging.getLogger(__name__)

WITHIN_S = 30.0
"""Time limit in seconds for each answer. A cluster that loses a node can need that long."""
KAFKAS_RETENTION_S = 86_400.0
"""Default of `delete.retention.ms`, in seconds."""
_REFUSALS = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)


class LogFacts(NamedTuple):
    """What the cluster says of the topics of an application."""

    ids: Mapping[str, str]
    """By topic, an id that distinguishes it from every other topic of the same name, on this or another cluster."""
    tombstones_s: float
    """How long the changelog keeps a deletion at least, in seconds; infinite on an embedded broker."""


def log_facts(settings: Settings, changelog: str, others: Collection[str]) -> LogFacts:
    """Asks for the ids of the changelog and of other topics, and for `delete.retention.ms` of the changelog.

    An embedded broker has no topic ids, but its topics live exactly as long as the broker. Its cluster id is a memory
    address, which a later broker can reuse; the id therefore also contains the broker's port, because a reuse of both
    together is rare.

    Raises:
        KafkaUnreachableError: no broker answered in time, or a topic does not exist.
    """
    topics = [changelog, *others]
    client = AdminClient(confluent_options(settings) | {"log_level": 0, "error_cb": lambda _: None})
    try:
        cluster = client.list_topics(timeout=WITHIN_S)
        if is_embedded(cluster.cluster_id):
            (node,) = cluster.brokers.values()
            return LogFacts(dict.fromkeys(topics, f"{cluster.cluster_id}:{node.port}"), float("inf"))
        answers = client.describe_topics(TopicCollection(topics), request_timeout=WITHIN_S)
        ids = {topic: f"{cluster.cluster_id}/{answers[topic].result().topic_id}" for topic in topics}
        return LogFacts(ids, _tombstones_s(client, changelog))
    except KafkaException as error:
        raise KafkaUnreachableError(
            f"no Kafka broker at {settings.kafka_bootstrap_servers} returned the ids of the topics {', '.join(topics)} "
            f"({error.args[0].str()}). Without them the worker cannot trust its local rows and its positions: check that "
            "the broker runs, that `traceweir topics check` finds the topics, and that the worker's user has Describe on "
            "them, and start the worker again"
        ) from error


def _tombstones_s(client: AdminClient, changelog: str) -> float:
    asked = ConfigResource(ResourceType.TOPIC, changelog)
    try:
        found = client.describe_configs([asked], request_timeout=WITHIN_S)[asked].result()
    except KafkaException as error:
        if error.args[0].code() not in _REFUSALS:
            raise
        _warn(changelog)
        return KAFKAS_RETENTION_S
    return float(found["delete.retention.ms"].value) / 1000


@cache
def _warn(changelog: str) -> None:
    """Says once that the option cannot be read."""
    log.warning(
        "this user lacks the right DescribeConfigs on %s, so its delete.retention.ms is not known; the worker takes "
        "Kafka's default of 24 h: grant the right, or make sure that the option is not shorter",
        changelog,
    )
