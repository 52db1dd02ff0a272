"""Reads records again, by topic, partition and offset. Reads of one partition that wait together are one range."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from mode import Service

from traceweir.scorers.evaluation.runner import cancelled_from_outside
from traceweir.streams.base.stages.errors import RecordUnavailable
from traceweir.streams.worker.kafka.broker_list import require_broker_list
from traceweir.streams.worker.kafka.fast_close import install_fast_close
from traceweir.streams.worker.kafka.topic_creation import create_no_topics

logger = logging.getLogger(__name__)

READ_WITHIN_S = 30.0
"""Limit of one read, with the connections that it needs.

A first read takes some ten round trips, and a client that starts anew after its limit never gets further: the limit must
be well above what these take from a broker in another region.
"""
FETCH_WAIT_MS = 20
"""Limit of the broker's wait for new records, in ms.

A broker answers the requests of one connection in their order, so that a fetch at the end of a partition delays the next
request. With aiokafka's default of 500 ms, a reader read about two single records a second.
"""
SKIPPED_AT_MOST = 50
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
        self._assigned: TopicPartition | None = None
        self._wanted: dict[TopicPartition, list[_Wanted]] = {}
        self._one = asyncio.Lock()
        self._limit: asyncio.Timeout | None = None

    async def read(self, topic: str, partition: int, offset: int) -> Any:
        """Returns the record; None if the topic no longer has the record.

        Raises:
            RecordUnavailable: the brokers did not answer in time, the topic has no such partition, or the record is in
                an open transaction.
        """
        place = TopicPartition(topic, partition)
        wanted = _Wanted(offset)
        self._wanted.setdefault(place, []).append(wanted)
        try:
            async with self._one:
                # Otherwise the read before this one has read it too.
                if not wanted.done:
                    await self._serve(place)
        finally:
            # Cancelled while it waited for its turn.
            if wanted in (waiting := self._wanted.get(place, [])):
                waiting.remove(wanted)
        if wanted.failed is not None:
            raise RecordUnavailable from wanted.failed
        return wanted.record

    async def _serve(self, place: TopicPartition) -> None:
        """Reads what is wanted of a partition now. What was read before a failure is not lost."""
        served = self._wanted.pop(place)
        try:
            if self.should_stop:
                raise RecordUnavailable  # noqa: TRY301  # one place fails what is served
            async with asyncio.timeout(READ_WITHIN_S) as limit:
                self._limit = limit
                try:
                    await self._read(place, served)
                finally:
                    self._limit = None
        except RecordUnavailable as error:
            _fail(served, error)
        except (KafkaError, TimeoutError, ValueError) as error:
            if not self.should_stop:
                logger.warning("records of partition %d of %s cannot be read again now: %r", *reversed(place), error)
            _fail(served, error)
            # A hanging connection is not used again.
            await self.disconnect()
        except asyncio.CancelledError as error:
            _fail(served, error)
            await self.disconnect()
            if cancelled_from_outside():
                raise
        except BaseException as error:
            _fail(served, error)
            raise

    async def on_stop(self) -> None:
        """Ends a read in progress, then disconnects.

        In another order, aiokafka would continue to connect without end.
        """
        if self._limit is not None and not self._limit.expired():
            # Let the read time out now.
            self._limit.reschedule(0)
        async with self._one:
            await self.disconnect()

    async def disconnect(self) -> None:
        """Disconnects, if connected."""
        consumer = self._consumer
        self._consumer = None
        self._assigned = None
        if consumer is not None:
            await consumer.stop()

    async def _read(self, place: TopicPartition, served: Sequence[_Wanted]) -> None:
        """Reads the wanted records in the order of their offsets; a record that the topic no longer has is None."""
        consumer = await self._connected()
        if not await _exists(consumer, place):
            raise RecordUnavailable
        begins, ends = await asyncio.gather(consumer.beginning_offsets([place]), consumer.end_offsets([place]))
        if uncommitted := [wanted for wanted in served if wanted.offset >= ends[place]]:
            log_end = await self._log_end(consumer, place, ends[place])
            _fail([wanted for wanted in uncommitted if wanted.offset < log_end], RecordUnavailable())
        by_offset: dict[int, list[_Wanted]] = {}
        for wanted in served:
            by_offset.setdefault(wanted.offset, []).append(wanted)
        left = sorted((offset for offset in by_offset if begins[place] <= offset < ends[place]), reverse=True)
        if left:
            if place != self._assigned:
                consumer.assign([place])
                self._assigned = place
            consumer.resume(place)
        position = -1
        while left:
            if position < 0 or left[-1] - position > SKIPPED_AT_MOST:
                consumer.seek(place, left[-1])
            for record in (await consumer.getmany(place, timeout_ms=500)).get(place, []):
                # Compacted, or no record of a producer.
                while left and left[-1] < record.offset:
                    left.pop()
                if left and record.offset == left[-1]:
                    left.pop()
                    for wanted in by_offset[record.offset]:
                        wanted.record = record
                        wanted.done = True
            position = await consumer.position(place)
            while left and left[-1] < position:
                left.pop()
        if self._assigned is not None:
            consumer.pause(self._assigned)
        for wanted in served:
            wanted.done = True

    async def _log_end(self, consumer: AIOKafkaConsumer, place: TopicPartition, end: int) -> int:
        """Returns the end of the log of a partition, with records of transactions that are open.

        Args:
            consumer: The consumer; its next read must seek.
            place: The partition.
            end: The end of what is committed.
        """
        # Forgets the end that an earlier fetch has reported.
        consumer.assign([place])
        self._assigned = place
        consumer.seek(place, end)
        while (log_end := consumer.highwater(place)) is None:
            await consumer.getmany(place, timeout_ms=FETCH_WAIT_MS)
        return int(log_end)

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
            create_no_topics(consumer)
            # Set before start, so that `disconnect` stops it.
            self._consumer = consumer
            await consumer.start()
        return self._consumer


def _fail(served: Sequence[_Wanted], error: BaseException) -> None:
    for wanted in served:
        if not wanted.done:
            wanted.failed = error
            wanted.done = True


async def _exists(consumer: AIOKafkaConsumer, place: TopicPartition) -> bool:
    """Returns whether the cluster has the partition.

    A consumer that is assigned a partition without a leader asks for the metadata again and again without a pause, which
    takes a whole CPU.
    """
    known = consumer.partitions_for_topic(place.topic) or ()
    if place.partition in known:
        return True
    # The topic or the partition can be new.
    newest = await consumer._client.fetch_all_metadata()
    return place.partition in (newest.partitions_for_topic(place.topic) or ())
