"""Gives scores to a target, and commits what becomes of them together with the offsets of the group."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError

from traceweir.schemas.score import Score
from traceweir.streams.base.stages.base import Output
from traceweir.streams.tools.export.acceptance import Acceptance
from traceweir.streams.tools.export.checkpoints import ExportTransactions
from traceweir.streams.tools.export.not_taken import NotTaken
from traceweir.streams.tools.export.positions import Positions
from traceweir.streams.tools.export.readiness import Readiness
from traceweir.streams.tools.export.undelivered import Undelivered
from traceweir.streams.tools.results.reader import FoundScore

log = logging.getLogger(__name__)


class Target(Protocol):
    """Takes scores to another system."""

    max_records: int
    """Maximum number of records of a batch."""

    @property
    def acceptance(self) -> Acceptance:
        """Whether the target takes what it is sent."""
        ...

    async def deliver(self, scores: Sequence[FoundScore]) -> Sequence[NotTaken]:
        """Returns the scores that the target has not taken; each session's scores are in their order.

        Raises:
            ExportError: the target does not fit.
        """
        ...


class Forwarding:
    """Sends scores, new ones and those that wait.

    Args:
        target: Where the scores go.
        undelivered: What waits.
        checkpoints: Commits.
        positions: Where the group stands.
        readiness: Is told of each commit.
    """

    def __init__(
        self,
        target: Target,
        undelivered: Undelivered,
        checkpoints: ExportTransactions,
        positions: Positions,
        readiness: Readiness,
    ) -> None:
        self._target = target
        self._undelivered = undelivered
        self._checkpoints = checkpoints
        self._positions = positions
        self._readiness = readiness
        self.counts: Counter[str] = Counter()
        """Since the start: `read`, and of these `unreadable`."""

    async def send(self, consumer: AIOKafkaConsumer, found: Mapping[TopicPartition, Sequence[Any]]) -> None:
        """Sends the scores of records that were read now, other than those of sessions that wait.

        Args:
            consumer: Owns the partitions.
            found: The records, by partition.

        Raises:
            ExportError: the target does not fit.
            KafkaError: the commit failed.
        """
        free, behind = self._undelivered.split(list(self._scores(found)))
        outputs = self._undelivered.settle_new(await self._target.deliver(free) if free else (), behind)
        self.counts["read"] += sum(map(len, found.values()))
        await self._write(consumer, outputs, {place: records[-1].offset + 1 for place, records in found.items()})

    async def send_again(self, consumer: AIOKafkaConsumer, due: Sequence[FoundScore]) -> None:
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
        if outputs := self._undelivered.settle_due(due, await self._target.deliver(due)):
            await self._write(consumer, outputs, offsets)

    async def _write(
        self, consumer: AIOKafkaConsumer, outputs: Sequence[Output], offsets: Mapping[TopicPartition, int]
    ) -> None:
        try:
            with self._readiness.committing():
                await self._checkpoints.write(consumer, outputs, offsets)
            self._positions.note(offsets)
            if not len(self._undelivered):
                self._target.acceptance.forget()
        except (CommitFailedError, IllegalStateError):
            log.info("partitions moved to another process of the group before its offsets; their scores are sent again")

    def _scores(self, found: Mapping[TopicPartition, Sequence[Any]]) -> Iterator[FoundScore]:
        for place, records in found.items():
            for record in records:
                try:
                    score = Score.model_validate_json(record.value or b"")
                except ValueError:
                    self.counts["unreadable"] += 1
                else:
                    yield FoundScore(record.timestamp, place.partition, record.offset, score, record.value)
