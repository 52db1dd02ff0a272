"""Reads recorded sessions from the `sessions` topic, by session id."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.streams.evals.recordings import Recording, SessionParts
from traceweir.streams.kafka.fast_close import install_fast_close
from traceweir.streams.kafka.fetch import read_as_parsed
from traceweir.streams.kafka.topic_admin import check_partitions
from traceweir.streams.settings import Settings, aiokafka_options
from traceweir.streams.stages.partitioner import partition_of
from traceweir.streams.topics import Topics

STALLED_S = 60.0
"""Seconds without progress after which reading fails; a killed worker's transaction stays open half as long."""


class SessionsUnreadableError(Exception):
    """The sessions topic cannot be read; the message names the reason and the way out."""


async def read_sessions(settings: Settings, wanted: Collection[str]) -> dict[str, Recording]:
    """Returns the wanted sessions that the topic still holds: all segments, each in its latest revision.

    Only the partitions of the wanted ids are read, from beginning to end; other sessions are discarded.

    Raises:
        KafkaUnreachableError: no broker answers.
        SessionsUnreadableError: the topic is missing or wrong or cannot be read.
    """
    if not wanted:
        return {}
    topic = Topics.of(settings.topic_prefix).sessions
    if problems := await asyncio.to_thread(check_partitions, settings, [topic]):
        raise SessionsUnreadableError("\n".join(problems))
    read_as_parsed(())
    keys = {name.encode("utf-8", "surrogatepass") for name in wanted}
    places = sorted({TopicPartition(topic, partition_of(key, settings.partitions)) for key in keys})
    parts = SessionParts()
    consumer = AIOKafkaConsumer(
        **aiokafka_options(settings),
        enable_auto_commit=False,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    install_fast_close(consumer)
    try:
        await consumer.start()
        await _read(consumer, places, keys, parts)
    except (KafkaError, OSError) as error:
        raise SessionsUnreadableError(
            f"{topic} cannot be read at {settings.kafka_bootstrap_servers}: {error!r}; check that Kafka runs and that "
            "this user is allowed to read the topic"
        ) from error
    finally:
        await consumer.stop()
    return parts.recordings()


async def _read(consumer: Any, places: list[TopicPartition], keys: set[bytes], parts: SessionParts) -> None:
    clock = asyncio.get_running_loop()
    consumer.assign(places)
    consumer.pause(*places)
    begins, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)
    for place in places:
        offset, progressed_at_s = begins[place], clock.time()
        # Without seek the consumer asks for a start offset now, and waits for the answer even if the broker is gone.
        consumer.seek(place, offset)
        consumer.resume(place)
        while offset < ends[place]:
            for record in (await consumer.getmany(place, timeout_ms=500)).get(place, ()):
                if record.key in keys and record.value:
                    _take(parts, place, record)
            if (reached := await consumer.position(place)) > offset:
                offset, progressed_at_s = reached, clock.time()
            elif clock.time() - progressed_at_s > STALLED_S:
                raise SessionsUnreadableError(
                    f"{place.topic}[{place.partition}] could not be read from offset {offset} to {ends[place]} for "
                    f"{STALLED_S:g} s: check that the brokers run and that no transaction hangs "
                    "(`kafka-transactions.sh find-hanging`), and try again"
                )
        consumer.pause(place)


def _take(parts: SessionParts, place: TopicPartition, record: Any) -> None:
    try:
        parts.add(Session.model_validate_json(record.value))
    except ValidationError as error:
        raise SessionsUnreadableError(
            f"{place.topic}[{place.partition}]@{record.offset} is not a session that this version can read "
            f"({printable(explain(error))}); if a later version wrote the record, install that version"
        ) from None
