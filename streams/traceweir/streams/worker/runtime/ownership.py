"""Makes this worker the only writer of its partitions: fences their former owners, and claims them.

All partitions of a worker are committed in one transaction, so the transactional id belongs to the worker, and not to a
partition. A new owner knows whom to fence because each partition's rows name their writer:

1. The new owner starts a producer with the transactional id of the partition. Nobody else can claim the partition from
   then on, because claims are written with this id.
2. It reads the changelog, which names the last writer, and starts a producer with the transactional id of that writer.
   Kafka then aborts the writer's open transaction and refuses further ones.
3. It claims the partition: it writes its own name into the changelog, with the transactional id of the partition. Then
   it reads the changelog to its end, with what the former writer has committed before it was fenced.

A writer therefore commits only after its claim, and the next owner knows of each claim, and fences the writer before
its own. A worker takes a new name for each takeover.

No member of the group fences the name of another living member. A takeover goes on outside of the rebalance, but a member
stops its takeover, and commits nothing more under its name, before it joins the group again (`Checkpoints.revoke`). A
generation begins when all its members have joined, so that the names that its takeovers find in the changelog are of
earlier generations. A worker that was expelled and does not know it yet is no member; it can fence a living one, which
then takes its partitions over again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any, Protocol
from uuid import uuid4

from aiokafka import TopicPartition

from traceweir.streams.base.setting_groups.worker import TRANSACTION_TIMEOUT_S
from traceweir.streams.base.stages.base import Rows
from traceweir.streams.base.stages.record_limits import RecordLimits
from traceweir.streams.base.together import together
from traceweir.streams.worker.runtime.checkpoint_rows import WRITER_ROW
from traceweir.streams.worker.runtime.cluster_clock import ClusterClock
from traceweir.streams.worker.runtime.delivery import CheckpointDelivery, Offsets, PlainSends, Transaction, stop_in_time
from traceweir.streams.worker.runtime.row_formats import FORMAT_ROW


class Ownership(Protocol):
    """The right to write the checkpoints of some partitions, from one assignment to the next."""

    @property
    def delivery(self) -> CheckpointDelivery:
        """Sends the checkpoints of all these partitions, after `claim`."""

    @property
    def hands_over(self) -> bool:
        """Whether the delivery tells the offsets of what it has sent before it is committed."""

    async def begin(self, numbers: Collection[int], stepped: Callable[[], object]) -> None:
        """Connects; nobody else can claim these partitions any more. Calls `stepped` after each step."""

    async def claim(self, writers: Collection[str], formats: Mapping[int, int]) -> Mapping[int, int]:
        """Fences the former writers, then makes this worker the writer of the partitions.

        Args:
            writers: The names of the former writers.
            formats: The format in which each partition is written.

        Returns:
            The offset of the claim in each partition of the changelog. Rows before it are final.
        """

    async def compare_clocks(self, ends: Mapping[TopicPartition, int], since: float) -> None:
        """Compares the clock of this worker with the brokers', if a comparison is due.

        Args:
            ends: The offset of the last row of a committed checkpoint in some partitions of the changelog.
            since: A time before its commit, by the clock of this worker.

        Raises:
            ClocksApartError: the clock of this worker is wrong, or that of every broker.
        """

    async def stop(self) -> None:
        """Closes the connections. An open transaction is not committed."""


class ClaimedPartitions:
    """Writes with transactions, and fences former writers.

    Args:
        options: Connection options of aiokafka's clients.
        application: The application id: the consumer group, and the beginning of all transactional ids.
        changelog: The changelog topic.
        timed: Measures a delivery.
        clock: Compares the clock of this worker with the brokers', at the claim and then each minute.
        timeout_s: Seconds after which Kafka aborts a transaction.
        limits: The largest batches that the topics accept.
    """

    hands_over = True

    def __init__(
        self,
        options: Mapping[str, Any],
        application: str,
        changelog: str,
        timed: Callable[[CheckpointDelivery], CheckpointDelivery],
        clock: ClusterClock,
        *,
        timeout_s: float = TRANSACTION_TIMEOUT_S,
        limits: RecordLimits | None = None,
    ) -> None:
        self._application = application
        self._changelog = changelog
        self._transaction = partial(Transaction, options, timeout_s=timeout_s, limits=limits)
        self._name = f"{application}-writer-{uuid4().hex}"
        self._clock = clock
        self._writer = self._transaction(self._name, application)
        self.delivery = timed(self._writer)
        self._claims: dict[int, Transaction] = {}
        self._started: list[CheckpointDelivery] = []
        self._stopped = False
        self._stepped: Callable[[], object] = lambda: None

    async def begin(self, numbers: Collection[int], stepped: Callable[[], object]) -> None:
        """Starts the producer of the worker, and one for the claim of each partition."""
        self._stepped = stepped
        self._claims = {number: self._transaction(f"{self._application}-{number}") for number in numbers}

        async def start(delivery: CheckpointDelivery) -> None:
            await delivery.start()
            self._started.append(delivery)
            stepped()
            if self._stopped:
                await self.stop()

        await together(start(each) for each in (self.delivery, *self._claims.values()))

    async def claim(self, writers: Collection[str], formats: Mapping[int, int]) -> Mapping[int, int]:
        """Starts a producer with the name of each former writer; then writes the name of this worker into the changelog.

        Raises:
            ClocksApartError: the clock of this worker is wrong, or that of every broker; no other row was written.
        """

        async def fence(writer: str) -> None:
            successor = self._transaction(writer)
            await successor.start()
            self._stepped()
            await stop_in_time(successor)

        async def claim(number: int, producer: Transaction) -> tuple[int, int]:
            place = TopicPartition(self._changelog, number)
            # A version that does not read this format must refuse the partition from now on.
            rows: Rows = [(WRITER_ROW, self._name.encode()), (FORMAT_ROW, b"%d" % formats[number])]
            ends = await producer.send({place: rows}, [], {})
            self._stepped()
            if producer in self._started:
                self._started.remove(producer)
                await stop_in_time(producer)
            return number, ends[place]

        await together(fence(writer) for writer in writers)
        since = self._clock.now()
        claims = dict(await together(claim(*each) for each in self._claims.items()))
        ends = {TopicPartition(self._changelog, number): end for number, end in claims.items()}
        await self._clock.compare(self._writer.client, ends, since)
        return claims

    async def compare_clocks(self, ends: Mapping[TopicPartition, int], since: float) -> None:
        """Compares the clocks, once each minute."""
        await self._clock.compare_each_minute(self._writer.client, ends, since)

    async def stop(self) -> None:
        """Closes all producers."""
        self._stopped = True
        started = self._started
        self._started = []
        await together(stop_in_time(each) for each in started)


class SharedPartitions:
    """Writes without transactions, for a broker that cannot fence.

    Args:
        options: Connection options of aiokafka's clients.
        commit: Commits offsets to the consumer group.
        timed: Measures a delivery.
        limits: The largest batches that the topics accept.
    """

    hands_over = False

    def __init__(
        self,
        options: Mapping[str, Any],
        commit: Callable[[Offsets], Awaitable[object]],
        timed: Callable[[CheckpointDelivery], CheckpointDelivery],
        limits: RecordLimits | None = None,
    ) -> None:
        self.delivery = timed(PlainSends(options, commit, limits=limits))

    async def begin(self, numbers: Collection[int], stepped: Callable[[], object]) -> None:
        """Connects."""
        await self.delivery.start()
        stepped()

    async def claim(self, writers: Collection[str], formats: Mapping[int, int]) -> Mapping[int, int]:
        """Claims nothing, because the broker cannot fence."""
        return {}

    async def compare_clocks(self, ends: Mapping[TopicPartition, int], since: float) -> None:
        """Compares nothing, because only transactions tell the time of a broker."""

    async def stop(self) -> None:
        """Closes the connection."""
        await stop_in_time(self.delivery)
