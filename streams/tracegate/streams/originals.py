"""Reads the whole of a record of which a dead letter keeps the beginning, for as long as its topic has it."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from types import TracebackType
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from tracegate.streams.dead_letters import Found
from tracegate.streams.settings import Settings, aiokafka_options
from tracegate.streams.topics import STAGES, Topics

READ_WITHIN_S = 10.0


class Originals:
    """The inputs of the stages, for as long as the `async with` block lasts; nothing is connected before something is asked."""

    def __init__(self, settings: Settings) -> None:
        topics = Topics.of(settings.topic_prefix)
        self._settings = settings
        self._inputs = {name for stage in STAGES for name in topics.inputs_of(stage)}
        self._consumer: AIOKafkaConsumer | None = None

    async def __aenter__(self) -> Originals:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._consumer is not None:
            await self._consumer.stop()

    async def completed(self, found: Found) -> Found:
        """The dead letter with its value whole, if it was cut and the record is still there, the same by its SHA-256; else as it is."""
        letter = found.letter
        if letter.size is None or letter.topic not in self._inputs:
            return found
        place = TopicPartition(letter.topic, letter.partition)
        try:
            async with asyncio.timeout(READ_WITHIN_S):
                record = await self._read(place, letter.offset)
        except (KafkaError, TimeoutError, ValueError):  # no such topic, partition or right: it is not to be had
            return found
        value = record.value if record is not None else None
        if value is None or hashlib.sha256(value).hexdigest() != letter.sha256:
            return found
        return replace(found, letter=replace(letter, value=value, size=None, sha256=None))

    async def _read(self, place: TopicPartition, offset: int) -> Any:
        if self._consumer is None:
            consumer = AIOKafkaConsumer(
                **aiokafka_options(self._settings), enable_auto_commit=False, auto_offset_reset="earliest"
            )
            try:
                await consumer.start()
            except BaseException:
                await consumer.stop()
                raise
            self._consumer = consumer
        consumer = self._consumer
        consumer.assign([place])
        begins, ends = await consumer.beginning_offsets([place]), await consumer.end_offsets([place])
        if not begins[place] <= offset < ends[place]:
            return None
        consumer.seek(place, offset)
        records: list[Any] = []
        while not records:
            records = (await consumer.getmany(place, timeout_ms=500, max_records=1)).get(place, [])
        return records[0] if records[0].offset == offset else None
