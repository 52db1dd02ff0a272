"""Reads the compacted `references` topic: to its end before any session is scored, then new records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from aiokafka import AIOKafkaConsumer, TopicPartition
from mode import Service
from pydantic import ValidationError

from traceweir.schemas.base import explain
from traceweir.schemas.other_forms import read_reference
from traceweir.schemas.reference import Reference
from traceweir.schemas.text import printable
from traceweir.streams.kafka.broker_list import require_broker_list
from traceweir.streams.kafka.consumer_tasks import failing_with_tasks, watch_tasks
from traceweir.streams.kafka.fast_close import install_fast_close

log = logging.getLogger(__name__)


class ReferenceSink(Protocol):
    """Receives references."""

    def put(self, reference_id: str, reference: Reference | None) -> None:
        """Stores a reference; None removes the reference with this id."""


class ReferenceReader(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Reads all partitions of the topic before it counts as started, and follows the topic afterwards."""

    def __init__(
        self, references: ReferenceSink, topic: str, partitions: int, options: Mapping[str, Any], **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._references, self._topic, self._partitions, self._options = references, topic, partitions, options
        self.count = 0
        """Number of references read so far."""
        self.failed: Callable[[BaseException], object] = lambda error: None
        """Called when the topic cannot be followed any more."""

    async def on_start(self) -> None:
        """Reads the topic to its end."""
        consumer = self._consumer = AIOKafkaConsumer(
            **self._options, enable_auto_commit=False, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        install_fast_close(consumer)
        require_broker_list(consumer)
        await consumer.start()
        async with failing_with_tasks(consumer):
            await self._read_to_the_end(consumer)
        watch_tasks(consumer, self.failed)
        log.info("references: read %d", self.count)

    async def _read_to_the_end(self, consumer: AIOKafkaConsumer) -> None:
        partitions = [TopicPartition(self._topic, number) for number in range(self._partitions)]
        # Both are asked before the first fetch: a broker answers the requests of a connection one after the other, and a
        # fetch from an empty partition waits half a second for a record.
        begins, ends = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        for place, begin in begins.items():
            consumer.seek(place, begin)
        for place, end in ends.items():
            while await consumer.position(place) < end:
                self._take(await consumer.getmany(place, timeout_ms=100))

    async def on_stop(self) -> None:
        """Disconnects."""
        await self._consumer.stop()

    @Service.task  # type: ignore[untyped-decorator]
    async def _follow(self) -> None:
        while not self.should_stop:
            self._take(await self._consumer.getmany(timeout_ms=500))

    def _take(self, batches: Mapping[TopicPartition, Sequence[Any]]) -> None:
        for records in batches.values():
            for record in records:
                self._take_one(record)

    def _take_one(self, record: Any) -> None:
        where = f"reference at {record.topic}/{record.partition}/{record.offset}"
        try:
            reference = read_reference(record.value) if record.value else None
        except ValidationError as error:
            log.warning("%s is ignored: %s", where, printable(explain(error)))
            return
        key = (record.key or b"").decode(errors="replace")
        name = key or (reference.reference_id if reference else None)
        if name:
            self._references.put(name, reference)
            self.count += 1
        else:
            log.warning("%s is ignored: it has neither a key nor a reference_id", where)
