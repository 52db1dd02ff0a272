"""Says how topics differ from those that Traceweir expects, and the way out of each difference."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from traceweir.streams.kafka.cluster import Cluster
from traceweir.streams.kafka.topic_options import alter_command, batch_problem
from traceweir.streams.settings import Settings
from traceweir.streams.stages.base import MAX_BATCH_BYTES
from traceweir.streams.stages.record_limits import SMALLEST_BATCH_BYTES
from traceweir.streams.topics import CleanupPolicy, StageName, application_id, changelog


def expected_topics(settings: Settings, stages: Collection[StageName]) -> dict[str, CleanupPolicy]:
    """Returns the names of all topics of these stages and of the application's changelog, with their cleanup policies."""
    own: dict[str, CleanupPolicy] = {changelog(application_id(settings.topic_prefix, stages)): "compact"}
    return settings.topics.cleanup_policies(stages) | own


def topic_problems(
    cluster: Cluster, settings: Settings, stages: Collection[StageName], expected: Mapping[str, CleanupPolicy]
) -> dict[str, str]:
    """Returns, by topic name, a sentence for each expected topic that is missing or wrong for workers with these stages."""
    where = settings.kafka_bootstrap_servers
    others, own = settings.topics.of_others(stages), changelog(application_id(settings.topic_prefix, stages))
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
    if found == settings.partitions:
        return None
    if found is None and name.startswith(settings.topics.shadow_results_prefix):
        return f"topic {name!r} does not exist: check the name of the shadow"
    if found is None:
        return f"topic {name!r} does not exist: run `traceweir topics create`"
    what = f"topic {name!r} has {found} partitions, expected {settings.partitions}"
    if cluster.embedded:
        return f"{what}: every topic of an embedded broker has {found}; set TRACEWEIR_PARTITIONS={found}"
    topics = settings.topics
    variables = {topics.otlp_spans: "TRACEWEIR_OTLP_SPANS_TOPIC", topics.otlp_logs: "TRACEWEIR_OTLP_LOGS_TOPIC"}
    if name in variables and found < settings.partitions:
        return (
            f"{what}: add partitions with `kafka-topics.sh --bootstrap-server {settings.kafka_bootstrap_servers} --alter "
            f"--topic {name} --partitions {settings.partitions}`; the records of this topic can be on any partition"
        )
    if name in variables:
        return (
            f"{what}: name another topic with {variables[name]}, and let the Collector write to it; or set "
            f"TRACEWEIR_PARTITIONS={found} if all topics have {found}"
        )
    return (
        f"{what}: set TRACEWEIR_PARTITIONS={found} if all topics have {found}; otherwise, if its records are not needed, delete the "
        "topic and "
        "run `traceweir topics create`"
    )
