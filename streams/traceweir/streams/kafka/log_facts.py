"""Asks the cluster what local state and stored positions depend on: the ids of topics, and how long deletions are kept."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import cache
from typing import NamedTuple

from traceweir.streams.kafka.cluster import Cluster
from traceweir.streams.kafka.errors import KafkaUnreachableError
from traceweir.streams.settings import Settings

log = logging.getLogger(__name__)

WITHIN_S = 30.0
"""Time limit in seconds for each answer. A cluster that loses a node can need that long."""
KAFKAS_RETENTION_S = 86_400.0
"""Default of `delete.retention.ms`, in seconds."""


class LogFacts(NamedTuple):
    """What the cluster says of the topics of an application."""

    ids: Mapping[str, str]
    """By topic, an id `cluster/topic` that distinguishes it from every other topic of the same name, on this or another
    cluster. A topic is missing if its broker has no topic ids (before Kafka 2.8)."""
    cluster: str
    """An id of the cluster."""
    tombstones_s: float
    """How long the changelog keeps a deletion at least, in seconds; infinite on an embedded broker, or if not asked for."""


def log_facts(settings: Settings, changelog: str, others: Collection[str], *, options: bool = True) -> LogFacts:
    """Asks for the ids of the changelog and of other topics, and for `delete.retention.ms` of the changelog.

    An embedded broker has no topic ids, but its topics live exactly as long as the broker. Its cluster id is a memory
    address, which a later broker can reuse; the id therefore also contains the broker's port, because a reuse of both
    together is rare.

    Args:
        settings: Where Kafka is.
        changelog: The changelog topic.
        others: The other topics.
        options: Whether to ask for the option.

    Raises:
        KafkaUnreachableError: no broker answered in time, or a topic does not exist.
    """
    topics = [changelog, *others]
    cluster = Cluster(settings, WITHIN_S)
    metadata = cluster.metadata()
    if cluster.embedded:
        (node,) = metadata.brokers.values()
        return LogFacts(dict.fromkeys(topics, f"{metadata.cluster_id}:{node.port}"), metadata.cluster_id, float("inf"))
    if missing := [topic for topic in topics if topic not in metadata.topics]:
        raise KafkaUnreachableError(
            f"the topics {', '.join(missing)} do not exist at {settings.kafka_bootstrap_servers}, or this user may not "
            "describe them. Without their ids the worker cannot trust its local rows and its positions: run `traceweir "
            "topics check`, and start the worker again"
        )
    ids = {topic: f"{metadata.cluster_id}/{found}" for topic, found in cluster.topic_ids(topics).items()}
    return LogFacts(ids, metadata.cluster_id, _tombstones_s(cluster, changelog) if options else float("inf"))


def _tombstones_s(cluster: Cluster, changelog: str) -> float:
    found = cluster.topic_options([changelog]).get(changelog)
    if found is None:
        _warn(changelog)
        return KAFKAS_RETENTION_S
    return float(found["delete.retention.ms"]) / 1000


@cache
def _warn(changelog: str) -> None:
    """Says once that the option cannot be read."""
    log.warning(
        "this user lacks the right DescribeConfigs on %s, so its delete.retention.ms is not known; the worker takes "
        "Kafka's default of 24 h: grant the right, or make sure that the option is not shorter",
        changelog,
    )
