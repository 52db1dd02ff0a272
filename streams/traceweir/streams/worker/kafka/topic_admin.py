"""Creates topics on a cluster, and reports problems of existing topics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.record_limits import SMALLEST_BATCH_BYTES
from traceweir.streams.base.topics import STAGES, CleanupPolicy, StageName
from traceweir.streams.worker.kafka.cluster import Cluster
from traceweir.streams.worker.kafka.errors import TopicsRefusedError
from traceweir.streams.worker.kafka.topic_options import batch_problem, batch_weakness, weaknesses
from traceweir.streams.worker.kafka.topic_problems import (
    added_partitions,
    expected_topics,
    partition_problem,
    partition_problems,
    topic_problems,
)

log = logging.getLogger(__name__)
_TRANSACTIONS = "__transaction_state"


@dataclass(frozen=True)
class Creation:
    """Result of `create_topics`; every expected topic is in exactly one of the three fields."""

    created: tuple[str, ...]
    """Names of the topics that were created."""
    existing: tuple[str, ...]
    """Names of the topics that existed and are correct."""
    wrong: tuple[str, ...]
    """A sentence for each topic that exists and is wrong (it is not changed), or that could not be created."""


@dataclass(frozen=True)
class Inspection:
    """Result of `inspect_topics`."""

    problems: tuple[str, ...]
    """A sentence for each expected topic that is missing or wrong: found value, expected value, and the way out."""
    warnings: tuple[str, ...]
    """A sentence for each way in which a topic keeps its records less safely, or more of them, than a new topic."""
    remarks: tuple[str, ...] = ()
    """A sentence for each input with more partitions than the other topics."""


def create_topics(settings: Settings, stages: Collection[StageName] = STAGES) -> Creation:
    """Creates all missing topics, and the changelog topic of the application that runs `stages`.

    Existing topics are never changed: another partition count would change the home of sessions, and another cleanup
    policy could delete records. Stages that run as separate applications have one changelog each, so call this function
    once for each application.

    Raises:
        KafkaUnreachableError: no broker answered within 10 s.
    """
    cluster = Cluster(settings)
    expected = expected_topics(settings, stages)
    missing = expected.keys() - cluster.partition_counts().keys()
    made, refusals = cluster.create({name: expected[name] for name in sorted(missing)})
    # Created topics are correct, even if the next broker does not know them yet.
    known = {name: policy for name, policy in expected.items() if name not in made and name not in refusals}
    wrong = topic_problems(cluster, settings, stages, known)
    if (unchecked := cluster.unchecked()) is not None:
        log.warning("%s", unchecked)
    bad = refusals | wrong
    return Creation(
        created=tuple(name for name in expected if name in missing and name not in bad),
        existing=tuple(name for name in expected if name not in missing and name not in bad),
        wrong=tuple(bad.values()),
    )


def create_named(settings: Settings, wanted: Mapping[str, CleanupPolicy], retention_days: Mapping[str, int]) -> None:
    """Creates those of these topics that are missing; existing topics stay unchanged.

    Args:
        settings: Where Kafka is, the number of partitions, and of copies.
        wanted: The cleanup policies by topic name.
        retention_days: The days for which a topic keeps a record, by topic name; a topic without: the broker's default.

    Raises:
        TopicsRefusedError: a topic could not be created, or exists with another number of partitions.
        KafkaUnreachableError: no broker answered within 10 s.
    """
    cluster = Cluster(settings)
    counts = cluster.partition_counts()
    _, refusals = cluster.create({name: wanted[name] for name in wanted if name not in counts}, retention_days)
    wrong = [partition_problem(name, counts[name], settings, cluster) for name in wanted if name in counts]
    if problems := [*refusals.values(), *(problem for problem in wrong if problem is not None)]:
        raise TopicsRefusedError("\n".join(problems))


def existing_topics(settings: Settings) -> set[str]:
    """Returns the names of all topics of the cluster that this user can see.

    Raises:
        KafkaUnreachableError: no broker answered within 10 s.
    """
    return set(Cluster(settings).partition_counts())


def delete_topics(settings: Settings, names: Collection[str]) -> None:
    """Deletes those of these topics that exist.

    Raises:
        TopicsRefusedError: a topic could not be deleted.
        KafkaUnreachableError: no broker answered within 10 s.
    """
    Cluster(settings).delete(names)


def check_topics(settings: Settings, stages: Collection[StageName] = STAGES) -> list[str]:
    """Returns a sentence for every topic that is missing or wrong: found value, expected value, and the way out.

    The function checks existence, partition count and, except on an embedded broker, cleanup policy and largest batch. It logs a warning
    if this user is not allowed to read the policies.

    Raises:
        KafkaUnreachableError: no broker answered within 10 s.
    """
    cluster = Cluster(settings)
    problems = topic_problems(cluster, settings, stages, expected_topics(settings, stages))
    if (unchecked := cluster.unchecked()) is not None:
        log.warning("%s", unchecked)
    return list(problems.values())


def inspect_topics(settings: Settings, stages: Collection[StageName] = STAGES) -> Inspection:
    """Returns what `check_topics` returns, warnings of weak replication, short retention and late compaction, and remarks.

    The worker does not ask for the warnings: a weak topic changes no record, and its owner can have chosen the values.
    An embedded broker has no replication, retention or compaction, so there are no warnings.

    Raises:
        KafkaUnreachableError: no broker answered within 10 s.
    """
    cluster = Cluster(settings)
    expected = expected_topics(settings, stages)
    retention_days = settings.topics.retention_days()
    where = settings.kafka_bootstrap_servers
    problems = topic_problems(cluster, settings, stages, expected)
    written = expected.keys() - settings.topics.of_others(stages) - problems.keys()
    warnings: list[str] = []
    for found in cluster.found_topics(expected):
        warnings += weaknesses(found, retention_days.get(found.name), settings.replication_factor, where)
        small = batch_weakness(found.name, found.options, where) if found.name in written else None
        if small is not None:
            warnings.append(small)
    if (unchecked := cluster.unchecked()) is not None:
        warnings.append(unchecked)
    counts = cluster.partition_counts()
    remarks = (added_partitions(name, counts[name], settings, cluster) for name in expected if name in counts)
    return Inspection(
        tuple(problems.values()), tuple(warnings), tuple(remark for remark in remarks if remark is not None)
    )


def check_partitions(settings: Settings, names: Collection[str]) -> list[str]:
    """Returns a sentence for each of these topics that is missing or has a wrong partition count.

    In contrast to `check_topics`, this function requests only metadata, which every reader and writer of a topic is
    allowed to see.

    Raises:
        KafkaUnreachableError: no broker answered within 10 s.
    """
    return list(partition_problems(Cluster(settings), settings, names).values())


def partition_count(settings: Settings, name: str, error: Callable[[str], Exception]) -> int:
    """Returns the number of partitions of a topic: the expected one, or a larger one of an input.

    Args:
        settings: Where Kafka is, and the expected number.
        name: The name of the topic.
        error: Creates the exception for a topic that is missing or has a wrong number, from a sentence about it.

    Raises:
        Exception: the exception of `error`.
        KafkaUnreachableError: no broker answered within 10 s.
    """
    cluster = Cluster(settings)
    counts = cluster.partition_counts()
    if (problem := partition_problem(name, counts.get(name), settings, cluster)) is not None:
        raise error(problem)
    return counts[name]


def write_problems(settings: Settings, names: Collection[str]) -> dict[str, str]:
    """Returns, by name, a sentence for each of these topics that this user cannot write to, or that is missing or wrong.

    A topic whose options this user is not allowed to read is not checked for its largest batch.

    Raises:
        KafkaUnreachableError: no broker answered within 10 s.
    """
    cluster = Cluster(settings)
    problems = partition_problems(cluster, settings, names)
    known = [name for name in names if name not in problems]
    refused = "this user lacks the right Write on topic {!r}: grant it (docs/access-control.md)"
    where = settings.kafka_bootstrap_servers
    small = {
        name: batch_problem(name, options, where, least=SMALLEST_BATCH_BYTES)
        for name, options in cluster.topic_options(known).items()
    }
    problems |= {name: problem for name, problem in small.items() if problem is not None}
    return problems | {name: refused.format(name) for name in cluster.not_writable(known)}


def topic_ids(settings: Settings, names: Collection[str]) -> dict[str, str]:
    """Returns the ids of existing topics: a topic that was deleted and created again has another id.

    The topics of an embedded broker have none, and end with it; its own id stands for theirs. Brokers before Kafka 2.8
    have no ids, and all topics are left out.

    Raises:
        KafkaUnreachableError: no broker answered within 10 s.
    """
    return Cluster(settings).topic_ids(names)


def check_transactions(settings: Settings) -> list[str]:
    """Returns a sentence for each reason why the cluster cannot run transactions with the timeout of the settings.

    Settings that this user is not allowed to read are not checked; their problems appear when the worker takes over its
    first partition.

    Raises:
        KafkaUnreachableError: no broker answered within 10 s.
    """
    cluster = Cluster(settings)
    metadata = cluster.metadata()
    options = cluster.broker_options()
    problems = []
    most = options.get("transaction.max.timeout.ms")
    copies = options.get("transaction.state.log.replication.factor")
    if most is not None and int(most) < settings.transaction_timeout_s * 1000:
        problems.append(
            f"the brokers' transaction.max.timeout.ms is {most}, and TRACEWEIR_TRANSACTION_TIMEOUT_S="
            f"{settings.transaction_timeout_s:g} needs {settings.transaction_timeout_s * 1000:.0f}: raise the former (Kafka's "
            f"default is 900000), or set the latter to {int(most) / 1000:g}"
        )
    if copies is not None and int(copies) > len(metadata.brokers) and _TRANSACTIONS not in metadata.topics:
        problems.append(
            f"the cluster cannot run transactions: its topic {_TRANSACTIONS} needs {copies} copies, and the cluster has "
            f"{len(metadata.brokers)} brokers; start more brokers, or reduce transaction.state.log.replication.factor on "
            "the brokers"
        )
    return problems


def reach(settings: Settings, timeout_s: float | None = None) -> str | None:
    """Returns the cluster's id when a broker answers; None from brokers that are too old to report it.

    Raises:
        KafkaUnreachableError: no broker answered within `timeout_s` seconds (None: `REQUEST_TIMEOUT_S`).
    """
    cluster_id: str | None = Cluster(settings).metadata(timeout_s).cluster_id
    return cluster_id
