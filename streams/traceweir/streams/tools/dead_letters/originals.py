"""Returns the whole records of dead letters: from the dead letter, or from their topic if it keeps only their beginning.

The latter works as long as the topic still holds the record.
"""

from __future__ import annotations

import hashlib
from asyncio import gather
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from traceweir.schemas.dead_letter import ORIGIN, PREFIX, last_header
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.errors import RecordUnavailable
from traceweir.streams.base.topics import ALL_STAGES
from traceweir.streams.pipeline.topology import topics_of
from traceweir.streams.tools.dead_letters.reader import FoundDeadLetter
from traceweir.streams.worker.kafka.client_options import consumer_options
from traceweir.streams.worker.kafka.fetch import offsets_of, read_as_parsed, records_of
from traceweir.streams.worker.kafka.record_reader import RecordReader


class UnreadableRecordsError(ValueError):
    """The batch of a dead letter still cannot be decompressed; the message says why."""


class Originals:
    """Reads records from the stages' input topics within an `async with` block. Connects at the first read."""

    def __init__(self, settings: Settings) -> None:
        topics = settings.topics
        # The records of dead letters come from the inputs, and those of exporters from the scores.
        self._inputs = {topics.results, *(name for stage in ALL_STAGES for name in topics_of(stage, topics).inputs)}
        self._reader = RecordReader(consumer_options(settings))

    async def __aenter__(self) -> Originals:
        read_as_parsed((), batches_of=self._inputs)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._reader.disconnect()

    async def records(self, found: FoundDeadLetter) -> list[FoundDeadLetter]:
        """Returns the dead letter with its whole value, or one dead letter for each record of its batch.

        A batch that could not be decompressed can be readable now, for example by a later version of Traceweir.

        Raises:
            UnreadableRecordsError: the batch still cannot be decompressed.
        """
        whole = await self.completed(found)
        letter = whole.letter
        if letter.reason != "unreadable_batch":
            return [whole]
        if letter.size is None:
            try:
                records = records_of(letter.value or b"")
            except ValueError as error:
                raise UnreadableRecordsError(str(error)) from None
        elif letter.topic in self._inputs:
            records = await self._read_all(letter.topic, letter.partition, offsets_of(letter.value or b""))
        else:
            records = []
        return [_of_batch(whole, record) for record in records] or [whole]

    async def _read_all(self, topic: str, partition: int, offsets: range) -> Sequence[Any]:
        """Returns the records at these offsets; none if the topic no longer has all of them."""
        try:
            records = await gather(*(self._reader.read(topic, partition, offset) for offset in offsets))
        except RecordUnavailable:
            return []
        return [] if None in records else records

    async def completed(self, found: FoundDeadLetter) -> FoundDeadLetter:
        """Returns the dead letter with the whole value if the value was cut; otherwise returns it unchanged.

        Also returns the dead letter unchanged if the topic no longer holds the record, or holds a record with another
        SHA-256, or if the offset is unknown.
        """
        letter = found.letter
        if letter.size is None or letter.offset < 0 or letter.topic not in self._inputs:
            return found
        try:
            record = await self._reader.read(letter.topic, letter.partition, letter.offset)
        except RecordUnavailable:
            return found
        value = record.value if record is not None else None
        if value is None or hashlib.sha256(value).hexdigest() != letter.sha256:
            return found
        return replace(found, letter=replace(letter, value=value, size=None, sha256=None))


def _of_batch(found: FoundDeadLetter, record: Any) -> FoundDeadLetter:
    """Returns the dead letter that a record of the batch would have alone."""
    letter = replace(
        found.letter,
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=[(name, content) for name, content in record.headers if not name.startswith(PREFIX)],
        size=None,
        sha256=None,
        timestamp=record.timestamp,
        origin=last_header(record.headers, ORIGIN),
    )
    return replace(found, letter=letter)
