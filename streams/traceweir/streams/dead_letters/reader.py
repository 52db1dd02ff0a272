"""Reads the dead letters: the topic from its beginning to its end as it was at the start, in bounded memory."""

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
"""How long the topic may not be readable any further. Twice what a transaction of a worker that was killed stays open."""


class DeadLettersError(Exception):
    """Dead letters could not be read or sent again; the message says why, and what to do."""


class LetterId(NamedTuple):
    """Where a dead letter stands on its topic, which names it for good.

    >>> str(LetterId.parse("2:17"))
    '2:17'
    """

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> LetterId:
        """Read `<partition>:<offset>`.

        Raises:
            ValueError: it is something else.
        """
        partition, colon, offset = text.partition(":")
        if not (colon and _is_number(partition) and _is_number(offset)):
            raise ValueError(f"{text!r} is no id of a dead letter; it is <partition>:<offset>, for example 2:17")
        return cls(int(partition), int(offset))


@dataclass(frozen=True, slots=True)
class Found:
    """A dead letter, and where it stands."""

    id: LetterId
    at: int
    """When it was put aside, in milliseconds since 1970."""
    letter: DeadLetter
    replayed: bool
    """Whether it was sent again."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which dead letters are meant. What is empty or None leaves none out."""

    ids: frozenset[LetterId] = frozenset()
    reasons: frozenset[str] = frozenset()
    stages: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    """Full names of the topics that the records came from."""
    since: int | None = None
    """Put aside at this time or later, in milliseconds since 1970."""
    until: int | None = None
    """Put aside before this time."""

    def takes(self, found: Found) -> bool:
        """Whether this one is meant."""
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
    """The dead letters of a prefix, for as long as the `async with` block lasts.

    Args:
        settings: Where Kafka is.
        up_to_all: Whether the end is behind all that was sent, also in transactions that are open as yet. To come so far takes until
            they have ended. Otherwise it is behind all that was committed.

    Raises:
        KafkaUnreachable: no broker answers.
        DeadLettersError: the topic is missing or wrong, or cannot be read.
    """

    def __init__(self, settings: Settings, *, up_to_all: bool = False) -> None:
        self._settings, self._up_to_all = settings, up_to_all
        self.topic = Topics.of(settings.topic_prefix).dead_letters
        self.foreign = 0
        """Records that are not dead letters of ours, among those that were read."""

    async def __aenter__(self) -> DeadLetters:
        if problems := await asyncio.to_thread(check_partitions, self._settings, [self.topic]):
            raise DeadLettersError("\n".join(problems))
        # What is on the topic comes from strangers, and a header name that is not UTF-8 would end confluent-kafka's consumer.
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
        """The dead letters that are meant: partition by partition, in the order in which they were put aside.

        The topic is read twice: a mark stands behind what it marks.

        Raises:
            DeadLettersError: the topic cannot be read to its end.
        """
        begins = self._begins_for(wanted.ids)
        marks = {place.partition: Marks(begin, self._ends[place]) for place, begin in begins.items()}
        async for record in self._records(begins):
            if (name := marked(record.headers)) is not None:
                marks[record.partition].take(name, record)
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
            if wanted.takes(found):
                yield found

    def _begins_for(self, ids: Iterable[LetterId]) -> dict[TopicPartition, int]:
        """Where to begin to read, by partition: if ids are named, at the first of each, as its mark can only be behind it."""
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
                            f"{self.topic}[{place.partition}] cannot be read from offset {at} to {end} for {STALLED_S:g} s: see that "
                            "the brokers run and that no transaction hangs (`kafka-transactions.sh find-hanging`), and try again"
                        )
                consumer.pause(place)
        except KafkaError as error:
            raise self._unreadable(error) from error

    async def _ends_of(self, places: list[TopicPartition]) -> Mapping[TopicPartition, int]:
        if not self._up_to_all:
            committed: Mapping[TopicPartition, int] = await self._consumer.end_offsets(places)
            return committed
        async with self._connection("read_uncommitted") as other:  # the broker tells it the end of the log
            ends: Mapping[TopicPartition, int] = await other.end_offsets(places)
            return ends

    def _connection(self, isolation_level: str) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            **aiokafka_options(self._settings),
            enable_auto_commit=False,
            isolation_level=isolation_level,
            auto_offset_reset="earliest",  # the oldest may go while one reads
        )
        install_fast_close(consumer)
        return consumer

    def _unreadable(self, error: BaseException) -> DeadLettersError:
        return DeadLettersError(
            f"{self.topic} cannot be read at {self._settings.kafka_bootstrap_servers}: {error!r}; see that Kafka runs and that this user "
            "may read the topic"
        )


class Marks:
    """Which dead letters of a partition were replayed: a bit for each offset."""

    def __init__(self, begin: int, end: int) -> None:
        self._begin = begin
        self._bits = bytearray((max(0, end - begin) + 7) // 8)

    def take(self, name: str, record: Any) -> None:
        """Note what a mark says. One that names no record before it in its own partition says nothing."""
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
