"""Reads the state of the alerts from Kafka, and writes it together with the alerts and the offsets."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import TopicAuthorizationFailedError, TransactionalIdAuthorizationFailed
from pydantic import ValidationError

from traceweir.schemas.alert import Alert
from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Output
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.tools.alerts.alert_watch import AlertCut
from traceweir.streams.tools.export.checkpoints import delivery_for
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.member_offsets import Member, member_of
from traceweir.streams.worker.runtime.delivery import NoTransactionsError, PlainSends, Transaction, stop_in_time

log = logging.getLogger(__name__)

HOME = 0
"""The partition of all rows: one process writes them."""


class AlertsError(Exception):
    """Alerts cannot be watched; the message states the reason and the way out."""


def alerts_group(prefix: str) -> str:
    """Returns the consumer group of the process that watches; it is also its transactional id.

    >>> alerts_group("traceweir.")
    'traceweir.alerts'
    """
    return f"{prefix}alerts"


async def read_state(settings: Settings, *, up_to_all: bool = False) -> dict[bytes, bytes]:
    """Returns the rows of the state, by their keys; with `up_to_all` also what open transactions write.

    Raises:
        KafkaUnreachableError: no broker answers.
        AlertsError: the topic is missing or wrong, or cannot be read.
    """
    topic = settings.topics.alerts_state
    async with BoundedReader(settings, topic, AlertsError, partitions=(HOME,), up_to_all=up_to_all) as reader:
        return await _last_values(reader)


async def _last_values(reader: BoundedReader) -> dict[bytes, bytes]:
    rows: dict[bytes, bytes] = {}
    async for record in reader.records():
        if record.value is None:
            rows.pop(record.key, None)
        else:
            rows[record.key or b""] = record.value
    return rows


class StateTopic:
    """The topic `alerts-state`, from `open` to `close`.

    All processes share one transactional id, and only the owner of the partitions opens: it then fences the former owner,
    which may be frozen in a transaction.

    Args:
        settings: Where Kafka is, and how records are delivered.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._group = alerts_group(settings.topic_prefix)
        self._delivery: Transaction | PlainSends | None = None
        self._member: Member | None = None

    async def open(self) -> dict[bytes, bytes]:
        """Fences the former owner; returns the rows of the last write that was finished.

        Raises:
            KafkaUnreachableError: no broker answers, or no coordinator of transactions.
            AlertsError: this user may not write in transactions, or may not read the topic.
            NotReadyError: the settings require transactions that the broker lacks.
        """
        await self.close()
        delivery = await delivery_for(self._settings, self._group, self._group, self._present_member)
        self._delivery = delivery
        try:
            await delivery.start()
        except NoTransactionsError as error:
            if isinstance(error.__cause__, TransactionalIdAuthorizationFailed):
                raise AlertsError(
                    f"Kafka refuses transactions to {self._group!r}: grant this user Write and Describe on this transactional "
                    "id (docs/access-control.md), and start `traceweir alerts run` again"
                ) from error
            raise KafkaUnreachableError(str(error)) from error
        with _tried_again():
            # Waits for the last transaction of the former owner, which Kafka has ended now.
            return await read_state(self._settings, up_to_all=True)

    async def read_raised(self) -> list[Alert]:
        """Returns the alerts whose last record is a raised one, after `open`.

        Raises:
            KafkaUnreachableError: no broker answers.
            AlertsError: this user may not read the topic.
        """
        found = []
        with _tried_again():
            async with BoundedReader(
                self._settings, self._settings.topics.alerts, AlertsError, up_to_all=True
            ) as reader:
                values = await _last_values(reader)
        for value in values.values():
            # The record of another program.
            with suppress(ValidationError):
                found.append(Alert.model_validate_json(value))
        return sorted((each for each in found if each.state == "raised"), key=lambda each: (each.since, each.alert_id))

    async def write(self, consumer: AIOKafkaConsumer, cut: AlertCut, offsets: Mapping[TopicPartition, int]) -> None:
        """Writes what a cut returned, and moves the offsets of the group, which other tools show.

        After an exception the outcome is unknown: the state must be read again.

        Raises:
            CommitFailedError: another process owns the partitions.
            KafkaError: it failed.
            AlertsError: a topic does not exist any more.
        """
        delivery = self._delivery
        if delivery is None:
            raise RuntimeError("a state is written between `open` and `close`")
        topics = self._settings.topics
        outputs = []
        for alert in (*cut.alerts, *(each for each, _ in cut.attributed)):
            key = alert.alert_id.encode()
            outputs.append(Output(topics.alerts, partition_of(key, self._settings.partitions), key, alert.wire()))
        rows = {TopicPartition(topics.alerts_state, HOME): cut.rows}
        try:
            if isinstance(delivery, Transaction):
                self._member = member_of(consumer)
                await delivery.send(rows, outputs, offsets)
            else:
                await delivery.send(rows, outputs, {})
                await consumer.commit(offsets)
        except WorkerError as error:
            raise AlertsError(str(error)) from error

    async def close(self) -> None:
        """Disconnects, also after a failed `open`."""
        delivery = self._delivery
        self._delivery = None
        if delivery is not None:
            await stop_in_time(delivery)

    def _present_member(self) -> Member:
        if self._member is None:
            raise RuntimeError("offsets are committed by `write` alone")
        return self._member


@contextmanager
def _tried_again() -> Iterator[None]:
    """Turns an error of reading into one after which it is tried again, unless the user lacks a right."""
    try:
        yield
    except AlertsError as error:
        if isinstance(error.__cause__, TopicAuthorizationFailedError):
            raise
        raise KafkaUnreachableError(str(error)) from error
