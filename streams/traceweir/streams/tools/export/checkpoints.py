"""Commits the offsets of an exporter together with what is written about the scores before them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    IncompatibleBrokerVersion,
    InvalidTransactionTimeout,
    TransactionalIdAuthorizationFailed,
    UnsupportedVersionError,
)

from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Output
from traceweir.streams.tools.export.errors import ExportError
from traceweir.streams.worker.kafka.client_options import producer_options
from traceweir.streams.worker.kafka.embedded_broker import is_embedded
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.member_offsets import Member, member_of
from traceweir.streams.worker.kafka.request_thread import in_request_thread
from traceweir.streams.worker.kafka.topic_admin import reach
from traceweir.streams.worker.runtime.delivery import NoTransactionsError, PlainSends, Transaction, stop_in_time
from traceweir.streams.worker.runtime.transactions import usable_transactions

_LASTING = (IncompatibleBrokerVersion, InvalidTransactionTimeout, UnsupportedVersionError)
"""What refuses transactions until somebody changes the cluster or the settings. All else can pass, as an outage does."""

Connect = Callable[[Settings, str, str, Callable[[], Member]], Awaitable[Transaction | PlainSends]]
"""Has the parameters of `delivery_for`, and its result."""


class ExportTransactions:
    """Writes records and offsets in one transaction; on the embedded broker records first, then the offsets.

    Args:
        settings: Where Kafka is, and how scores are delivered.
        group: The consumer group, whose offsets move.
        connect: Returns what writes to the broker, before its start.
    """

    def __init__(self, settings: Settings, group: str, *, connect: Connect | None = None) -> None:
        self._settings = settings
        self._connect = connect or delivery_for
        self._group = group
        # Each process has an id of its own: two processes of the group must not fence each other.
        self._id = f"{group}-{uuid4().hex[:12]}"
        self._delivery: Transaction | PlainSends | None = None
        self._member: Member | None = None
        self._unfinished = False
        """Whether a write was cancelled or failed, and no new connection was made since: its transaction can be open."""

    async def open(self) -> None:
        """Connects, and ends a transaction of this process that is still open.

        Raises:
            KafkaUnreachableError: no broker answers, or no coordinator of transactions.
            ExportError: the cluster refuses transactions to this exporter.
            NotReadyError: the settings require transactions that the broker lacks.
        """
        self._delivery = await self._connect(self._settings, self._id, self._group, self._present_member)
        try:
            await self._delivery.start()
        except NoTransactionsError as error:
            if isinstance(error.__cause__, TransactionalIdAuthorizationFailed):
                raise ExportError(
                    f"Kafka refuses transactions to {self._id!r}: grant this user Write and Describe on the transactional "
                    f"ids that begin with '{self._group}-' (docs/access-control.md), and start the exporter again"
                ) from error
            if isinstance(error.__cause__, _LASTING):
                raise ExportError(str(error)) from error
            raise KafkaUnreachableError(str(error)) from error
        self._unfinished = False

    async def write(
        self, consumer: AIOKafkaConsumer, outputs: Sequence[Output], offsets: Mapping[TopicPartition, int]
    ) -> None:
        """Writes records and moves offsets; after an exception the outcome is unknown.

        Args:
            consumer: Owns the partitions.
            outputs: The records.
            offsets: The offsets of the partitions that the records are about, also where they stay: without them Kafka
                accepts the records of a process whose partitions others have.

        Raises:
            CommitFailedError: partitions have moved to another process. In a transaction nothing is written then.
            KafkaError: it failed.
            ExportError: a topic does not exist any more.
        """
        if self._unfinished:
            await self.close()
            await self.open()
        delivery = self._delivery
        if delivery is None:
            raise RuntimeError("a checkpoint is written between `open` and `close`")
        if offsets and isinstance(delivery, Transaction):
            self._member = member_of(consumer)
        self._unfinished = True
        try:
            if isinstance(delivery, Transaction):
                await delivery.send({}, outputs, offsets)
            else:
                # Tombstones last: a row is removed only after the dead letter that takes its place is written.
                kept = [each for each in outputs if each.value is not None]
                for batch in (kept, [each for each in outputs if each.value is None]):
                    if batch:
                        await delivery.send({}, batch, {})
        except CommitFailedError:
            # Ends the transaction, for which the new owner of the partitions waits.
            await self.close()
            await self.open()
            raise
        except WorkerError as error:
            raise ExportError(str(error)) from error
        if offsets and not isinstance(delivery, Transaction):
            await consumer.commit(offsets)
        self._unfinished = False

    def _present_member(self) -> Member:
        if self._member is None:
            raise RuntimeError("offsets are committed by `write` alone")
        return self._member

    async def close(self) -> None:
        """Disconnects, also after a failed `open`."""
        delivery = self._delivery
        self._delivery = None
        if delivery is not None:
            await stop_in_time(delivery)


async def delivery_for(
    settings: Settings, transactional_id: str, group: str, member: Callable[[], Member]
) -> Transaction | PlainSends:
    """Returns what writes records and offsets to this broker: a transaction, or on the embedded broker plain sends.

    Args:
        settings: Where Kafka is, and how scores are delivered.
        transactional_id: The id of the transactions.
        group: The consumer group, whose offsets move.
        member: Returns the member of the group that commits.

    Raises:
        KafkaUnreachableError: no broker answers.
        NotReadyError: the settings require transactions that the broker lacks.
    """
    embedded = is_embedded(await in_request_thread(reach, settings))
    has_transactions = await in_request_thread(partial(usable_transactions, settings, embedded=embedded))
    options = producer_options(settings)
    if not has_transactions:
        return PlainSends(options)
    timeout_s = settings.transaction_timeout_s
    return Transaction(options, transactional_id, group, member=member, timeout_s=timeout_s)
