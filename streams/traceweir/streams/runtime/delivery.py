"""How a checkpoint leaves the process: as one Kafka transaction, or, on a broker that has none, as plain sends."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    IncompatibleBrokerVersion,
    InvalidTransactionTimeout,
    KafkaConnectionError,
    KafkaError,
    TransactionalIdAuthorizationFailed,
    UnsupportedVersionError,
)

from traceweir.streams.errors import WorkerError
from traceweir.streams.stages.base import Output, Rows

TRANSACTION_TIMEOUT_MS = 20_000
FENCE_WITHIN_S = 60.0
"""How long the cluster may take to hand out a transactional id. It waits for a former owner's open transaction to end, too."""
MAX_BATCH_BYTES = 1_000_000
"""The largest batch, and so the largest record; under the 1 MiB that brokers accept by default."""

Offsets = Mapping[TopicPartition, int]
_Content = tuple[bytes | None, bytes | None, int | None, list[tuple[str, bytes | None]]]
"""What a batch takes of a record: key, value, timestamp, headers."""


class NoTransactionsError(WorkerError):
    """The cluster gives no transactions to this worker; the message says why and what to do."""


class Delivery(Protocol):
    """Sends the checkpoints of one partition."""

    async def start(self) -> None:
        """Become the only one who may send for this partition, as far as the broker can see to it."""

    async def send(self, rows: Rows, outputs: Sequence[Output], offsets: Offsets) -> int:
        """Send table rows, outputs and source offsets. Returns the last row's offset in the changelog, -1 if there is none.

        When it returns, all of it is committed. When it raises, nobody knows: the caller must give the partition up.
        """

    async def stop(self) -> None:
        """Close the connections. What is not committed is not."""


class Transaction:
    """All of a checkpoint becomes visible to `read_committed` readers at once, or none of it.

    What sends no rows needs no changelog, and what sends no offsets needs no group.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        transactional_id: str,
        group: str | None = None,
        changelog: TopicPartition | None = None,
    ) -> None:
        self._id, self._group, self._changelog = transactional_id, group, changelog
        self._producer = AIOKafkaProducer(
            **options,
            transactional_id=transactional_id,
            max_batch_size=MAX_BATCH_BYTES,
            max_request_size=4 * MAX_BATCH_BYTES,
            linger_ms=0,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            retry_backoff_ms=10,
        )

    async def start(self) -> None:
        """Fence whoever had this transactional id; an open transaction of theirs is aborted.

        Raises:
            NoTransactionsError: the cluster refuses, or does not come to it within a minute.
        """
        try:
            async with asyncio.timeout(FENCE_WITHIN_S):
                await self._producer.start()
        except (KafkaError, TimeoutError) as error:
            with suppress(Exception):
                await self._producer.stop()
            if isinstance(error, KafkaConnectionError):
                raise
            raise NoTransactionsError(_refusal(self._id, error)) from error

    async def send(self, rows: Rows, outputs: Sequence[Output], offsets: Offsets) -> int:
        """Send everything in one transaction."""
        producer, batches = self._producer, _by_partition(outputs)
        if rows:
            batches[self._changelog] = [(key, value, None, []) for key, value in rows]
        await producer.begin_transaction()
        sends = [_send(producer, place, records) for place, records in batches.items()]
        # All partitions in one request before anything else: the broker refuses, for a while, what arrives while one is being added.
        for place in batches:
            producer._txn_manager.maybe_add_partition_to_txn(place)
        ends = dict(zip(batches, await asyncio.gather(*sends), strict=True))
        if offsets:  # after the sends, for the same reason
            await producer.send_offsets_to_transaction(dict(offsets), self._group)
        await producer.commit_transaction()
        last: int = ends.get(self._changelog, -1)
        return last

    async def stop(self) -> None:
        """Close the producer."""
        await self._producer.stop()


class PlainSends:
    """For the embedded broker: rows and outputs first, then the offsets. After a crash some outputs come again, with the same ids."""

    def __init__(
        self,
        options: Mapping[str, Any],
        changelog: TopicPartition | None = None,
        commit: Callable[[Offsets], Awaitable[object]] | None = None,
    ) -> None:
        self._changelog, self._commit = changelog, commit
        self._producer = AIOKafkaProducer(
            **options, acks="all", max_batch_size=MAX_BATCH_BYTES, max_request_size=4 * MAX_BATCH_BYTES
        )

    async def start(self) -> None:
        """Connect. Nothing fences a former owner."""
        await self._producer.start()

    async def send(self, rows: Rows, outputs: Sequence[Output], offsets: Offsets) -> int:
        """Outputs are acknowledged before rows are sent: a row says where to go on from, so it comes last."""
        await self._send_all(_by_partition(outputs))
        ends = await self._send_all({self._changelog: [(key, value, None, []) for key, value in rows]} if rows else {})
        if offsets and self._commit is not None:
            await self._commit(offsets)
        return ends.get(self._changelog, -1)

    async def stop(self) -> None:
        """Close the producer."""
        await self._producer.stop()

    async def _send_all(self, batches: Mapping[TopicPartition, Sequence[_Content]]) -> dict[TopicPartition, int]:
        ends = await asyncio.gather(*(_send(self._producer, place, records) for place, records in batches.items()))
        return dict(zip(batches, ends, strict=True))


def _refusal(transactional_id: str, error: BaseException) -> str:
    what = f"Kafka gives no transactions to {transactional_id!r}"
    if isinstance(error, InvalidTransactionTimeout):
        return (
            f"{what}: the brokers' transaction.max.timeout.ms is below the {TRANSACTION_TIMEOUT_MS} that Traceweir asks for; raise "
            "it (Kafka's default is 900000)"
        )
    if isinstance(error, TransactionalIdAuthorizationFailed):
        return f"{what}: the worker's user needs Write and Describe on the transactional ids that begin with its application id"
    if isinstance(error, TimeoutError):
        return (
            f"{what}: no coordinator answered for {FENCE_WITHIN_S:g} s. A cluster with fewer brokers than its "
            "transaction.state.log.replication.factor cannot make the topic __transaction_state; its brokers' logs say more"
        )
    if isinstance(error, IncompatibleBrokerVersion | UnsupportedVersionError):
        return f"{what}: the cluster has none; use one that has, or accept copies after a crash with TRACEWEIR_DELIVERY=at_least_once"
    return f"{what} ({type(error).__name__}: {error})"


def _by_partition(outputs: Sequence[Output]) -> dict[TopicPartition, list[_Content]]:
    batches: dict[tuple[str, int], list[_Content]] = defaultdict(list)
    for topic, partition, key, value, headers, timestamp in outputs:
        batches[topic, partition].append((key, value, timestamp, [*headers]))
    return {TopicPartition(*place): batch for place, batch in batches.items()}


async def _send(producer: AIOKafkaProducer, place: TopicPartition, records: Sequence[_Content]) -> int:
    """Send records as whole batches to one partition, in order; returns the offset of the last.

    Raises:
        ValueError: a record does not fit a batch.
    """
    acknowledged: list[tuple[asyncio.Future[Any], int]] = []
    at = 0
    while at < len(records):
        batch, start = producer.create_batch(), at
        while at < len(records):
            key, value, timestamp, headers = records[at]
            if batch.append(key=key, value=value, timestamp=timestamp, headers=headers) is None:
                break
            at += 1
        if batch.size() > MAX_BATCH_BYTES:  # a batch takes its first record, whatever its size
            key, value, _, _ = records[start]
            raise ValueError(
                f"a record of {len(value or b'') + len(key or b'')} bytes for {place.topic} does not fit "
                f"a batch of {MAX_BATCH_BYTES} bytes"
            )
        acknowledged.append((await producer.send_batch(batch, place.topic, partition=place.partition), at - start))
    end = -1
    for future, count in acknowledged:
        end = (await future).offset + count - 1  # a batch is answered with the offset of its first record
    return end
