"""Reads the dead-letter topic from its beginning to the end that it had at the start of reading, in bounded memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

from traceweir.schemas.dead_letter import DeadLetter, marked
from traceweir.schemas.text import printable
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader


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
            raise ValueError(
                f"{printable(text, 100)!r} is not the id of a dead letter; write <partition>:<offset>, for example 2:17"
            )
        return cls(int(partition), int(offset))


@dataclass(frozen=True, slots=True)
class FoundDeadLetter:
    """A dead letter with its id, its timestamp and its state."""

    id: LetterId
    at: int
    """When the dead letter was written, in milliseconds since 1970."""
    letter: DeadLetter
    replayed: bool
    """Whether the record was replayed (sent again)."""


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
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

    def matches(self, found: FoundDeadLetter) -> bool:
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
        self.topic = settings.topics.dead_letters
        self._reader = BoundedReader(settings, self.topic, DeadLettersError, up_to_all=up_to_all)
        self.foreign = 0
        """Number of records read that are not dead letters of Traceweir."""

    async def __aenter__(self) -> DeadLetters:
        await self._reader.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._reader.__aexit__(kind, error, trace)

    async def matching(self, wanted: DeadLetterFilter) -> AsyncIterator[FoundDeadLetter]:
        """Yields the dead letters that `wanted` selects: partition by partition, in the order of their offsets.

        This reads the topic twice, because the mark of a replay comes after the dead letter that it marks.

        Raises:
            DeadLettersError: the topic cannot be read to its end.
        """
        begins = self._begins_for(wanted.ids)
        marks = {number: Marks(begin, self._reader.ends[number]) for number, begin in begins.items()}
        async for record in self._reader.records(begins):
            if (name := marked(record.headers)) is not None:
                marks[record.partition].add(name, record)
        self.foreign = 0
        async for record in self._reader.records(begins):
            if marked(record.headers) is not None:
                continue
            try:
                letter = DeadLetter.read(record.key, record.value, record.headers)
            except ValueError:
                self.foreign += 1
                continue
            replayed = record.offset in marks[record.partition]
            found = FoundDeadLetter(LetterId(record.partition, record.offset), record.timestamp, letter, replayed)
            if wanted.matches(found):
                yield found

    def _begins_for(self, ids: Iterable[LetterId]) -> dict[int, int]:
        """Returns the first offset to read, by partition.

        With ids this is the lowest id of the partition: the mark of a dead letter always comes after the dead letter.
        """
        if not ids:
            return dict(self._reader.begins)
        first: dict[int, int] = {}
        for number, offset in ids:
            first[number] = min(offset, first.get(number, offset))
        return {
            number: max(begin, first[number])
            for number, begin in self._reader.begins.items()
            if number in first and first[number] < self._reader.ends[number]
        }


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
