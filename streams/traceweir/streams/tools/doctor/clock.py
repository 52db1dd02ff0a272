"""Compares the clock of this machine with those of the brokers, by the transactions of running workers."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection
from time import monotonic
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from traceweir.streams.base.clock import iso
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import StageName, application_id, changelog
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.worker.kafka.client_options import aiokafka_options
from traceweir.streams.worker.kafka.clients import client_of
from traceweir.streams.worker.kafka.embedded_broker import is_embedded
from traceweir.streams.worker.kafka.fast_close import install_fast_close
from traceweir.streams.worker.kafka.topic_admin import reach
from traceweir.streams.worker.kafka.topic_creation import create_no_topics
from traceweir.streams.worker.kafka.transaction_markers import Marker, by_leader, next_marker
from traceweir.streams.worker.runtime.cluster_clock import MAX_APART_S, ahead_s

WATCHED_S = 5.0
"""Seconds for which transactions of workers are awaited."""
WARNED_S = 5.0
"""Difference of the clocks above which a warning is given, in seconds."""

_BYTES = 4_000_000
"""Bytes that are read to find the end of a transaction."""


async def check_clock(settings: Settings, stages: Collection[StageName], now: Callable[[], float]) -> Finding:
    """Returns by how much this machine is ahead of the brokers, or why it is unknown. This writes nothing.

    Only a transaction that ends while this waits tells the time of a broker now.

    Args:
        settings: Where Kafka is.
        stages: The stages of the workers.
        now: Returns the time of this machine in seconds since 1970.

    Raises:
        KafkaUnreachableError: no broker answers.
    """
    if is_embedded(await asyncio.to_thread(reach, settings)):
        return Finding(
            "broker clock", "not checked", "the embedded broker has no transactions, which tell the time of a broker"
        )
    topic = changelog(application_id(settings.topic_prefix, stages))
    consumer = AIOKafkaConsumer(**aiokafka_options(settings))
    install_fast_close(consumer)
    create_no_topics(consumer)
    try:
        await consumer.start()
        client = client_of(consumer)
        places = [TopicPartition(topic, number) for number in range(settings.partitions)]
        await by_leader(client, places)
        ends = await consumer.end_offsets(places)
        since = now()
        began = monotonic()
        for place, end in itertools.cycle(ends.items()):
            if monotonic() - began >= WATCHED_S:
                break
            if (marker := await next_marker(client, place, end, _BYTES)) is not None:
                return _compared(marker, since, now(), place)
        return await _unknown(client, ends, now())
    except KafkaError as error:
        return Finding("broker clock", "not checked", f"the transactions in {topic} cannot be read: {error}")
    finally:
        await consumer.stop()


def _compared(marker: Marker, since: float, until: float, place: TopicPartition) -> Finding:
    ahead = ahead_s(marker.at_ms, since, until)
    where = f"the broker that leads {place.topic}, partition {place.partition}"
    if abs(ahead) <= WARNED_S:
        return Finding("broker clock", "ok", f"the clock of this machine is within {WARNED_S:g} s of {where}")
    return Finding(
        "broker clock", "failure" if abs(ahead) > MAX_APART_S else "warning",
        f"the clock of this machine is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} {where}; a worker ends "
        f"beyond {MAX_APART_S:g} s: let all machines take the time from one source (NTP)",
    )  # fmt: skip


async def _unknown(client: Any, ends: dict[TopicPartition, int], now: float) -> Finding:
    """Returns what the last marker of each partition tells: a machine cannot be earlier than a past transaction."""
    found = {place: await next_marker(client, place, end - 1) for place, end in ends.items() if end > 0}
    last, place = max(
        ((marker.at_ms, place) for place, marker in found.items() if marker is not None), default=(0, None)
    )
    why = f"no worker has committed anything for {WATCHED_S:g} s, so that no broker has told its time"
    if place is None:
        return Finding("broker clock", "not checked", f"{why}; run this again while records arrive")
    if now - last / 1000 < -WARNED_S:
        return _compared(Marker(0, last), now, now, place)
    return Finding(
        "broker clock", "not checked",
        f"{why}; the last transaction ended at {iso(last)} by the broker's clock. Run this again while records arrive",
    )  # fmt: skip
