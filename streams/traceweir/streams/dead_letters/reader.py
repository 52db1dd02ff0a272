"""Reads the dead-letter topic from its beginning to the end that it had at the start of reading, in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from traceweir.schemas.dead_letter import DeadLetter, marked
from traceweir.streams.kafka.fast_close import install_fast_close
from traceweir.streams.kafka.fetch import read_as_parsed
from traceweir.streams.kafka.topic_admin import check_partitions
from traceweir.streams.settings import Settings, aiokafka_options
from traceweir.streams.topics import Topics

STALLED_S = 60.0
"""Seconds without progress after which reading fails; a killed worker's transaction stays open half as long."""


class DeadLettersError(Exception):
    """Dead letters could not be read or sent again; the message states the reason and the way out."""


class LetterId(NamedTuple):
    """The partition and offset of a dead letter on its topic. The pair identifies the dead letter permanently.

    >>> str(LetterId.parse("2:17"))
    '2:17'
    """

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> LetterId:
        """Returns the id that `<partition>:<offset>` names.

        Raises:
            ValueError: the text has another form.
        """
        partition, colon, offset = text.partition(":")
        if not (colon and _is_number(partition) and _is_number(offset)):
            raise ValueError(f"{text!r} is not the id of a dead letter; write <partition>:<offset>, for example 2:17")
        return cls(int(partition), int(offset))


@dataclass(frozen=True, slots=True)
class Found:
    """A dead letter with its id, its timestamp and its state."""

    id: LetterId
    at: int
    """When the dead letter was written, in milliseconds since 1970."""
    letter: DeadLetter
    replayed: bool
    """Whether the record was replayed (sent again)."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter for dead letters. A field that is empty or None excludes none."""

    ids: frozenset[LetterId] = frozenset()
    reasons: frozenset[str] = frozenset()
    stages: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    """Full names of the topics that the records came from."""
    since: int | None = None
    """Selects dead letters that were written at this time or later, in milliseconds since 1970."""
    until: int | None = None
    """Selects dead letters that were written before this time, in milliseconds since 1970."""

    def matches(self, found: Found) -> bool:
        """Returns whether the filter selects this dead letter."""
        letter = found.letter
        return (
            (not self.ids or found.id in self.ids)
            and (not self.reasons or letter.reason in self.reasons)
            and (not self.stages or letter.stage in self.stages)
            and (not self.topics or letter.topic in self.topics)
            and (self.since is None or found.at >= self.since)
            and (self.until is None or found.at < self.until)
        )


class DeadLetters:
    """Reads the dead letters of a topic prefix, within an `async with` block.

    Args:
        settings: Where Kafka is.
        up_to_all: If true, reading ends after all records that were sent, also those of transactions that are still
            open; reading then waits until these transactions have ended. If false, reading ends after all records that
            were committed.

    Raises:
        KafkaUnreachableError: no broker answers.
        DeadLettersError: the topic is missing or wrong, or cannot be read.
    """

    def __init__(self, settings: Settings, *, up_to_all: bool = False) -> None:
        self._settings, self._up_to_all = settings, up_to_all
        self.topic = Topics.of(settings.topic_prefix).dead_letters
        self.foreign = 0
        """Number of records read that are not dead letters of Traceweir."""

    async def __aenter__(self) -> DeadLetters:
        if problems := await asyncio.to_thread(check_partitions, self._settings, [self.topic]):
            raise DeadLettersError("\n".join(problems))
        # Dead letters keep the headers of unknown senders, and a header name that is not UTF-8 would end
        # confluent-kafka's consumer. Therefore this class reads with aiokafka.
        read_as_parsed(())
        places = [TopicPartition(self.topic, number) for number in range(self._settings.partitions)]
        self._consumer = self._connection("read_committed")
        try:
            await self._consumer.start()
            self._consumer.assign(places)
            self._consumer.pause(*places)
            self._begins: Mapping[TopicPartition, int] = await self._consumer.beginning_offsets(places)
            self._ends: Mapping[TopicPartition, int] = await self._ends_of(places)
        except (KafkaError, OSError) as error:
            await self._consumer.stop()
            raise self._unreadable(error) from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._consumer.stop()

    async def matching(self, wanted: Wanted) -> AsyncIterator[Found]:
        """Yields the dead letters that `wanted` selects: partition by partition, in the order of their offsets.

        This reads the topic twice, because the mark of a replay comes after the dead letter that it marks.

        Raises:
            DeadLettersError: the topic cannot be read to its end.
        """
        begins = self._begins_for(wanted.ids)
        marks = {place.partition: Marks(begin, self._ends[place]) for place, begin in begins.items()}
        async for record in self._records(begins):
            if (name := marked(record.headers)) is not None:
                marks[record.partition].add(name, record)
        self.foreign = 0
        async for record in self._records(begins):
            if marked(record.headers) is not None:
                continue
            try:
                letter = DeadLetter.read(record.key, record.value, record.headers)
            except ValueError:
                self.foreign += 1
                continue
            replayed = record.offset in marks[record.partition]
            found = Found(LetterId(record.partition, record.offset), record.timestamp, letter, replayed)
            if wanted.matches(found):
                yield found

    def _begins_for(self, ids: Iterable[LetterId]) -> dict[TopicPartition, int]:
        """Returns the first offset to read, by partition.

        With ids this is the lowest id of the partition: the mark of a dead letter always comes after the dead letter.
        """
        if not ids:
            return dict(self._begins)
        first: dict[int, int] = {}
        for number, offset in ids:
            first[number] = min(offset, first.get(number, offset))
        return {
            place: max(begin, first[place.partition])
            for place, begin in self._begins.items()
            if place.partition in first and first[place.partition] < self._ends[place]
        }

    async def _records(self, begins: Mapping[TopicPartition, int]) -> AsyncIterator[Any]:
        consumer, clock = self._consumer, asyncio.get_running_loop()
        try:
            for place, begin in begins.items():
                end, at, moved = self._ends[place], begin, clock.time()
                consumer.seek(place, begin)
                consumer.resume(place)
                while at < end:
                    for record in (await consumer.getmany(place, timeout_ms=500)).get(place, ()):
                        if record.offset < end:
                            yield record
                    if (reached := await consumer.position(place)) > at:
                        at, moved = reached, clock.time()
                    elif clock.time() - moved > STALLED_S:
                        raise DeadLettersError(
                            f"{self.topic}[{place.partition}] could not be read from offset {at} to {end} for "
                            f"{STALLED_S:g} s: check that the brokers run and that no transaction hangs "
                            "(`kafka-transactions.sh find-hanging`), and try again"
                        )
                consumer.pause(place)
        except KafkaError as error:
            raise self._unreadable(error) from error

    async def _ends_of(self, places: list[TopicPartition]) -> Mapping[TopicPartition, int]:
        if not self._up_to_all:
            committed: Mapping[TopicPartition, int] = await self._consumer.end_offsets(places)
            return committed
        async with self._connection(
            "read_uncommitted"
        ) as other:  # with this isolation the broker returns the end of the log
            ends: Mapping[TopicPartition, int] = await other.end_offsets(places)
            return ends

    def _connection(self, isolation_level: str) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            **aiokafka_options(self._settings),
            enable_auto_commit=False,
            isolation_level=isolation_level,
            auto_offset_reset="earliest",  # retention can delete the oldest records during reading
        )
        install_fast_close(consumer)
        return consumer

    def _unreadable(self, error: BaseException) -> DeadLettersError:
        return DeadLettersError(
            f"{self.topic} cannot be read at {self._settings.kafka_bootstrap_servers}: {error!r}; check that Kafka runs "
            "and that this user is allowed to read the topic"
        )


class Marks:
    """The set of replayed dead letters of a partition, stored as one bit per offset."""

    def __init__(self, begin: int, end: int) -> None:
        self._begin = begin
        self._bits = bytearray((max(0, end - begin) + 7) // 8)

    def add(self, name: str, record: Any) -> None:
        """Adds the dead letter that a mark names.

        Ignores a mark that does not name an earlier record of its own partition.
        """
        try:
            marks = LetterId.parse(name)
        except ValueError:
            return
        if marks.partition == record.partition and self._begin <= marks.offset < record.offset:
            byte, bit = divmod(marks.offset - self._begin, 8)
            self._bits[byte] |= 1 << bit

    def __contains__(self, offset: int) -> bool:
        byte, bit = divmod(offset - self._begin, 8)
        return bool(self._bits[byte] >> bit & 1)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20
