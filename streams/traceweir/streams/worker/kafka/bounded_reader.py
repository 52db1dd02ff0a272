"""Reads a topic from chosen offsets to the ends that its partitions had at the start, without a consumer group.

A reader can then follow the topic: it reads the records after those ends as they are committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from traceweir.streams.base.setting_groups.worker import TRANSACTION_TIMEOUT_S
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.client_options import consumer_options
from traceweir.streams.worker.kafka.embedded_broker import is_embedded
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.fast_close import install_fast_close
from traceweir.streams.worker.kafka.fetch import read_as_parsed
from traceweir.streams.worker.kafka.request_thread import in_request_thread
from traceweir.streams.worker.kafka.silence import UNKNOWN_AFTER_S, answers
from traceweir.streams.worker.kafka.topic_admin import partition_count, reach
from traceweir.streams.worker.kafka.topic_creation import create_no_topics
from traceweir.streams.worker.kafka.unreadable_batch import UnreadableBatchError

STALLED_S = TRANSACTION_TIMEOUT_S + 30.0
"""Seconds without progress after which reading fails. Kafka ends the transaction of a killed process after its timeout, and
looks for such transactions every ten seconds."""
FIRST_WITHIN_MS = 5_000
"""Milliseconds for reading the first record of an open transaction."""


class HeldBack(NamedTuple):
    """What follows the oldest open transaction of a partition: readers of committed records do not see it."""

    begin: int
    """The offset of the first record of the transaction."""
    end: int
    """The offset after the last record."""
    since_ms: int | None
    """The timestamp of the first record of the transaction, in milliseconds since 1970; None: it cannot be read."""


class BoundedReader:
    """Reads the committed records of a topic, within an `async with` block. Memory does not grow with the topic.

    Args:
        settings: Where Kafka is, and the number of partitions of each topic. An input can have more; all are read.
        topic: The full name of the topic.
        error: Creates the exception for a topic that is missing or wrong or cannot be read, from its message.
        partitions: The partitions to read; by default all.
        up_to_all: If true, the ends come after all records that were sent, also those of transactions that are still
            open; reading then waits until these transactions have ended. If false, the ends come after all records
            that were committed.
        batches: Whether a batch that cannot be decompressed is yielded as an `UnreadableBatch`. Otherwise it is an error.

    Raises:
        KafkaUnreachableError: no broker answers.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        error: Callable[[str], Exception],
        *,
        partitions: Collection[int] | None = None,
        up_to_all: bool = False,
        batches: bool = False,
    ) -> None:
        self._settings = settings
        self._error = error
        self._up_to_all = up_to_all
        self.topic = topic
        self._batches_of = (topic,) if batches else ()
        self._partitions = partitions
        self._places: list[TopicPartition] = []
        self.begins: Mapping[int, int] = {}
        """The offset of the oldest record by partition, at the start of the `async with` block."""
        self.ends: Mapping[int, int] = {}
        """The offset after the last record by partition, at the start of the `async with` block."""

    async def __aenter__(self) -> BoundedReader:
        count = await in_request_thread(partition_count, self._settings, self.topic, self._error)
        numbers = range(count) if self._partitions is None else sorted(self._partitions)
        self._places = [TopicPartition(self.topic, number) for number in numbers]
        # A header name that is not UTF-8 would end confluent-kafka's consumer. Therefore this class reads with aiokafka.
        read_as_parsed((), batches_of=self._batches_of)
        try:
            self._consumer = self._connection("read_committed")
            try:
                await self._consumer.start()
                self._consumer.assign(self._places)
                self._consumer.pause(*self._places)
                self.begins = _by_number(await self._consumer.beginning_offsets(self._places))
                self.ends = _by_number(await self._ends())
            except BaseException:
                await self._consumer.stop()
                raise
        except (KafkaError, OSError) as error:
            raise self._unreadable(error) from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._consumer.stop()

    async def records(self, begins: Mapping[int, int] | None = None) -> AsyncGenerator[Any, None]:
        """Yields the records partition by partition, in the order of their offsets; can be called more than once.

        Args:
            begins: The partitions to read, and the first offset of each; by default all records are read.

        Raises:
            Exception: the exception of `error`, if the topic cannot be read to its ends.
        """
        for number, begin in (self.begins if begins is None else begins).items():
            async for record in self._partition(TopicPartition(self.topic, number), begin, self.ends[number]):
                yield record

    async def begins_since(self, since_ms: int) -> dict[int, int]:
        """Returns the offset of the first record with this timestamp or a later one, by partition.

        A later record can have an earlier timestamp, so the caller still compares timestamps. A partition without such
        a record begins at its end. The embedded broker cannot search by time, so there every partition begins at its
        beginning.

        Args:
            since_ms: Milliseconds since 1970.

        Raises:
            Exception: the exception of `error`, if the topic cannot be read.
        """
        try:
            found = await self._consumer.offsets_for_times(dict.fromkeys(self._places, max(0, since_ms)))
        except (KafkaError, OSError) as error:
            raise self._unreadable(error) from error
        offsets = {place.partition: None if at is None or at.offset < 0 else at.offset for place, at in found.items()}
        begins = self.begins
        if None in offsets.values() and not is_embedded(await in_request_thread(reach, self._settings)):
            begins = self.ends
        return {number: begins[number] if offset is None else offset for number, offset in offsets.items()}

    async def held_back(self) -> dict[int, HeldBack]:
        """Returns what an open transaction holds back now, by partition; other partitions are left out.

        Raises:
            Exception: the exception of `error`, if the topic cannot be read.
        """
        found: dict[int, HeldBack] = {}
        try:
            async with self._connection("read_uncommitted") as other:
                ends = await other.end_offsets(self._places)
                # Afterwards, so that a transaction that has just ended does not count.
                stable = await self._consumer.end_offsets(self._places)
                for place in [place for place in self._places if stable[place] < ends[place]]:
                    other.assign([place])
                    other.seek(place, stable[place])
                    records = (await other.getmany(timeout_ms=FIRST_WITHIN_MS, max_records=1)).get(place, ())
                    since_ms = records[0].timestamp if records else None
                    found[place.partition] = HeldBack(stable[place], ends[place], since_ms)
        except (KafkaError, OSError) as error:
            raise self._unreadable(error) from error
        return found

    async def time_of_first(self, partition: int) -> int | None:
        """Returns when the first record of a partition was written, in milliseconds since 1970; None without a record.

        Raises:
            Exception: the exception of `error`, if the topic cannot be read.
        """
        async with aclosing(self.records({partition: self.begins[partition]})) as records:
            async for record in records:
                time: int = record.timestamp
                return time
        return None

    async def times(self) -> tuple[int, int] | None:
        """Returns the times of the oldest and the newest record, in milliseconds since 1970; None without a record.

        Only the first and the last records of each partition are read, so both times are approximate if the timestamps
        of a partition do not rise.

        Raises:
            Exception: the exception of `error`, if the topic cannot be read.
        """
        found = [await read(number) for number in self.begins for read in (self.time_of_first, self._time_of_last)]
        times = [time for time in found if time is not None]
        return (min(times), max(times)) if times else None

    async def following(
        self, trouble: Callable[[str], None], *, silent_s: float = UNKNOWN_AFTER_S
    ) -> AsyncIterator[Any]:
        """Yields the records after the ends as they are committed, without end; call it after `records`.

        A broker that stops or moves a partition delays the records and loses none. Where others have replaced all nodes that
        the reader knows, it connects again by the bootstrap servers.

        Args:
            trouble: Receives a sentence when no broker answers, and another when a broker answers again.
            silent_s: Seconds without a record after which the reader asks whether a broker still answers.

        Raises:
            Exception: the exception of `error`, if a broker refuses to return records.
        """
        consumer = self._consumer
        clock = asyncio.get_running_loop()
        for place in self._places:
            consumer.seek(place, self.ends[place.partition])
        consumer.resume(*self._places)
        heard_s = clock.time()
        silent = False
        try:
            while True:
                batches = await consumer.getmany(timeout_ms=500)
                for records in batches.values():
                    for record in records:
                        yield record
                if batches:
                    heard_s = clock.time()
                elif clock.time() - heard_s > silent_s:
                    was_silent = silent
                    silent = await self._unreachable(trouble, known=silent)
                    if was_silent and not silent:
                        trouble(f"{self.topic}: a broker answers again")
                    if not silent and not await answers(consumer):
                        consumer = await self._connect_again(consumer)
                    heard_s = clock.time()
        except (KafkaError, OSError) as error:
            raise self._unreadable(error) from error

    async def _connect_again(self, former: AIOKafkaConsumer) -> AIOKafkaConsumer:
        positions = {place: await former.position(place) for place in self._places}
        await former.stop()
        consumer = self._consumer = self._connection("read_committed")
        await consumer.start()
        consumer.assign(self._places)
        for place, position in positions.items():
            consumer.seek(place, position)
        return consumer

    async def _time_of_last(self, partition: int) -> int | None:
        begin = self.begins[partition]
        end = self.ends[partition]
        start = end
        count = 2
        # The last offsets can be the ends of transactions, and aborted records.
        while start > begin:
            start = max(begin, end - count)
            times: list[int] = [record.timestamp async for record in self.records({partition: start})]
            if times:
                return max(times)
            count *= 2
        return None

    async def _unreachable(self, trouble: Callable[[str], None], *, known: bool) -> bool:
        try:
            await in_request_thread(reach, self._settings)
        except KafkaUnreachableError as error:
            if not known:
                trouble(f"{self.topic}: no new record can be read: {error}; waiting")
            return True
        return False

    async def _partition(self, place: TopicPartition, begin: int, end: int) -> AsyncIterator[Any]:
        consumer = self._consumer
        clock = asyncio.get_running_loop()
        try:
            at = begin
            moved_at_s = clock.time()
            # Without seek the consumer asks for a start offset now, and waits for the answer even if the broker is gone.
            consumer.seek(place, begin)
            consumer.resume(place)
            while at < end:
                for record in (await consumer.getmany(place, timeout_ms=500)).get(place, ()):
                    if record.offset < end:
                        yield record
                if (reached := await consumer.position(place)) > at:
                    at = reached
                    moved_at_s = clock.time()
                elif clock.time() - moved_at_s > STALLED_S:
                    raise self._error(
                        f"{self.topic}[{place.partition}] could not be read from offset {at} to {end} for "
                        f"{STALLED_S:g} s: check that the brokers run and that no transaction hangs "
                        "(`kafka-transactions.sh find-hanging`), and try again"
                    )
            consumer.pause(place)
        except (KafkaError, OSError) as error:
            raise self._unreadable(error) from error

    async def _ends(self) -> Mapping[TopicPartition, int]:
        if not self._up_to_all:
            committed: Mapping[TopicPartition, int] = await self._consumer.end_offsets(self._places)
            return committed
        async with self._connection(
            "read_uncommitted"
            # With this isolation the broker returns the end of the log.
        ) as other:
            ends: Mapping[TopicPartition, int] = await other.end_offsets(self._places)
            return ends

    def _connection(self, isolation_level: str) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            **consumer_options(self._settings),
            enable_auto_commit=False,
            isolation_level=isolation_level,
            # Retention can delete the oldest records during reading.
            auto_offset_reset="earliest",
        )
        install_fast_close(consumer)
        create_no_topics(consumer)
        return consumer

    def _unreadable(self, error: BaseException) -> Exception:
        if isinstance(error, UnreadableBatchError):
            return self._error(str(error))
        return self._error(
            f"{self.topic} cannot be read at {self._settings.kafka_bootstrap_servers}: {error!r}; check that Kafka runs "
            "and that this user is allowed to read the topic"
        )


def _by_number(offsets: Mapping[TopicPartition, int]) -> dict[int, int]:
    return {place.partition: offset for place, offset in offsets.items()}
