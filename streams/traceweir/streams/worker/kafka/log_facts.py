"""Asks the cluster what local state and stored positions depend on: the ids of topics, and how long records are kept."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import NamedTuple

from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.cluster import Cluster
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.topic_options import batch_problem, largest_batch

log = logging.getLogger(__name__)

WITHIN_S = 30.0
"""Time limit in seconds for each answer. A cluster that loses a node can need that long."""
KAFKAS_RETENTION_S = 86_400.0
"""Default of `delete.retention.ms`, in seconds."""
USABLE_SHARE = 0.9
"""Share of `delete.retention.ms` for which a copy of a compacted topic can be used without reading on."""
_SET_BACK_S = 60.0
"""Time in seconds that a copy can lie in the future; beyond it, a clock has been changed."""


class LogFacts(NamedTuple):
    """What the cluster says of the topics of an application."""

    ids: Mapping[str, str]
    """By topic, an id `cluster/topic` that distinguishes it from every other topic of the same name, on this or another
    cluster. A topic is missing if its broker has no topic ids (before Kafka 2.8)."""
    cluster: str
    """An id of the cluster."""
    tombstones_s: float
    """How long the changelog keeps a deletion at least, in seconds; infinite on an embedded broker."""
    retention_s: Mapping[str, float] = {}
    """By input, how long it keeps a record, in seconds. A topic is missing if it keeps records without a limit of time, or
    if the user may not read the option."""
    batch_bytes: Mapping[str, int] = {}
    """The largest batch in bytes, by topic that is written; a topic is missing if the user may not read its options."""


class SmallChangelogError(WorkerError):
    """The changelog accepts no batch of the largest size; the message contains the way out."""


def log_facts(
    settings: Settings,
    changelog: str,
    inputs: Collection[str],
    others: Collection[str] = (),
    *,
    writes: Callable[[str], bool] | None = None,
) -> LogFacts:
    """Asks for the ids of the topics, `delete.retention.ms` of the changelog, and `retention.ms` of the inputs.

    Args:
        settings: Where Kafka is.
        changelog: The changelog topic.
        inputs: The topics that the stages read.
        others: Further topics, of which only the ids are asked for.
        writes: Returns whether a topic is written, beside the changelog. The largest batches of these topics are asked
            for; None: of no topic.

    Raises:
        SmallChangelogError: the changelog does not accept every row.
        KafkaUnreachableError: no broker answered in time, or a topic does not exist.
    """
    cluster = Cluster(settings, WITHIN_S)
    ids, cluster_id = log_ids(cluster, [changelog, *inputs, *others])
    if cluster.embedded:
        return LogFacts(ids, cluster_id, float("inf"))
    written = [] if writes is None else [topic for topic in cluster.partition_counts() if writes(topic)]
    options = cluster.topic_options([*dict.fromkeys([changelog, *inputs, *written])])
    _require(topic for topic in (changelog, *inputs) if topic not in options.keys() | cluster.unreadable)
    if writes is not None:
        problem = batch_problem(changelog, options.get(changelog, {}), settings.kafka_bootstrap_servers)
        # A row that does not fit cannot be left out.
        if problem is not None:
            raise SmallChangelogError(f"{problem}; then start the worker again")
    batch_bytes = {topic: largest_batch(options[topic]) for topic in written if topic in options}
    if unknown := sorted({*inputs} - options.keys()):
        _warn_of_inputs(", ".join(unknown))
    kept = {topic: _retention_s(options[topic]) for topic in inputs if topic in options}
    retention_s = {topic: kept_s for topic, kept_s in kept.items() if kept_s is not None}
    deletions_s = _tombstones_s(changelog, options.get(changelog))
    return LogFacts(ids, cluster_id, deletions_s, retention_s, batch_bytes)


def log_ids(cluster: Cluster, topics: Collection[str]) -> tuple[Mapping[str, str], str]:
    """Returns the ids of topics as `LogFacts.ids` has them, and the id of the cluster.

    An embedded broker has no topic ids, but its topics live exactly as long as the broker. Its cluster id is a memory
    address, which a later broker can reuse; the id therefore also contains the broker's port, because a reuse of both
    together is rare.

    Raises:
        KafkaUnreachableError: no broker answered in time, or a topic does not exist.
    """
    metadata = cluster.metadata()
    if cluster.embedded:
        (node,) = metadata.brokers.values()
        return dict.fromkeys(topics, f"{metadata.cluster_id}:{node.port}"), metadata.cluster_id
    _require(topic for topic in topics if topic not in metadata.topics)
    found = cluster.topic_ids(topics, metadata)
    return {topic: f"{metadata.cluster_id}/{each}" for topic, each in found.items()}, metadata.cluster_id


def _require(missing: Iterable[str]) -> None:
    if names := ", ".join(missing):
        raise KafkaUnreachableError(
            f"the topics {names} do not exist, or this user may not describe them. Without their ids "
            "nobody can trust local rows and stored positions: run `traceweir topics check`, and start the worker again"
        )


def tombstones_s(cluster: Cluster, topic: str) -> float:
    """Returns how long an existing topic keeps a deletion at least, in seconds; infinite on an embedded broker.

    Raises:
        KafkaUnreachableError: no broker answered in time.
    """
    if cluster.embedded:
        return float("inf")
    return _tombstones_s(topic, cluster.topic_options([topic]).get(topic))


def _tombstones_s(topic: str, options: Mapping[str, str] | None) -> float:
    if options is None:
        _warn_of_deletions(topic)
        return KAFKAS_RETENTION_S
    return float(options["delete.retention.ms"]) / 1000


def _retention_s(options: Mapping[str, str]) -> float | None:
    kept_ms = int(options["retention.ms"])
    return kept_ms / 1000 if "delete" in options["cleanup.policy"] and kept_ms >= 0 else None


def can_lack_deletions(age_s: float, kept_s: float) -> bool:
    """Returns whether deletions that a copy of a compacted topic has not read can have left the topic.

    >>> can_lack_deletions(age_s=22 * 3600, kept_s=24 * 3600)
    True

    Args:
        age_s: Seconds since no record of the topic was missing in the copy.
        kept_s: How long the topic keeps deletions at least, in seconds.
    """
    return age_s > kept_s * USABLE_SHARE or age_s < -_SET_BACK_S


@cache
def _warn_of_inputs(topics: str) -> None:
    """Says once that the option cannot be read."""
    log.warning(
        "this user lacks the right DescribeConfigs on %s, so its retention.ms is not known: nobody is warned before Kafka "
        "deletes records that were not read (the metric traceweir_topic_retention_seconds is missing)",
        topics,
    )


@cache
def _warn_of_deletions(topic: str) -> None:
    """Says once that the option cannot be read."""
    log.warning(
        "this user lacks the right DescribeConfigs on %s, so its delete.retention.ms is not known; Kafka's default of 24 h "
        "is taken: grant the right, or make sure that the option is not shorter",
        topic,
    )
