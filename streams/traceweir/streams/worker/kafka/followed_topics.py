"""Follows the compacted topics that every score worker reads: to their ends before any session is scored, then on."""

from __future__ import annotations

import asyncio
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
from traceweir.streams.base.service_tasks import service_task
from traceweir.streams.base.stages.base import UnreadableBatch
from traceweir.streams.scoring.configs.log import ConfigLog
from traceweir.streams.scoring.configs.records import HOME
from traceweir.streams.scoring.configs.topic_record import ParsedRecord, parsed
from traceweir.streams.worker.kafka.answer_limits import limit_answers
from traceweir.streams.worker.kafka.broker_list import require_broker_list
from traceweir.streams.worker.kafka.consumer_tasks import failing_with_tasks, watch_tasks
from traceweir.streams.worker.kafka.fast_close import install_fast_close
from traceweir.streams.worker.kafka.fetch import read_as_parsed
from traceweir.streams.worker.kafka.topic_creation import create_no_topics

log = logging.getLogger(__name__)

INLINE_BYTES = 16 << 10
"""Maximum size of a config that is parsed in the event loop, in less than 10 ms; larger ones are parsed in a thread."""


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
        self._references = references
        self._configs = configs
        self._partitions = partitions
        self._options = options
        self._topics = topics if configs is not None else topics[:1]
        self._home = TopicPartition(topics[1], HOME)
        self._references_read = 0
        self.count = 0
        """Number of records read, and of configs checked, so far."""
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
        # Otherwise the next lines wait 0.1 s for each topic.
        await consumer._client.set_topics(self._topics)
        # Both are asked before the first fetch: a broker answers the requests of a connection one after the other, and a
        # fetch from an empty partition waits half a second for a record.
        begins = await consumer.beginning_offsets(partitions)
        ends = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        for place, begin in begins.items():
            consumer.seek(place, begin)
        for place, end in ends.items():
            while await consumer.position(place) < end:
                await self._read(await consumer.getmany(place, timeout_ms=100))
        await self._settle(consumer)

    async def on_stop(self) -> None:
        """Disconnects."""
        await self._consumer.stop()

    @service_task("follows the topics of references and configs")
    async def _follow(self) -> None:
        while not self.should_stop:
            # Configs that were replaced are checked one by one, between looks for a newer one.
            has_older = self._configs is not None and self._configs.has_older
            await self._read(await self._consumer.getmany(timeout_ms=0 if has_older else 500))
            await self._settle(self._consumer)
            if self._configs is not None and (name := next(self._configs.unchecked_older(), None)) is not None:
                await self._check(self._configs, name)

    async def _read(self, batches: Mapping[TopicPartition, Sequence[Any]]) -> None:
        for place, records in batches.items():
            for record in records:
                if self._configs is None or place.topic == self._topics[0]:
                    self._take_reference(record)
                else:
                    self._configs.read(await _parsed(record))
            self.count += len(records)

    async def _settle(self, consumer: AIOKafkaConsumer) -> None:
        """Lets the configs count that were read."""
        if self._configs is None:
            return
        for name in self._configs.unchecked():
            await self._check(self._configs, name)
        self._configs.settle()
        self._configs.note_position(await consumer.position(self._home))

    async def _check(self, configs: ConfigLog, name: str) -> None:
        await asyncio.to_thread(configs.check, name)
        self.count += 1

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
        except ValueError as error:
            log.warning("%s is ignored: %s", where, printable(str(error)))
            return
        key = (record.key or b"").decode(errors="replace")
        name = key or (reference.reference_id if reference else None)
        if name:
            self._references.put(name, reference)
            self._references_read += 1
        else:
            log.warning("%s is ignored: it has neither a key nor a reference_id", where)


async def _parsed(record: Any) -> ParsedRecord:
    if len(record.value or b"") > INLINE_BYTES:
        return await asyncio.to_thread(parsed, record)
    # So that the loop goes on between the records of a long batch.
    await asyncio.sleep(0)
    return parsed(record)
