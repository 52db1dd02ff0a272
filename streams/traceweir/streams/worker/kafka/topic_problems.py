"""Says how topics differ from those that Traceweir expects, and the way out of each difference."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import MAX_BATCH_BYTES
from traceweir.streams.base.stages.record_limits import SMALLEST_BATCH_BYTES
from traceweir.streams.base.topics import CleanupPolicy, StageName, application_id, changelog
from traceweir.streams.worker.kafka.cluster import Cluster
from traceweir.streams.worker.kafka.topic_options import alter_command, batch_problem


def expected_topics(settings: Settings, stages: Collection[StageName]) -> dict[str, CleanupPolicy]:
    """Returns the names of all topics of these stages and of the application's changelog, with their cleanup policies."""
    own: dict[str, CleanupPolicy] = {changelog(application_id(settings.topic_prefix, stages)): "compact"}
    return settings.topics.cleanup_policies(stages) | own


def topic_problems(
    cluster: Cluster, settings: Settings, stages: Collection[StageName], expected: Mapping[str, CleanupPolicy]
) -> dict[str, str]:
    """Returns, by topic name, a sentence for each expected topic that is missing or wrong for workers with these stages."""
    where = settings.kafka_bootstrap_servers
    others = settings.topics.of_others(stages)
    own = changelog(application_id(settings.topic_prefix, stages))
    counts = cluster.partition_counts()
    options = cluster.topic_options([name for name in expected if name in counts])
    policies = {name: found["cleanup.policy"] for name, found in options.items()}
    problems = {}
    for name, policy in expected.items():
        if (problem := partition_problem(name, counts.get(name), settings, cluster)) is not None:
            problems[name] = problem
        elif policies.get(name, policy) != policy:
            problems[name] = (
                f"topic {name!r} has cleanup.policy={policies[name]}, expected {policy}: "
                f"{alter_command(name, f'cleanup.policy={policy}', where)}, or, if its records are not needed, delete the "
                "topic and run `traceweir topics create`"
            )
        elif name not in others:
            # What does not fit is a dead letter, except for a row of the changelog.
            least = MAX_BATCH_BYTES if name == own else SMALLEST_BATCH_BYTES
            if (problem := batch_problem(name, options.get(name, {}), where, least=least)) is not None:
                problems[name] = problem
    return problems


def partition_problems(cluster: Cluster, settings: Settings, names: Collection[str]) -> dict[str, str]:
    """Returns, by name, a sentence for each of these topics that is missing or has a wrong partition count."""
    counts = cluster.partition_counts()
    found = ((name, partition_problem(name, counts.get(name), settings, cluster)) for name in names)
    return {name: problem for name, problem in found if problem is not None}


def partition_problem(name: str, found: int | None, settings: Settings, cluster: Cluster) -> str | None:
    """Returns a sentence if a topic with `found` partitions (None: it does not exist) is wrong, with the way out."""
    if found == settings.partitions or _is_larger_input(name, found, settings, cluster):
        return None
    if found is None and name.startswith(settings.topics.shadow_results_prefix):
        return f"topic {name!r} does not exist: check the name of the shadow"
    if found is None:
        return f"topic {name!r} does not exist: run `traceweir topics create`"
    what = f"topic {name!r} has {found} partitions, expected {settings.partitions}"
    if cluster.embedded:
        return f"{what}: every topic of an embedded broker has {found}; set TRACEWEIR_PARTITIONS={found}"
    if name in settings.topics.added_to():
        return (
            f"{what} or more: add partitions with `kafka-topics.sh --bootstrap-server {settings.kafka_bootstrap_servers} "
            f"--alter --topic {name} --partitions {settings.partitions}`; the records of this topic can be on any partition"
        )
    return (
        f"{what}: set TRACEWEIR_PARTITIONS={found} if all topics have {found}; otherwise, if its records are not needed, delete the "
        "topic and "
        "run `traceweir topics create`"
    )


def added_partitions(name: str, found: int, settings: Settings, cluster: Cluster) -> str | None:
    """Returns a sentence if a topic has more partitions than Traceweir's own topics, and is allowed to; None otherwise."""
    if not _is_larger_input(name, found, settings, cluster):
        return None
    wanted = settings.partitions
    more = (
        f"; {found} is no multiple of {wanted}, so that Kafka's default partitioner puts most records where a worker must "
        f"send them on to their home: {-(-found // wanted) * wanted} partitions avoid this"
    )
    return (
        f"topic {name!r} has {found} partitions, more than TRACEWEIR_PARTITIONS={wanted}: workers read all of them"
        f"{more if found % wanted else ''}"
    )


def _is_larger_input(name: str, found: int | None, settings: Settings, cluster: Cluster) -> bool:
    larger = found is not None and found > settings.partitions
    return larger and name in settings.topics.added_to() and not cluster.embedded
