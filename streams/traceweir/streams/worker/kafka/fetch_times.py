"""Notes up to which time the latest answered fetch of each partition has read it.

aiokafka notes when it processes an answer. Between the answer and this moment a process can stand still, or an answer of
50 MB can be on its way; a record that is appended in the meantime would count as newer than it is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from aiokafka.protocol.fetch import FetchRequest
from aiokafka.structs import TopicPartition

_BATCH = struct.Struct(">8x i 4x b 18x q")
"""The fields of a batch that are read: its length, the version of its format, and the highest timestamp of its records."""
_LENGTH_FROM = 12
"""Offset in a batch from which its length counts, in bytes."""
_FORMAT = 2
"""Version of the format, since Kafka 0.11."""


class FetchTimes:
    """Times of the fetches of an aiokafka client.

    Args:
        client: The client; its method `send` is replaced.
        clock: Returns the seconds since 1970.
        max_wait_s: Longest time for which the broker holds a fetch, in seconds.
    """

    def __init__(self, client: Any, clock: Callable[[], float], max_wait_s: float) -> None:
        self._send = client.send
        self._clock = clock
        self._max_wait_s = max_wait_s
        self._read_at: dict[TopicPartition, float] = {}
        client.send = self._note_and_send

    def read_at(self, place: TopicPartition) -> float:
        """Returns the time up to which the latest answered fetch has read a partition; 0 if there is none.

        Records that the answer does not contain became readable after this time, in seconds since 1970. It is when the
        fetch was sent, or later: a broker reads the partitions of a fetch one right after the other, not before the
        newest record of the answer was appended. A clock that is ahead can give that record a time from the future;
        therefore the time is at most the longest time for which a broker holds a fetch after the fetch was sent.
        Decision 0058 names the cases in which a record is older and is read later.
        """
        return self._read_at.get(place, 0.0)

    async def _note_and_send(self, node_id: Any, request: Any, **options: Any) -> Any:
        sent_at = self._clock()
        answer = await self._send(node_id, request, **options)
        # aiokafka processes the answer next, before any other task runs.
        if isinstance(request, FetchRequest):
            held_until = min(self._clock(), sent_at + self._max_wait_s)
            read_at = max(sent_at, min(_newest(answer) / 1000, held_until))
            for topic, partitions in answer.topics:
                for partition, error_code, *_ in partitions:
                    # After an error aiokafka keeps the earlier end.
                    if not error_code:
                        self._read_at[TopicPartition(topic, partition)] = read_at
        return answer


def _newest(answer: Any) -> float:
    """Returns the end of the millisecond of the newest record in an answer, in milliseconds since 1970; 0 without records."""
    return max(
        (
            timestamp + 1
            for _, partitions in answer.topics
            for *_, batches in partitions
            for timestamp in _timestamps(batches or b"")
        ),
        default=0,
    )


def _timestamps(batches: bytes) -> Iterator[int]:
    """Returns the highest timestamp of each batch; the last batch can be cut off."""
    begin = 0
    while begin + _BATCH.size <= len(batches):
        length, version, timestamp = _BATCH.unpack_from(batches, begin)
        if version == _FORMAT:
            yield timestamp
        begin += _LENGTH_FROM + max(length, 0)
