"""Reads scores in a consumer group, gives them to a target batch by batch, and commits what the target has dealt with.

The offsets are in Kafka, and move only after the target has dealt with a whole batch. The topic `exports` keeps them for
the case that no process of the group runs for so long that Kafka removes them. A kill costs repetitions, and no
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
from traceweir.streams.export.kept_offsets import KeptOffsets
from traceweir.streams.export.starting import Found, Start, start_of
from traceweir.streams.kafka.broker_list import require_broker_list
from traceweir.streams.kafka.client_options import consumer_options
from traceweir.streams.kafka.consumer_tasks import ConsumerTaskEndedError
from traceweir.streams.kafka.errors import KafkaUnreachableError
from traceweir.streams.kafka.fast_close import install_fast_close
from traceweir.streams.kafka.fetch import read_as_parsed
from traceweir.streams.kafka.silence import LOST_AFTER_S, failing_with_client
from traceweir.streams.kafka.topic_admin import check_partitions, topic_ids
from traceweir.streams.kafka.topic_creation import create_no_topics
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
        lost_after_s: Seconds without an answer of Kafka after which its client is started again.
    """

    def __init__(
        self,
        settings: Settings,
        target: Target,
        *,
        group: str,
        only_new: bool = False,
        lost_after_s: float = LOST_AFTER_S,
    ) -> None:
        self._lost_after_s = lost_after_s
        self._settings, self._target, self._group, self._only_new = settings, target, group, only_new
        self._topic = settings.topics.results
        self._batch: asyncio.Task[None] | None = None
        self._kept = KeptOffsets(settings, group)
        self._begun: set[TopicPartition] = set()
        self._assigned: frozenset[TopicPartition] | None = None
        """What was assigned and has no position yet; None: nothing."""
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
            self._kept = KeptOffsets(self._settings, self._group)
            self._begun.clear()
            self._assigned = None
            try:
                if await _unless(stop, self._kept.open()):
                    await self._follow(stop, stop_within_s)
            except _PASSING as error:
                failures = 0 if self.counts["read"] > read_before else failures
                log.warning("no score is read now: %s", printable(str(error) or repr(error), 1_000))
                wait_s = RETRY_AFTER_S[min(failures, len(RETRY_AFTER_S) - 1)]
                failures += 1
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), wait_s)
            finally:
                await self._kept.close()

    async def _follow(self, stop: asyncio.Event, stop_within_s: float) -> None:
        settings = self._settings
        consumer = AIOKafkaConsumer(
            **consumer_options(settings),
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
        create_no_topics(consumer)
        consumer.subscribe([self._topic], listener=_Ownership(self))
        try:
            # A start waits for the group without a limit, and a stop signal must not.
            if await _unless(stop, consumer.start()):
                async with failing_with_client(consumer, lost_after_s=self._lost_after_s):
                    while not stop.is_set():
                        await self._one_batch(consumer, stop, stop_within_s)
        except (GroupAuthorizationFailedError, TopicAuthorizationFailedError) as error:
            raise ExportError(
                f"Kafka does not allow this user to read topic {self._topic!r} in the consumer group {self._group!r} "
                f"({error}): grant Read on both, and start the exporter again"
            ) from error
        finally:
            await self.end_batch(0.0)
            await self._kept.write()
            await consumer.stop()

    async def _one_batch(self, consumer: AIOKafkaConsumer, stop: asyncio.Event, stop_within_s: float) -> None:
        if self._assigned is not None:
            assigned, self._assigned = self._assigned, None
            try:
                await self.begin(consumer, assigned)
            except (CommitFailedError, IllegalStateError):
                log.info("partitions moved again before they had a position")
            return
        try:
            found = await consumer.getmany(timeout_ms=int(READ_FOR_S * 1000), max_records=self._target.max_records)
        except OffsetOutOfRangeError as error:
            await self.begin(consumer, list(error.args[0]) if error.args else consumer.assignment())
            return
        except NoOffsetForPartitionError:
            # Also raised for a fetch that was sent before the positions were set.
            if missing := consumer.assignment() - self._begun:
                await self.begin(consumer, missing)
            return
        if self._assigned is not None:
            return  # `begin` sets the positions back to what is not delivered yet
        await self._kept.write_if_due()
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
            self._kept.note({place.partition: offset for place, offset in offsets.items()})
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
        """Sets the position of assigned partitions, and logs where they begin and why."""
        if not places:
            log.info("waiting for a partition: other processes of the group own all of them")
            return
        numbers = [place.partition for place in places]
        topic_id = (await asyncio.to_thread(topic_ids, self._settings, [self._topic])).get(self._topic)
        kept = await self._kept.read(numbers)
        begins, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)
        starts, moved = {}, {}
        for place in sorted(places):
            committed = await consumer.committed(place)
            found = Found(begins[place], ends[place], committed, kept.get(place.partition), topic_id)
            start = starts[place] = start_of(found, only_new=self._only_new)
            consumer.seek(place, start.offset)
            if start.offset != committed:
                moved[place] = start.offset
        if self._assigned is not None:
            return  # the partitions have moved meanwhile
        _log_starts(starts)
        self.counts["removed"] += sum(start.removed for start in starts.values())
        if moved:
            # A new group would otherwise begin later if it ended before its first batch. The offset of a former topic is
            # replaced before its id is; otherwise a start between the two would take it for one of the new topic.
            await consumer.commit(moved)
        self._kept.note({place.partition: start.offset for place, start in starts.items()}, topic_id)
        self._begun |= starts.keys()
        await self._kept.write()

    def note_assignment(self, places: Collection[TopicPartition]) -> None:
        """Lets the next batch set the positions of these partitions, outside of the rebalance.

        aiokafka sends no heartbeat while it waits for the callback of an assignment, and `begin` asks the brokers some 20
        times: the group would take the partitions away again where the brokers are distant.
        """
        self._assigned = frozenset(places)

    async def leave(self) -> None:
        """Ends the batch in work before partitions move, and writes where the group stands."""
        await self.end_batch(self.leave_within_s)
        await self._kept.write()
        self._kept.forget()
        self._begun.clear()

    async def end_batch(self, within_s: float) -> None:
        """Waits for the batch in work, and then cancels it; its scores are sent again."""
        batch = self._batch
        if batch is None or batch.done():
            return
        await asyncio.wait({batch}, timeout=within_s)
        if not batch.done():
            batch.cancel()
            await asyncio.wait({batch})


class _Ownership(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
    """Ends the batch in work before partitions move, so that no other process sends later scores of its sessions first."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Waits for the batch in work, as long as the group waits for this process."""
        await self._relay.leave()

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Lets the relay set the positions."""
        self._relay.note_assignment(assigned)


def _log_starts(starts: Mapping[TopicPartition, Start]) -> None:
    by_reason: dict[tuple[str, bool], list[str]] = {}
    for place, start in starts.items():
        by_reason.setdefault((start.why, start.unusual), []).append(f"{place.topic}[{place.partition}]@{start.offset}")
    for (why, unusual), where in by_reason.items():
        log.log(logging.WARNING if unusual else logging.INFO, "begins at %s: %s", ", ".join(where), why)


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
