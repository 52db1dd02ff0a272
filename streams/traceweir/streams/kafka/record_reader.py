"""Reads single records again, by topic, partition and offset."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from mode import Service

from traceweir.scorers.evaluation.runner import cancelled_from_outside
from traceweir.streams.kafka.broker_list import require_broker_list
from traceweir.streams.kafka.fast_close import install_fast_close
from traceweir.streams.stages.errors import RecordUnavailable

READ_WITHIN_S = 10.0


class RecordReader(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Connects at the first read, and reads one record at a time."""

    def __init__(self, options: Mapping[str, Any], **kwargs: Any) -> None:
        """Stores connection options of aiokafka's clients; opens no connection."""
        super().__init__(**kwargs)
        self._options = options
        self._consumer: AIOKafkaConsumer | None = None
        self._one = asyncio.Lock()
        self._limit: asyncio.Timeout | None = None

    async def read(self, topic: str, partition: int, offset: int) -> Any:
        """Returns the record; None if the topic no longer has the record.

        Raises:
            RecordUnavailable: the brokers did not answer in time, or the topic has no such partition.
        """
        async with self._one:
            if self.should_stop:
                raise RecordUnavailable
            try:
                async with asyncio.timeout(READ_WITHIN_S) as limit:
                    self._limit = limit
                    try:
                        return await self._read(TopicPartition(topic, partition), offset)
                    finally:
                        self._limit = None
            except (KafkaError, TimeoutError, ValueError) as error:
                await self.disconnect()  # a hanging connection is not used again
                raise RecordUnavailable from error
            except asyncio.CancelledError:
                if cancelled_from_outside():
                    raise
                await self.disconnect()
                raise RecordUnavailable from None

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
        if consumer is not None:
            await consumer.stop()

    async def _read(self, place: TopicPartition, offset: int) -> Any:
        if self._consumer is None:
            consumer = AIOKafkaConsumer(
                **self._options,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
            )
            install_fast_close(consumer)
            require_broker_list(consumer)
            self._consumer = consumer  # set before start, so that `disconnect` stops it
            await consumer.start()
        consumer = self._consumer
        if not await _exists(consumer, place):
            raise RecordUnavailable
        consumer.assign([place])
        begins, ends = await consumer.beginning_offsets([place]), await consumer.end_offsets([place])
        if not begins[place] <= offset < ends[place]:
            return None
        consumer.seek(place, offset)
        records: list[Any] = []
        while not records:
            records = (await consumer.getmany(place, timeout_ms=500, max_records=1)).get(place, [])
        return records[0] if records[0].offset == offset else None


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
