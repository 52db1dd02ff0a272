"""Reads when a broker ended a transaction: Kafka's only answer to a client that contains the clock of a broker.

At the end of a transaction, the leader of each of its partitions appends a marker with its own time. A consumer skips
markers, so they are read from the answer to a fetch.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.errors import for_code
from aiokafka.protocol.fetch import FetchRequest

_BATCH = struct.Struct(">q i 4x b 4x h 4x 8x q")
"""The fields of a batch that are read: its first offset, its length, the version of its format, its attributes, and the
highest timestamp of its records."""
_LENGTH_FROM = 12
"""Offset in a batch from which its length counts, in bytes."""
_FORMAT = 2
"""Version of the format, since Kafka 0.11."""
_CONTROL = 0x20
_READ_UNCOMMITTED = 0
WAIT_MS = 100
"""Time for which the broker waits for a marker, in milliseconds; other requests of this connection wait as long."""


class Marker(NamedTuple):
    """The marker that ends a transaction in a partition."""

    offset: int
    at_ms: int
    """The time of the broker that leads the partition, in milliseconds since 1970."""


async def by_leader(client: Any, places: Collection[TopicPartition]) -> dict[int | None, TopicPartition]:
    """Returns one of these partitions for each of their leaders.

    Raises:
        KafkaError: a topic is unknown.
    """
    for topic in {place.topic for place in places}:
        await client._wait_on_metadata(topic)
    return {client.cluster.leader_for_partition(place): place for place in places}


async def next_marker(client: Any, place: TopicPartition, offset: int, size: int = 1) -> Marker | None:
    """Returns the first marker of a partition at an offset or after it; None if there is none yet.

    Args:
        client: A connected client of aiokafka that knows the leader of the partition.
        place: The partition.
        offset: The offset.
        size: Bytes that are read. A broker answers with one whole batch at least.

    Raises:
        KafkaError: the leader does not answer, or refuses; or it is unknown, or another broker now.
    """
    request = FetchRequest(WAIT_MS, 1, size, _READ_UNCOMMITTED, [(place.topic, [(place.partition, offset, size)])])
    answer = await client.send(client.cluster.leader_for_partition(place), request)
    for _, partitions in answer.topics:
        for _, error_code, *_, batches in partitions:
            if error_code:
                raise for_code(error_code)
            for marker in markers(batches or b""):
                if marker.offset >= offset:
                    return marker
    return None


def markers(batches: bytes) -> Iterator[Marker]:
    """Yields the markers in the batches of a fetch; the last batch can be cut off."""
    begin = 0
    while begin + _BATCH.size <= len(batches):
        first, length, version, attributes, timestamp = _BATCH.unpack_from(batches, begin)
        if version == _FORMAT and attributes & _CONTROL:
            yield Marker(first, timestamp)
        begin += _LENGTH_FROM + max(length, 0)
