"""Gives scores to a target, and commits what becomes of them together with the offsets of the group."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, Protocol

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError

from traceweir.streams.base.stages.base import Output
from traceweir.streams.tools.export.acceptance import Acceptance
from traceweir.streams.tools.export.checkpoints import ExportTransactions
from traceweir.streams.tools.export.not_taken import Delivered
from traceweir.streams.tools.export.positions import Positions
from traceweir.streams.tools.export.readiness import Readiness
from traceweir.streams.tools.export.source import ExportSource, Found, Sent
from traceweir.streams.tools.export.undelivered import Undelivered

log = logging.getLogger(__name__)


class Target(Protocol[Sent]):
    """Takes scores to another system."""

    max_records: int
    """Maximum number of records of a batch."""

    @property
    def acceptance(self) -> Acceptance:
        """Whether the target takes what it is sent."""
        ...

    async def deliver(self, scores: Sequence[Sent]) -> Delivered:
        """Sends scores, and returns which of them the target has not taken.

        Raises:
            ExportError: the target does not fit.
        """
        ...


class Forwarding(Generic[Found]):
    """Sends scores, new ones and those that wait.

    Args:
        source: What the records are.
        target: Where the scores go.
        undelivered: What waits.
        checkpoints: Commits.
        positions: Where the group stands.
        readiness: Is told of each commit.
    """

    def __init__(
        self,
        source: ExportSource[Found],
        target: Target[Found],
        undelivered: Undelivered[Found],
        checkpoints: ExportTransactions,
        positions: Positions,
        readiness: Readiness,
    ) -> None:
        self._source = source
        self._target = target
        self._undelivered = undelivered
        self._checkpoints = checkpoints
        self._positions = positions
        self._readiness = readiness
        self.counts: Counter[str] = Counter()
        """What was committed since the start: `read`, and of these `unreadable`, `left_out`, and what `Settled` counts. A
        record that is read again after a failed commit counts once."""

    async def send(self, consumer: AIOKafkaConsumer, found: Mapping[TopicPartition, Sequence[Any]]) -> None:
        """Sends the scores of records that were read now, other than those of sessions that wait.

        Args:
            consumer: Owns the partitions.
            found: The records, by partition.

        Raises:
            ExportError: the target does not fit.
            KafkaError: the commit failed.
        """
        scores = list(self._scores(found))
        free, behind = self._undelivered.split(scores)
        delivered = await self._target.deliver(free) if free else Delivered(())
        settled = self._undelivered.settle_new(delivered.not_taken, behind)
        read = sum(map(len, found.values()))
        counts = Counter(read=read, unreadable=read - len(scores), left_out=delivered.left_out)
        offsets = {place: records[-1].offset + 1 for place, records in found.items()}
        await self._write(consumer, settled.outputs, offsets, settled.counts + counts)

    async def send_again(self, consumer: AIOKafkaConsumer, due: Sequence[Found]) -> None:
        """Sends scores that wait.

        Args:
            consumer: Owns their partitions.
            due: The scores, each session's in their order.

        Raises:
            ExportError: the target does not fit.
            KafkaError: the commit failed.
        """
        partitions = {found.partition for found in due}
        # They stay. Kafka compares the member only where offsets are committed: without them a process that was frozen would
        # end what waits at the new owner.
        offsets = {place: offset for place, offset in self._positions.offsets.items() if place.partition in partitions}
        delivered = await self._target.deliver(due)
        settled = self._undelivered.settle_due(due, delivered.not_taken)
        if settled.outputs:
            await self._write(consumer, settled.outputs, offsets, settled.counts + Counter(left_out=delivered.left_out))

    async def _write(
        self,
        consumer: AIOKafkaConsumer,
        outputs: Sequence[Output],
        offsets: Mapping[TopicPartition, int],
        counts: Counter[str],
    ) -> None:
        try:
            with self._readiness.committing():
                await self._checkpoints.write(consumer, outputs, offsets)
            self.counts += counts
            self._positions.note(offsets)
            if not len(self._undelivered):
                self._target.acceptance.forget()
        except (CommitFailedError, IllegalStateError):
            log.info("partitions moved to another process of the group before its offsets; their scores are sent again")

    def _scores(self, found: Mapping[TopicPartition, Sequence[Any]]) -> Iterator[Found]:
        """Yields the scores of records; the others are left out."""
        for place, records in found.items():
            for record in records:
                with suppress(ValueError):
                    yield self._source.read(record.timestamp, place.partition, record.offset, record.value or b"")
