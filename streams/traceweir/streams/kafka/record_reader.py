"""Reads records again, by topic, partition and offset. Reads of one partition that wait together are one range."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from mode import Service

from traceweir.scorers.evaluation.runner import cancelled_from_outside
from traceweir.streams.kafka.broker_list import require_broker_list
from traceweir.streams.kafka.fast_close import install_fast_close
from traceweir.streams.stages.errors import RecordUnavailable

READ_WITHIN_S = 10.0
FETCH_WAIT_MS = 20
"""Limit of the broker's wait for new records, in ms.

A broker answers the requests of one connection in their order, so that a fetch at the end of a partition delays the next
request. With aiokafka's default of 500 ms, a reader read about two single records a second.
"""
SKIPPED_AT_MOST = 1_000
"""Number of records between two wanted ones above which the reader seeks, because it reads all records of a range."""


class _Wanted:
    """A record that somebody waits for."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.record: Any = None
        self.failed: BaseException | None = None
        self.done = False


class RecordReader(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Connects at the first read, and reads the wanted records of one partition at a time, in the order of their offsets."""

    def __init__(self, options: Mapping[str, Any], **kwargs: Any) -> None:
        """Stores connection options of aiokafka's clients; opens no connection."""
        super().__init__(**kwargs)
        self._options = options
        self._consumer: AIOKafkaConsumer | None = None
        self._places: set[TopicPartition] = set()
        self._wanted: dict[TopicPartition, list[_Wanted]] = {}
        self._one = asyncio.Lock()
        self._limit: asyncio.Timeout | None = None

    async def read(self, topic: str, partition: int, offset: int) -> Any:
        """Returns the record; None if the topic no longer has the record.

        Raises:
            RecordUnavailable: the brokers did not answer in time, or the topic has no such partition.
        """
        place, wanted = TopicPartition(topic, partition), _Wanted(offset)
        self._wanted.setdefault(place, []).append(wanted)
        async with self._one:
            if not wanted.done:  # otherwise the read before this one has read it too
                await self._serve(place)
        if wanted.failed is not None:
            raise RecordUnavailable from wanted.failed
        return wanted.record

    async def _serve(self, place: TopicPartition) -> None:
        """Reads what is wanted of a partition now."""
        served = self._wanted.pop(place)
        if self.should_stop:
            await self._fail(served, RecordUnavailable())
            return
        try:
            async with asyncio.timeout(READ_WITHIN_S) as limit:
                self._limit = limit
                try:
                    found = await self._read(place, sorted({wanted.offset for wanted in served}))
                finally:
                    self._limit = None
        except (KafkaError, TimeoutError, ValueError, RecordUnavailable) as error:
            await self._fail(served, error)
        except asyncio.CancelledError as error:
            await self._fail(served, error)
            if cancelled_from_outside():
                raise
        else:
            for wanted in served:
                wanted.record, wanted.done = found.get(wanted.offset), True

    async def _fail(self, served: Sequence[_Wanted], error: BaseException) -> None:
        for wanted in served:
            wanted.failed, wanted.done = error, True
        if not isinstance(error, RecordUnavailable):
            await self.disconnect()  # a hanging connection is not used again

    async def on_stop(self) -> None:
        """Ends a read in progress, then disconnects.

        In another order, aiokafka would continue to connect without end.
        """
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(0)  # let the read time out now
        async with self._one:
            await self.disconnect()

    async def disconnect(self) -> None:
        """Disconnects, if connected."""
        consumer, self._consumer = self._consumer, None
        self._places.clear()
        if consumer is not None:
            await consumer.stop()

    async def _read(self, place: TopicPartition, offsets: Sequence[int]) -> dict[int, Any]:
        """Returns the records at these offsets, which are in ascending order; a missing record is left out."""
        consumer = await self._connected()
        if not await _exists(consumer, place):
            raise RecordUnavailable
        begins, ends = await consumer.beginning_offsets([place]), await consumer.end_offsets([place])
        left = [offset for offset in reversed(offsets) if begins[place] <= offset < ends[place]]
        found: dict[int, Any] = {}
        if not left:
            return found
        self._only(consumer, place)
        position = -1
        while left:
            if position < 0 or left[-1] - position > SKIPPED_AT_MOST:
                consumer.seek(place, left[-1])
            for record in (await consumer.getmany(place, timeout_ms=500)).get(place, []):
                if left and record.offset == left[-1]:
                    found[record.offset] = record
                    left.pop()
                while left and left[-1] < record.offset:  # compacted, or no record of a producer
                    left.pop()
            position = await consumer.position(place)
            while left and left[-1] < position:
                left.pop()
        consumer.pause(place)
        return found

    async def _connected(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            consumer = AIOKafkaConsumer(
                **self._options,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
                fetch_max_wait_ms=FETCH_WAIT_MS,
            )
            install_fast_close(consumer)
            require_broker_list(consumer)
            self._consumer = consumer  # set before start, so that `disconnect` stops it
            await consumer.start()
        return self._consumer

    def _only(self, consumer: AIOKafkaConsumer, place: TopicPartition) -> None:
        """Lets the consumer fetch from this partition, and from no other."""
        if place not in self._places:
            self._places.add(place)
            consumer.assign(list(self._places))
        consumer.pause(*(self._places - {place}))
        consumer.resume(place)


async def _exists(consumer: AIOKafkaConsumer, place: TopicPartition) -> bool:
    """Returns whether the cluster has the partition.

    A consumer that is assigned a partition without a leader asks for the metadata again and again without a pause, which
    takes a whole CPU.
    """
    known = consumer.partitions_for_topic(place.topic) or ()
    if place.partition in known:
        return True
    newest = await consumer._client.fetch_all_metadata()  # the topic or the partition can be new
    return place.partition in (newest.partitions_for_topic(place.topic) or ())
