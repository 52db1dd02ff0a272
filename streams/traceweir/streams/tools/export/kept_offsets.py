"""Keeps where an exporter stands on a compacted topic: Kafka removes the offsets of a group without processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from contextlib import suppress

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError
from pydantic import AwareDatetime, BaseModel, ValidationError

from traceweir.schemas.text import printable
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import exports_topic
from traceweir.streams.tools.export.starting import Kept
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.broker_list import require_broker_list
from traceweir.streams.worker.kafka.client_options import producer_options
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError, TopicsRefusedError
from traceweir.streams.worker.kafka.fast_close import close_producer
from traceweir.streams.worker.kafka.topic_admin import create_named
from traceweir.streams.worker.kafka.topic_creation import create_no_topics

log = logging.getLogger(__name__)

WRITE_EVERY_S = 60.0
"""Seconds between two records of a partition: as much is sent again after a kill, if Kafka has lost the offsets too."""
WRITE_WITHIN_S = 5.0
"""Seconds that Kafka has to acknowledge records, which a rebalance and a stop wait for."""


class _Record(BaseModel):
    """The value of a record; its key is the group, and its partition that of the results."""

    offset: int
    topic_id: str | None
    at: AwareDatetime


class _UnreadableError(Exception):
    """The topic cannot be read."""


class KeptOffsets:
    """Reads and writes where a consumer group stands, from `open` to `close`.

    The offsets of the group in Kafka remain those that count. A user who may not use the topic exports as before, with a
    warning. A record can be older than the group's offset, never newer.

    Args:
        settings: Where Kafka is.
        group: The consumer group.
    """

    def __init__(self, settings: Settings, group: str) -> None:
        self._settings = settings
        self._group = group
        self._topic = exports_topic(settings.topic_prefix)
        self._producer: AIOKafkaProducer | None = None
        self._offsets: dict[int, int] = {}
        self._written: dict[int, int] = {}
        self._topic_id: str | None = None
        self._due_at_s = 0.0

    async def open(self) -> None:
        """Creates the topic if it is missing, and connects.

        Raises:
            KafkaUnreachableError: no broker answers.
            KafkaError: the brokers stopped answering.
        """
        try:
            await asyncio.to_thread(create_named, self._settings, {self._topic: "compact"}, {})
        except TopicsRefusedError as error:
            self._give_up(str(error))
            return
        producer = AIOKafkaProducer(**producer_options(self._settings), acks="all")
        require_broker_list(producer)
        create_no_topics(producer)
        self._producer = producer
        await producer.start()

    async def read(self, partitions: Collection[int]) -> dict[int, Kept]:
        """Returns where the group stood, by partition of the results.

        Raises:
            KafkaUnreachableError: the topic cannot be read now.
        """
        found: dict[int, Kept] = {}
        if self._producer is None:
            return found
        key = self._group.encode()
        try:
            async with BoundedReader(self._settings, self._topic, _UnreadableError, partitions=partitions) as reader:
                async for record in reader.records():
                    if record.key == key and record.value is not None:
                        # The record of another program.
                        with suppress(ValidationError):
                            value = _Record.model_validate_json(record.value)
                            found[record.partition] = Kept(value.offset, value.topic_id, value.at)
        except _UnreadableError as error:
            if not isinstance(error.__cause__, TopicAuthorizationFailedError):
                raise KafkaUnreachableError(str(error)) from error
            await self.close()
            self._give_up(f"this user lacks the right Read on {self._topic}")
        return found

    def note(self, offsets: Mapping[int, int], topic_id: str | None = None) -> None:
        """Notes committed offsets by partition, which `write` writes.

        Args:
            offsets: The offset of the next record.
            topic_id: The id of the topic of the results, where it was asked for.
        """
        self._offsets |= offsets
        self._topic_id = topic_id or self._topic_id

    async def write_if_due(self) -> None:
        """Writes what is new if the last time is `WRITE_EVERY_S` ago."""
        if asyncio.get_running_loop().time() >= self._due_at_s:
            await self.write()

    async def write(self) -> None:
        """Writes what is new, and returns when Kafka has it, or has not acknowledged it in time."""
        self._due_at_s = asyncio.get_running_loop().time() + WRITE_EVERY_S
        new = {number: offset for number, offset in self._offsets.items() if self._written.get(number) != offset}
        if self._producer is None or not new:
            return
        try:
            async with asyncio.timeout(WRITE_WITHIN_S):
                sent = {}
                for number, offset in new.items():
                    value = _Record(offset=offset, topic_id=self._topic_id, at=utc_now()).model_dump_json().encode()
                    sent[number] = await self._producer.send(
                        self._topic, value, key=self._group.encode(), partition=number
                    )
                for number, acknowledged in sent.items():
                    await acknowledged
                    self._written[number] = new[number]
        except TopicAuthorizationFailedError:
            await self.close()
            self._give_up(f"this user lacks the right Write on {self._topic}")
        except (KafkaError, TimeoutError) as error:
            log.warning(
                "where this exporter stands is not on the topic %s yet (%s); it is tried again",
                self._topic, printable(repr(error), 300),
            )  # fmt: skip

    async def close(self) -> None:
        """Disconnects, also after a failed `open`."""
        producer = self._producer
        self._producer = None
        if producer is not None:
            await close_producer(producer)

    def forget(self) -> None:
        """Forgets what was noted: other processes write where the group stands in these partitions."""
        self._offsets.clear()
        self._written.clear()

    def _give_up(self, reason: str) -> None:
        log.warning(
            "where the group %s stands is not kept on the topic %s: %s. If no exporter of the group runs for longer than the "
            "brokers' offsets.retention.minutes (a week), the next one begins as a new group does",
            self._group, self._topic, printable(reason, 500),
        )  # fmt: skip
