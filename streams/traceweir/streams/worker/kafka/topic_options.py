"""Chooses the options of the topics that Traceweir creates, and finds existing topics that are weaker than these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from traceweir.streams.base.stages.base import MAX_BATCH_BYTES
from traceweir.streams.base.topics import CleanupPolicy

DURABLE_COPIES = 3
"""Copies of a partition from which on two of them must have a record before the record is acknowledged."""
DURABLE_IN_SYNC = 2
DAY_MS = 86_400_000
KAFKAS_BATCH_BYTES = 1_048_588
"""Kafka's default for the largest batch that a topic accepts, in bytes."""
_BATCH_OPTIONS = ("max.message.bytes", "segment.bytes")
COMPACTION: Mapping[str, float] = {
    "segment.bytes": 16 << 20,
    "segment.ms": 600_000,
    "min.cleanable.dirty.ratio": 0.3,
    "max.compaction.lag.ms": DAY_MS,
}
"""The largest values with which a compacted topic stays near the size of its latest records.

Kafka compacts closed segments only, and its defaults close a segment after 1 GiB or 7 days. What is read beside the
latest records is at most the open segment and 3/7 of their size. The cleaner reads about 3 bytes for each written one
then; with a smaller ratio it would read more. The last option bounds the closed segments of a topic that is rarely
written, and the time for which a replaced record stays: without it, such a topic would close a segment every ten
minutes, and not reach the ratio for months.
"""
TOMBSTONES_MS = DAY_MS
"""The time for which a deletion stays readable in a compacted topic; Kafka's default, whatever the brokers have.

A reader that was away for longer can keep rows that are deleted, so a worker does not use local state of that age.
"""


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
    if policy == "compact":
        options |= {name: str(value) for name, value in COMPACTION.items()}
        options["delete.retention.ms"] = str(TOMBSTONES_MS)
    if retention_days is not None:
        options["retention.ms"] = str(retention_days * DAY_MS)
    if copies >= DURABLE_COPIES:
        options["min.insync.replicas"] = str(DURABLE_IN_SYNC)
    return options


def alter_command(topic: str, option: str, bootstrap_servers: str) -> str:
    """Returns the words `run` and the command that sets options (`name=value,...`) of a topic."""
    return (
        f"run `kafka-configs.sh --bootstrap-server {bootstrap_servers} --alter --entity-type topics --entity-name {topic} "
        f"--add-config {option}`"
    )


def largest_batch(options: Mapping[str, str]) -> int:
    """Returns the largest batch in bytes that a topic with these options accepts; `MAX_BATCH_BYTES` if that is unknown."""
    return min(int(options.get(name, MAX_BATCH_BYTES)) for name in _BATCH_OPTIONS)


def batch_problem(
    topic: str, options: Mapping[str, str], bootstrap_servers: str, *, least: int = MAX_BATCH_BYTES
) -> str | None:
    """Returns a sentence if a topic refuses batches of `least` bytes, which a worker cannot do without; else None."""
    if largest_batch(options) >= least:
        return None
    needs = "a batch of a worker has up to" if least == MAX_BATCH_BYTES else "a worker needs batches of at least"
    return f"{_small(topic, options)}, and {needs} {least} bytes: {_larger(topic, options, bootstrap_servers)}"


def batch_weakness(topic: str, options: Mapping[str, str], bootstrap_servers: str) -> str | None:
    """Returns a sentence if a topic refuses the largest outputs of a worker, which become dead letters; else None."""
    if largest_batch(options) >= MAX_BATCH_BYTES:
        return None
    return (
        f"{_small(topic, options)}, so larger records of workers become dead letters `too_large`: "
        f"{_larger(topic, options, bootstrap_servers)}"
    )


def _small(topic: str, options: Mapping[str, str]) -> str:
    return f"topic {topic!r} has {min(_BATCH_OPTIONS, key=lambda name: int(options.get(name, MAX_BATCH_BYTES)))}={largest_batch(options)}"


def _larger(topic: str, options: Mapping[str, str], bootstrap_servers: str) -> str:
    small = [name for name in _BATCH_OPTIONS if int(options.get(name, MAX_BATCH_BYTES)) < MAX_BATCH_BYTES]
    wanted = ",".join(f"{name}={KAFKAS_BATCH_BYTES}" for name in small)
    return alter_command(topic, wanted, bootstrap_servers)


def weaknesses(found: FoundTopic, retention_days: int | None, copies: int, bootstrap_servers: str) -> Iterator[str]:
    """Yields a sentence for each way in which a topic keeps its records less safely, or more of them, than a new topic.

    The topic works nevertheless. An option that the cluster does not report is not checked.

    Args:
        found: The topic.
        retention_days: Number of days for which the topic should keep its records; None if it should keep them all.
        copies: The configured number of copies.
        bootstrap_servers: The cluster's address, for the command that corrects an option.
    """

    def alter(option: str) -> str:
        return alter_command(found.name, option, bootstrap_servers)

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
    if "compact" not in found.options.get("cleanup.policy", ""):
        return
    late = [name for name, most in COMPACTION.items() if float(found.options.get(name, most)) > most]
    if late:
        values = ", ".join(f"{name}={found.options[name]}" for name in late)
        wanted = ",".join(f"{name}={COMPACTION[name]}" for name in late)
        yield (
            f"{topic} is compacted late ({values}), so it grows, and its readers read records that were replaced long "
            f"ago: {alter(wanted)}"
        )
    kept_ms = int(found.options.get("delete.retention.ms", TOMBSTONES_MS))
    if kept_ms < TOMBSTONES_MS:
        yield (
            f"{topic} keeps deletions for {_days(kept_ms)}, so a worker that was away for longer cannot use its state "
            f"directory: {alter(f'delete.retention.ms={TOMBSTONES_MS}')}"
        )


def _days(milliseconds: int) -> str:
    days = milliseconds / DAY_MS
    return "1 day" if days == 1 else f"{days:.3g} days"
