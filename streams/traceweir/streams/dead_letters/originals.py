"""Reads the whole of a record of which a dead letter keeps the beginning, for as long as its topic has it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import TracebackType

from traceweir.streams.dead_letters.reader import Found
from traceweir.streams.kafka.record_reader import RecordReader
from traceweir.streams.settings import Settings, aiokafka_options
from traceweir.streams.stages.errors import RecordUnavailable
from traceweir.streams.topics import STAGES, Topics
from traceweir.streams.topology import topics_of


class Originals:
    """The inputs of the stages, for as long as the `async with` block lasts; nothing is connected before something is asked."""

    def __init__(self, settings: Settings) -> None:
        topics = Topics.of(settings.topic_prefix)
        self._inputs = {name for stage in STAGES for name in topics_of(stage, topics).inputs}
        self._rereading = RecordReader(aiokafka_options(settings))

    async def __aenter__(self) -> Originals:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._rereading.disconnect()

    async def completed(self, found: Found) -> Found:
        """The dead letter with its value whole, if it was cut and the record is still there, the same by its SHA-256; else as it is."""
        letter = found.letter
        if letter.size is None or letter.topic not in self._inputs:
            return found
        try:
            record = await self._rereading.read(letter.topic, letter.partition, letter.offset)
        except RecordUnavailable:
            return found
        value = record.value if record is not None else None
        if value is None or hashlib.sha256(value).hexdigest() != letter.sha256:
            return found
        return replace(found, letter=replace(letter, value=value, size=None, sha256=None))
