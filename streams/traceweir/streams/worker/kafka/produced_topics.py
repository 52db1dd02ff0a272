"""Checks the topics that a producer writes to: whether they exist, and how large their records can be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.client_options import confluent_options
from traceweir.streams.worker.kafka.cluster import Cluster


def batch_limits(settings: Settings, names: Sequence[str]) -> dict[str, int]:
    """Returns the largest batch in bytes per topic. A topic is absent if the broker does not report its limit."""
    client = AdminClient(confluent_options(settings) | {"log_level": 0})
    answers = client.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in names], request_timeout=10)
    limits = {}
    for resource, answer in answers.items():
        # The topic is missing or we have no right to see it: Kafka's default applies.
        with suppress(KafkaException):
            limits[resource.name] = int(answer.result()["max.message.bytes"].value)
    return limits


async def topic_problem(
    producer: AIOKafkaProducer, settings: Settings, names: Sequence[str], *, embedded: bool, create: str
) -> str | None:
    """Returns what is wrong with the first of these topics that is missing or has a wrong number of partitions.

    An input can have more partitions than expected. On an embedded broker this creates the topics.

    Args:
        producer: A producer that has started.
        settings: The expected number of partitions.
        names: The full names of the topics.
        embedded: Whether the broker is an embedded one.
        create: The command that creates the topics.
    """
    # An embedded broker is always new, and nobody administers it.
    if embedded:
        await asyncio.to_thread(Cluster(settings).create, dict.fromkeys(names, "delete"))
    known = await producer.client.fetch_all_metadata()
    for name in names:
        found = known.partitions_for_topic(name)
        if not found:
            return f"topic {name!r} does not exist: run `{create}`"
        if len(found) > settings.partitions and name in settings.topics.added_to() and not embedded:
            continue
        if len(found) != settings.partitions:
            return (
                f"topic {name!r} has {len(found)} partitions, expected {settings.partitions}: run `traceweir topics check`, "
                f"or set TRACEWEIR_PARTITIONS={len(found)}"
            )
    return None
