"""Sends a checkpoint to Kafka: as one transaction, or as plain sends on a broker without transactions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    IllegalOperation,
    IncompatibleBrokerVersion,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTransactionTimeout,
    InvalidTxnState,
    KafkaConnectionError,
    KafkaError,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
    UnknownProducerId,
    UnsupportedVersionError,
)

from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.setting_groups.worker import TRANSACTION_TIMEOUT_S
from traceweir.streams.base.stages.base import MAX_BATCH_BYTES, Output
from traceweir.streams.base.stages.record_limits import RecordLimits
from traceweir.streams.worker.kafka.answer_limits import limit_answers
from traceweir.streams.worker.kafka.broker_list import require_broker_list
from traceweir.streams.worker.kafka.fast_close import close_producer
from traceweir.streams.worker.kafka.member_offsets import Member, commit_as_member
from traceweir.streams.worker.kafka.topic_creation import create_no_topics
from traceweir.streams.worker.runtime.batches import (
    RowsByPlace,
    outputs_by_place,
    rows_as_records,
    send_each,
)

FENCE_WITHIN_S = 60.0
"""Time limit for starting a transactional producer, including the abort of the former owner's open transaction."""
_stopping: set[asyncio.Future[None]] = set()
STOP_WITHIN_S = 5.0
"""Time limit in seconds for the end of a client that nobody waits for."""
PRODUCER_FORGOTTEN = (InvalidProducerIdMapping, UnknownProducerId, OutOfOrderSequenceNumber, InvalidTxnState)
"""What a transaction raises if Kafka does not know its producer any more, or knows another state of it."""
TRANSACTIONS_ENDED = (ProducerFenced, InvalidProducerEpoch, *PRODUCER_FORGOTTEN)
"""What a transaction raises after which Kafka accepts none from this producer any more, but from a new one."""

Offsets = Mapping[TopicPartition, int]
Firsts = Mapping[TopicPartition, int]
"""By partition, the offset of the first sent record.

A partition is missing if other records can be between the sent ones, or if the broker sets the timestamps.
"""


class CheckpointChanges(NamedTuple):
    """What a checkpoint sends."""

    rows: RowsByPlace
    outputs: Sequence[Output]
    offsets: Offsets


Further = Callable[[Firsts], Awaitable[CheckpointChanges | None]]
"""Called after a part was written. Returns the next part of the same transaction, or None if there is none."""


class NoTransactionsError(WorkerError):
    """The cluster refuses transactions to this worker; the message contains the reason and the way out."""


class CheckpointDelivery(Protocol):
    """Sends checkpoints."""

    async def start(self) -> None:
        """Connects, and fences every earlier delivery of the same name if the broker supports fencing."""

    async def send(
        self, rows: RowsByPlace, outputs: Sequence[Output], offsets: Offsets, further: Further | None = None
    ) -> Mapping[TopicPartition, int]:
        """Sends table rows, outputs and source offsets.

        After a normal return everything is committed. After an exception the outcome is unknown, and the caller must
        drop the partitions.

        Args:
            rows: The rows by partition of the changelog.
            outputs: The outputs.
            offsets: The offsets of the sources, for the consumer group.
            further: Called after each part that was written and not committed yet. A delivery without transactions
                does not call it.

        Returns:
            The offset of the last row in each partition of the changelog.
        """

    async def stop(self) -> None:
        """Closes the connections. An open transaction is not committed."""


class Transaction:
    """Sends a checkpoint in one transaction: `read_committed` readers see all of it, or nothing.

    A caller that sends no offsets needs no group. With `member`, Kafka refuses the offsets of a process that is that member
    of the group no longer (`CommitFailedError`). Kafka aborts a transaction that is open for longer than `timeout_s`
    seconds. No batch is larger than `limits` allow for its topic.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        transactional_id: str,
        group: str | None = None,
        *,
        member: Callable[[], Member] | None = None,
        timeout_s: float = TRANSACTION_TIMEOUT_S,
        limits: RecordLimits | None = None,
    ) -> None:
        self._id = transactional_id
        self._group = group
        self._timeout_ms = int(timeout_s * 1000)
        self._limits = limits or RecordLimits()
        self._producer = AIOKafkaProducer(
            **options,
            transactional_id=transactional_id,
            max_batch_size=MAX_BATCH_BYTES,
            max_request_size=4 * MAX_BATCH_BYTES,
            linger_ms=0,
            transaction_timeout_ms=self._timeout_ms,
            retry_backoff_ms=10,
        )
        require_broker_list(self._producer)
        create_no_topics(self._producer)
        limit_answers(self._producer)
        if member is not None:
            commit_as_member(self._producer, member)
        logging.getLogger("aiokafka.producer.sender").addFilter(_is_unexpected)

    @property
    def client(self) -> Any:
        """The client of aiokafka that sends the requests."""
        return self._producer.client

    async def start(self) -> None:
        """Fences the earlier owner of this transactional id; the broker aborts an open transaction of that owner.

        Raises:
            NoTransactionsError: the cluster refuses, or does not answer within `FENCE_WITHIN_S`.
        """
        try:
            async with asyncio.timeout(FENCE_WITHIN_S):
                await self._producer.start()
        except (KafkaError, TimeoutError) as error:
            await stop_in_time(self)
            if isinstance(error, KafkaConnectionError):
                raise
            raise NoTransactionsError(_refusal(self._id, error, self._timeout_ms)) from error
        except BaseException:
            await stop_in_time(self)
            raise

    async def send(
        self, rows: RowsByPlace, outputs: Sequence[Output], offsets: Offsets, further: Further | None = None
    ) -> Mapping[TopicPartition, int]:
        """Sends everything in one transaction."""
        try:
            return await self._send(CheckpointChanges(rows, outputs, offsets), further)
        except (KafkaError, IllegalOperation, AssertionError) as error:
            reason = self._first_failure() or error
            # aiokafka has wrapped it.
            if isinstance(reason.__cause__, TRANSACTIONS_ENDED):
                reason = reason.__cause__
            if reason is error:
                raise
            raise reason from None

    def _first_failure(self) -> BaseException | None:
        """Returns why the transaction failed; None if it did not.

        After the first failure, for example of a fenced producer, aiokafka refuses each further step of the transaction
        as an operation that is not allowed (`IllegalOperation`, `AssertionError`).
        """
        ended = self._producer._txn_manager.wait_for_transaction_end()
        if ended is None or not ended.done() or ended.cancelled():
            return None
        return ended.exception()  # type: ignore[no-any-return]  # untyped

    async def _send(self, changes: CheckpointChanges, further: Further | None) -> Mapping[TopicPartition, int]:
        ends: dict[TopicPartition, int] = {}
        offsets: dict[TopicPartition, int] = {}
        await self._producer.begin_transaction()
        more: CheckpointChanges | None = changes
        while more is not None:
            batches = outputs_by_place(more.outputs, self._limits) | rows_as_records(more.rows)
            # All partitions are added in one request first: while the broker adds a partition, it refuses other requests.
            for place in batches:
                self._producer._txn_manager.maybe_add_partition_to_txn(place)
            sent = await send_each(self._producer, batches, self._limits)
            ends |= {place: sent[place].last for place in more.rows if place in sent}
            offsets |= more.offsets
            firsts = {place: first for place, (first, _) in sent.items() if first is not None}
            more = await further(firsts) if further is not None else None
        # After the sends: while the broker adds a partition, it refuses other requests.
        if offsets:
            await self._producer.send_offsets_to_transaction(offsets, self._group)
        await self._producer.commit_transaction()
        return ends

    async def stop(self) -> None:
        """Closes the connections."""
        await close_producer(self._producer)


def _is_unexpected(record: logging.LogRecord) -> bool:
    """Returns whether a line of the log is no traceback of an error after which a worker takes a new producer."""
    return record.exc_info is None or not isinstance(record.exc_info[1], TRANSACTIONS_ENDED)


async def stop_in_time(delivery: CheckpointDelivery) -> None:
    """Disconnects, and gives up after `STOP_WITHIN_S`. A caller that is cancelled leaves the end to a task."""
    stopping = asyncio.ensure_future(_stopped(delivery))
    _stopping.add(stopping)
    stopping.add_done_callback(_stopping.discard)
    await asyncio.shield(stopping)


async def _stopped(delivery: CheckpointDelivery) -> None:
    with suppress(TimeoutError, KafkaError):
        await asyncio.wait_for(delivery.stop(), STOP_WITHIN_S)


class PlainSends:
    """Sends a checkpoint without a transaction, for the embedded broker, and single records that need none.

    After a crash some outputs are sent again, with the same ids.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        commit: Callable[[Offsets], Awaitable[object]] | None = None,
        *,
        limits: RecordLimits | None = None,
    ) -> None:
        self._commit = commit
        self._limits = limits or RecordLimits()
        self._producer = AIOKafkaProducer(
            **options, acks="all", max_batch_size=MAX_BATCH_BYTES, max_request_size=4 * MAX_BATCH_BYTES
        )
        require_broker_list(self._producer)
        create_no_topics(self._producer)
        limit_answers(self._producer)

    async def start(self) -> None:
        """Connects, without fencing."""
        await self._producer.start()

    async def send(
        self, rows: RowsByPlace, outputs: Sequence[Output], offsets: Offsets, further: Further | None = None
    ) -> Mapping[TopicPartition, int]:
        """Sends outputs, then rows, then offsets.

        Rows follow the outputs, because the rows contain the offsets from which a new owner continues.
        """
        await send_each(self._producer, outputs_by_place(outputs, self._limits), self._limits)
        sent = await send_each(self._producer, rows_as_records(rows), self._limits)
        if offsets and self._commit is not None:
            await self._commit(offsets)
        return {place: last for place, (_, last) in sent.items()}

    async def stop(self) -> None:
        """Closes the connections."""
        await close_producer(self._producer)


def _refusal(transactional_id: str, error: BaseException, timeout_ms: int) -> str:
    what = f"Kafka refuses transactions to {transactional_id!r}"
    if isinstance(error, InvalidTransactionTimeout):
        return (
            f"{what}: the brokers' transaction.max.timeout.ms is below {timeout_ms}, which "
            f"TRACEWEIR_TRANSACTION_TIMEOUT_S={timeout_ms / 1000:g} needs; raise the former (Kafka's default is 900000), or "
            "lower the latter"
        )
    if isinstance(error, TransactionalIdAuthorizationFailed):
        return (
            f"{what}: the worker's user needs Write and Describe on the transactional ids that begin with its "
            "application id"
        )
    if isinstance(error, TimeoutError):
        return (
            f"{what}: no coordinator answered for {FENCE_WITHIN_S:g} s. A cluster with fewer brokers than its "
            "transaction.state.log.replication.factor cannot create the topic __transaction_state; the brokers' logs "
            "contain the details"
        )
    if isinstance(error, IncompatibleBrokerVersion | UnsupportedVersionError):
        return (
            f"{what}: the cluster does not support transactions; use another cluster, or accept duplicates after a crash "
            "with TRACEWEIR_DELIVERY=at_least_once"
        )
    return f"{what} ({type(error).__name__}: {error})"
