"""Chooses the options of the topics that Traceweir creates, and finds existing topics that are weaker than these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from traceweir.streams.topics import CleanupPolicy

DURABLE_COPIES = 3
"""Copies of a partition from which on two of them must have a record before the record is acknowledged."""
DURABLE_IN_SYNC = 2
DAY_MS = 86_400_000


@dataclass(frozen=True)
class FoundTopic:
    """An existing topic of a cluster."""

    name: str
    copies: int
    """The smallest number of replicas that a partition of the topic has."""
    options: Mapping[str, str]
    """Values of the topic's options by name, defaults included; empty where options do not exist."""


def options_at_creation(policy: CleanupPolicy, retention_days: int | None, copies: int) -> dict[str, str]:
    """Returns the options of a new topic with `copies` copies of each partition; `retention_days` None: no limit.

    With three copies, one broker can fail without a loss of records and without a stop of the workers. With two copies,
    a minimum of two would stop the workers whenever one broker is away.

    >>> options_at_creation("delete", 7, 3)
    {'cleanup.policy': 'delete', 'retention.ms': '604800000', 'min.insync.replicas': '2'}
    """
    options: dict[str, str] = {"cleanup.policy": policy}
    if retention_days is not None:
        options["retention.ms"] = str(retention_days * DAY_MS)
    if copies >= DURABLE_COPIES:
        options["min.insync.replicas"] = str(DURABLE_IN_SYNC)
    return options


def weaknesses(found: FoundTopic, retention_days: int | None, copies: int, bootstrap_servers: str) -> Iterator[str]:
    """Yields a sentence for each way in which records of a topic are less safe than in a topic that Traceweir creates.

    The topic works nevertheless. An option that the cluster does not report is not checked.

    Args:
        found: The topic.
        retention_days: Number of days for which the topic should keep its records; None if it should keep them all.
        copies: The configured number of copies.
        bootstrap_servers: The cluster's address, for the command that corrects an option.
    """

    def alter(option: str) -> str:
        return (
            f"run `kafka-configs.sh --bootstrap-server {bootstrap_servers} --alter --entity-type topics "
            f"--entity-name {found.name} --add-config {option}`"
        )

    topic = f"topic {found.name!r}"
    if found.copies < copies:
        yield (
            f"{topic} has {found.copies} {'copy' if found.copies == 1 else 'copies'} of a partition, and "
            f"TRACEWEIR_REPLICATION_FACTOR is {copies}: raise the number with `kafka-reassign-partitions.sh`, or correct the setting"
        )
    in_sync = int(found.options.get("min.insync.replicas", DURABLE_IN_SYNC))
    if found.copies >= DURABLE_COPIES and in_sync < DURABLE_IN_SYNC:
        yield (
            f"{topic} has min.insync.replicas={in_sync} with {found.copies} copies, so the loss of one broker can lose "
            f"acknowledged records: {alter(f'min.insync.replicas={DURABLE_IN_SYNC}')}"
        )
    elif "min.insync.replicas" in found.options and 1 < found.copies <= in_sync:
        yield (
            f"{topic} has min.insync.replicas={in_sync} with {found.copies} copies, so nothing can be written while one "
            f"broker is away: {alter(f'min.insync.replicas={max(1, found.copies - 1)}')}"
        )
    kept_ms = int(found.options.get("retention.ms", -1))
    if retention_days is not None and 0 <= kept_ms < retention_days * DAY_MS:
        yield (
            f"{topic} keeps records for {_days(kept_ms)}, and at least {retention_days} days are advised: "
            f"{alter(f'retention.ms={retention_days * DAY_MS}')}"
        )


def _days(milliseconds: int) -> str:
    days = milliseconds / DAY_MS
    return "1 day" if days == 1 else f"{days:.3g} days"
