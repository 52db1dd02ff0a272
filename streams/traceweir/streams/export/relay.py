"""Reads scores in a consumer group, gives them to a target batch by batch, and commits what the target has dealt with.

The offsets are in Kafka, and move only after the target has dealt with a whole batch. A kill costs repetitions, and no
score. A target that is slow or away delays this process alone: nothing is read while a batch waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    IllegalStateError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)

from traceweir.schemas.score import Score
from traceweir.schemas.text import printable
from traceweir.streams.export.errors import ExportError
from traceweir.streams.kafka.broker_list import require_broker_list
from traceweir.streams.kafka.client_options import aiokafka_options
from traceweir.streams.kafka.consumer_tasks import ConsumerTaskEndedError, failing_with_tasks
from traceweir.streams.kafka.errors import KafkaUnreachableError
from traceweir.streams.kafka.fast_close import install_fast_close
from traceweir.streams.kafka.fetch import read_as_parsed
from traceweir.streams.kafka.topic_admin import check_partitions
from traceweir.streams.results.reader import FoundScore
from traceweir.streams.settings import Settings

log = logging.getLogger(__name__)

READ_FOR_S = 0.5
RETRY_AFTER_S = (1.0, 2.0, 5.0, 10.0)
"""Seconds until Kafka is tried again, by the number of failures so far; then the last of them."""
_NEVER_MS = 2**31 - 1
"""The longest time between two reads: a target can be away for days, and the exporter stays in its group."""


class Target(Protocol):
    """Takes scores to another system."""

    max_records: int
    """Maximum number of records of a batch."""

    async def deliver(self, scores: Sequence[FoundScore]) -> None:
        """Returns when each score was accepted, or said to be lost; each session's scores are in their order."""
        ...


class Relay:
    """Brings the scores of the topic `results` to a target, until it is told to stop.

    Args:
        settings: Where Kafka is.
        target: Where the scores go.
        group: The consumer group, which keeps the offsets.
        only_new: Whether a group without offsets begins with the next record, in place of the oldest one.
    """

    def __init__(self, settings: Settings, target: Target, *, group: str, only_new: bool = False) -> None:
        self._settings, self._target, self._group, self._only_new = settings, target, group, only_new
        self._topic = settings.topics.results
        self._batch: asyncio.Task[None] | None = None
        self.leave_within_s = settings.session_timeout_s / 2
        """Seconds that a batch has to end when partitions move; the group waits twice as long for this process."""
        self.counts: Counter[str] = Counter()
        """Since the start: `read`, and of these `unreadable`; `removed`, which retention has removed before."""

    async def run(self, stop: asyncio.Event, stop_within_s: float) -> None:
        """Reads and delivers until `stop` is set, then waits for the batch in work; starts again if Kafka fails.

        Raises:
            KafkaUnreachableError: no broker answered at the start.
            ExportError: at the start the topic was missing or wrong; or the target does not fit.
        """
        if problems := await asyncio.to_thread(check_partitions, self._settings, [self._topic]):
            raise ExportError("\n".join(problems))
        read_as_parsed(())
        failures = 0
        while not stop.is_set():
            read_before = self.counts["read"]
            try:
                await self._follow(stop, stop_within_s)
            except _PASSING as error:
                failures = 0 if self.counts["read"] > read_before else failures
                log.warning("no score is read now: %s", printable(str(error) or repr(error), 1_000))
                wait_s = RETRY_AFTER_S[min(failures, len(RETRY_AFTER_S) - 1)]
                failures += 1
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), wait_s)

    async def _follow(self, stop: asyncio.Event, stop_within_s: float) -> None:
        settings = self._settings
        consumer = AIOKafkaConsumer(
            **aiokafka_options(settings),
            group_id=self._group,
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="none",  # a reset by itself would not say how many records were removed
            session_timeout_ms=int(settings.session_timeout_s * 1000),
            heartbeat_interval_ms=int(settings.heartbeat_interval_s * 1000),
            max_poll_interval_ms=_NEVER_MS,
        )
        install_fast_close(consumer)
        require_broker_list(consumer)
        consumer.subscribe([self._topic], listener=_Ownership(self, consumer))
        try:
            # A start waits for the group without a limit, and a stop signal must not.
            if await _unless(stop, consumer.start()):
                async with failing_with_tasks(consumer):
                    while not stop.is_set():
                        await self._one_batch(consumer, stop, stop_within_s)
        except (GroupAuthorizationFailedError, TopicAuthorizationFailedError) as error:
            raise ExportError(
                f"Kafka does not allow this user to read topic {self._topic!r} in the consumer group {self._group!r} "
                f"({error}): grant Read on both, and start the exporter again"
            ) from error
        finally:
            await self.end_batch(0.0)
            await consumer.stop()

    async def _one_batch(self, consumer: AIOKafkaConsumer, stop: asyncio.Event, stop_within_s: float) -> None:
        try:
            found = await consumer.getmany(timeout_ms=int(READ_FOR_S * 1000), max_records=self._target.max_records)
        except OffsetOutOfRangeError as error:
            await self.begin(consumer, list(error.args[0]) if error.args else consumer.assignment())
            return
        except NoOffsetForPartitionError:
            await self.begin(consumer, consumer.assignment())
            return
        if not found:
            return
        offsets = {place: records[-1].offset + 1 for place, records in found.items()}
        self._batch = asyncio.create_task(self._deliver_and_commit(consumer, found, offsets))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({self._batch, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not self._batch.done():
                log.info("waiting up to %g s for the scores in work", stop_within_s)
                await self.end_batch(stop_within_s)
        finally:
            stopping.cancel()
        if not self._batch.cancelled():
            await self._batch

    async def _deliver_and_commit(
        self, consumer: AIOKafkaConsumer, found: Mapping[TopicPartition, Sequence[Any]], offsets: Mapping[Any, int]
    ) -> None:
        scores = list(self._scores(found))
        await self._target.deliver(scores)
        self.counts["read"] += sum(map(len, found.values()))
        try:
            await consumer.commit(offsets)
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

    async def begin(self, consumer: AIOKafkaConsumer, places: Collection[TopicPartition]) -> None:
        """Sets the position of assigned partitions: the committed offset, or for a new group the beginning or the end."""
        if not places:
            log.info("waiting for a partition: other processes of the group own all of them")
            return
        log.info("took over partitions %s", ", ".join(str(place.partition) for place in sorted(places)))
        begins, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)
        first = {}
        for place in places:
            committed = await consumer.committed(place)
            if committed is None:
                first[place] = ends[place] if self._only_new else begins[place]
                consumer.seek(place, first[place])
            elif begins[place] <= committed <= ends[place]:
                consumer.seek(place, committed)
            else:
                self._tell_removed(place, committed, begins[place], ends[place])
                consumer.seek(place, begins[place])
        if first:  # otherwise a new group would begin later if it ended before its first batch
            await consumer.commit(first)

    async def end_batch(self, within_s: float) -> None:
        """Waits for the batch in work, and then cancels it; its scores are sent again."""
        batch = self._batch
        if batch is None or batch.done():
            return
        await asyncio.wait({batch}, timeout=within_s)
        if not batch.done():
            batch.cancel()
            await asyncio.wait({batch})

    def _tell_removed(self, place: TopicPartition, committed: int, begin: int, end: int) -> None:
        if committed < begin:
            self.counts["removed"] += begin - committed
            log.warning(
                "%s[%d]: the records from offset %d to %d were removed by the topic's retention before they were sent",
                *place, committed, begin,
            )  # fmt: skip
        else:
            log.warning(
                "%s[%d] ends at offset %d, and the group %r is at %d: the topic was deleted and created again, and is "
                "read from its beginning", *place, end, self._group, committed,
            )  # fmt: skip


class _Ownership(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
    """Ends the batch in work before partitions move, so that no other process sends later scores of its sessions first."""

    def __init__(self, relay: Relay, consumer: AIOKafkaConsumer) -> None:
        self._relay, self._consumer = relay, consumer

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Waits for the batch in work, as long as the group waits for this process."""
        await self._relay.end_batch(self._relay.leave_within_s)

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Sets the positions."""
        await self._relay.begin(self._consumer, assigned)


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, object]) -> bool:
    """Does work unless `stop` is set before its end; returns whether it was done."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
            return True
        return False
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.wait({working, stopping})


_PASSING = (KafkaUnreachableError, ConsumerTaskEndedError, KafkaError, OSError)
"""Errors after which a new attempt can succeed."""
