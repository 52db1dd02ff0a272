"""Reads a record whole from its topic when its dead letter keeps only the beginning of the value.

This works as long as the topic still holds the record.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import TracebackType

from traceweir.streams.dead_letters.reader import Found
from traceweir.streams.kafka.client_options import aiokafka_options
from traceweir.streams.kafka.record_reader import RecordReader
from traceweir.streams.settings import Settings
from traceweir.streams.stages.errors import RecordUnavailable
from traceweir.streams.topics import ALL_STAGES
from traceweir.streams.topology import topics_of


class Originals:
    """Reads records from the stages' input topics within an `async with` block. Connects at the first read."""

    def __init__(self, settings: Settings) -> None:
        topics = settings.topics
        self._inputs = {name for stage in ALL_STAGES for name in topics_of(stage, topics).inputs}
        self._reader = RecordReader(aiokafka_options(settings))

    async def __aenter__(self) -> Originals:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._reader.disconnect()

    async def completed(self, found: Found) -> Found:
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
