"""Sends records to partitions in batches, and says why a topic refuses one."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    PolicyViolationError,
    RecordListTooLargeError,
    UnknownTopicOrPartitionError,
)

from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.stages.base import MAX_BATCH_BYTES, Output, Rows
from traceweir.streams.base.stages.record_limits import RecordLimits, record_bytes

_CREATE_TIME = 0
_FEW_REPLICAS = NotEnoughReplicasError, NotEnoughReplicasAfterAppendError
TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
"""What a send raises if a topic accepts smaller batches than before; the next takeover learns its limit."""

RowsByPlace = Mapping[TopicPartition, Rows]

Content = tuple[bytes | None, bytes | None, int | None, list[tuple[str, bytes | None]]]
"""Key, value, timestamp and headers of a record."""


class Sent(NamedTuple):
    """The offsets of the records that one partition got."""

    first: int | None
    """The offset of the first; None if others can be between the records, or if they got their timestamps from the broker."""
    last: int


class MissingPartitionError(WorkerError):
    """A topic has lost a partition; the message contains its name and the way out."""


async def send_each(
    producer: AIOKafkaProducer, batches: Mapping[TopicPartition, Sequence[Content]], limits: RecordLimits
) -> dict[TopicPartition, Sent]:
    """Sends records to several partitions at the same time; returns the offsets by partition.

    Raises:
        MissingPartitionError: a partition does not exist any more.
        ValueError: a record is larger than a batch.
    """
    track_topics(producer, batches)
    sent = await asyncio.gather(
        *(_send(producer, place, records, limits.batch_bytes(place.topic)) for place, records in batches.items())
    )
    return dict(zip(batches, sent, strict=True))


def outputs_by_place(outputs: Sequence[Output], limits: RecordLimits) -> dict[TopicPartition, list[Content]]:
    """Returns the records of outputs by partition, fitted into the limits of their topics."""
    batches: dict[tuple[str, int], list[Content]] = defaultdict(list)
    for topic, partition, key, value, headers, timestamp in map(limits.fitted, outputs):
        batches[topic, partition].append((key, value, timestamp, [*headers]))
    return {TopicPartition(*place): batch for place, batch in batches.items()}


def rows_as_records(rows: RowsByPlace) -> dict[TopicPartition, list[Content]]:
    """Returns the records of the changelog that hold the rows, without partitions that have none."""
    return {place: [(key, value, None, []) for key, value in found] for place, found in rows.items() if found}


def track_topics(producer: AIOKafkaProducer, batches: Collection[TopicPartition]) -> None:
    """Lets the producer keep the leaders of these topics.

    At first aiokafka knows all topics. From the first topic on that was created later, it asks for this topic alone, and
    has no leader for the others any more: their batches would expire.
    """
    for topic in {place.topic for place in batches}:
        producer.client.add_topic(topic)


async def _send(producer: AIOKafkaProducer, place: TopicPartition, records: Sequence[Content], most_bytes: int) -> Sent:
    """Sends records to one partition in order, as batches, and returns the offsets of the first and the last record.

    A batch has at most `most_bytes` bytes before its compression.

    The first offset is None if the records can have other records between them, or got their timestamps from the broker.

    Raises:
        ValueError: a record is larger than a batch.
    """
    acknowledged: list[tuple[asyncio.Future[Any], int, int]] = []
    at = 0
    while at < len(records):
        batch = producer.create_batch()
        start = at
        while at < len(records):
            key, value, timestamp, headers = records[at]
            if (
                at > start
                and most_bytes < MAX_BATCH_BYTES
                and batch.size() + record_bytes(key, value, headers) > most_bytes
            ):
                break
            if batch.append(key=key, value=value, timestamp=timestamp, headers=headers) is None:
                break
            at += 1
        # A batch accepts its first record, whatever the size.
        if batch.size() > most_bytes:
            key, value, _, _ = records[start]
            raise ValueError(
                f"a record of {len(value or b'') + len(key or b'')} bytes for {place.topic} does not fit "
                f"a batch of {most_bytes} bytes"
            )
        size = batch.size()
        try:
            written_later = await producer.send_batch(batch, place.topic, partition=place.partition)
        except AssertionError as error:
            # aiokafka's only answer to a partition that the topic does not have; other assertions have other words.
            if "Unrecognized partition" not in str(error):
                raise
            raise MissingPartitionError(
                f"the topic {place.topic} has no partition {place.partition} any more: it was deleted, and another client may "
                "have created it again with the brokers' default number of partitions (auto.create.topics.enable). Delete it "
                "if `traceweir topics check` names it, run `traceweir topics create`, and start the worker again"
            ) from None
        except UnknownTopicOrPartitionError:
            raise MissingPartitionError(
                f"the topic {place.topic} does not exist any more: run `traceweir topics create`, and start the worker again"
            ) from None
        acknowledged.append((written_later, at - start, size))
    first: int | None = None
    last = -1
    for number, (future, count, size) in enumerate(acknowledged):
        try:
            # The broker answers with the offset of the first record.
            written = await future
        except (*TOO_LARGE, *_FEW_REPLICAS, PolicyViolationError) as error:
            raise type(error)(_refused_batch(error, place.topic, size)) from error
        if number == 0:
            first = written.offset
        if written.timestamp_type != _CREATE_TIME or (number and written.offset != last + 1):
            first = None
        last = written.offset + count - 1
    return Sent(first, last)


def _refused_batch(error: KafkaError, topic: str, size: int) -> str:
    """Returns what a topic refuses, and the option; aiokafka's error has neither."""
    what = f"topic {topic!r} refuses a batch of {size} bytes"
    if isinstance(error, TOO_LARGE):
        option = "segment.bytes" if isinstance(error, RecordListTooLargeError) else "max.message.bytes"
        return f"{what}, because its {option} is below that: set it to {MAX_BATCH_BYTES} or more"
    if isinstance(error, _FEW_REPLICAS):
        return f"{what}, because fewer replicas are in sync than its min.insync.replicas: start the missing brokers"
    return (
        f"{what} by a policy of the cluster: the brokers' logs name the policy, which must accept this topic's records"
    )
