"""Follows the compacted topics that every score worker reads: to their ends before any session is scored, then on."""

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
from traceweir.streams.configs.log import ConfigLog
from traceweir.streams.configs.records import HOME
from traceweir.streams.kafka.answer_limits import limit_answers
from traceweir.streams.kafka.broker_list import require_broker_list
from traceweir.streams.kafka.consumer_tasks import failing_with_tasks, watch_tasks
from traceweir.streams.kafka.fast_close import install_fast_close
from traceweir.streams.kafka.fetch import read_as_parsed
from traceweir.streams.kafka.topic_creation import create_no_topics
from traceweir.streams.service_tasks import service_task
from traceweir.streams.stages.base import UnreadableBatch

log = logging.getLogger(__name__)


class ReferenceSink(Protocol):
    """Receives references."""

    def put(self, reference_id: str, reference: Reference | None) -> None:
        """Stores a reference; None removes the reference with this id."""


class FollowedTopics(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Reads all partitions of both topics before it counts as started, and follows the topics afterwards.

    Args:
        references: Receives the references.
        configs: Receives the records of the topic `configs`; None: that topic is not read.
        topics: The names of the topics of references and of configs.
        partitions: Number of partitions of each topic.
        options: Connection options of aiokafka's clients.
    """

    def __init__(
        self,
        references: ReferenceSink,
        configs: ConfigLog | None,
        topics: tuple[str, str],
        partitions: int,
        options: Mapping[str, Any],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._references, self._configs, self._partitions, self._options = references, configs, partitions, options
        self._topics = topics if configs is not None else topics[:1]
        self._home = TopicPartition(topics[1], HOME)
        self._references_read = 0
        self.count = 0
        """Number of records read so far."""
        self.failed: Callable[[BaseException], object] = lambda error: None
        """Called when the topics cannot be followed any more."""

    async def on_start(self) -> None:
        """Reads the topics to their ends."""
        read_as_parsed((), batches_of=self._topics[:1])
        consumer = self._consumer = AIOKafkaConsumer(
            **self._options, enable_auto_commit=False, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        install_fast_close(consumer)
        limit_answers(consumer)
        require_broker_list(consumer)
        create_no_topics(consumer)
        await consumer.start()
        async with failing_with_tasks(consumer):
            await self._read_to_the_end(consumer)
        watch_tasks(consumer, self.failed)
        log.info("references: read %d", self._references_read)

    async def _read_to_the_end(self, consumer: AIOKafkaConsumer) -> None:
        partitions = [TopicPartition(topic, number) for topic in self._topics for number in range(self._partitions)]
        await consumer._client.set_topics(self._topics)  # otherwise the next lines wait 0.1 s for each topic
        # Both are asked before the first fetch: a broker answers the requests of a connection one after the other, and a
        # fetch from an empty partition waits half a second for a record.
        begins, ends = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        for place, begin in begins.items():
            consumer.seek(place, begin)
        for place, end in ends.items():
            while await consumer.position(place) < end:
                await self._take(await consumer.getmany(place, timeout_ms=100))

    async def on_stop(self) -> None:
        """Disconnects."""
        await self._consumer.stop()

    @service_task("follows the topics of references and configs")
    async def _follow(self) -> None:
        while not self.should_stop:
            await self._take(await self._consumer.getmany(timeout_ms=500))

    async def _take(self, batches: Mapping[TopicPartition, Sequence[Any]]) -> None:
        configs = self._configs
        for place, records in batches.items():
            take = self._take_reference if configs is None or place.topic == self._topics[0] else configs.take
            for record in records:
                take(record)
            self.count += len(records)
        if configs is not None:
            configs.note_position(await self._consumer.position(self._home))

    def _take_reference(self, record: Any) -> None:
        where = f"reference at {record.topic}/{record.partition}/{record.offset}"
        if isinstance(record, UnreadableBatch):
            log.warning("%s is ignored, with its neighbours: %s", where, record.problem)
            return
        try:
            reference = read_reference(record.value) if record.value else None
        except ValidationError as error:
            log.warning("%s is ignored: %s", where, printable(explain(error)))
            return
        key = (record.key or b"").decode(errors="replace")
        name = key or (reference.reference_id if reference else None)
        if name:
            self._references.put(name, reference)
            self._references_read += 1
        else:
            log.warning("%s is ignored: it has neither a key nor a reference_id", where)
