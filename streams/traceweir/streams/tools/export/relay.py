"""Reads scores, or alerts, in a consumer group, gives them to a target batch by batch, and commits what the target has dealt with.

The offsets are in Kafka, and move only after the target has dealt with a whole batch, together with what it has not
taken. The topic `exports` keeps them for the case that no process of the group runs for so long that Kafka removes them.
A kill costs repetitions, and no score.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime
from typing import Generic

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

from traceweir.schemas.text import printable
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.export.batch import BatchInWork, done_unless
from traceweir.streams.tools.export.checkpoints import ExportTransactions
from traceweir.streams.tools.export.errors import ExportError
from traceweir.streams.tools.export.forwarding import Forwarding, Target
from traceweir.streams.tools.export.group_consumer import group_consumer
from traceweir.streams.tools.export.group_use import check_group_use
from traceweir.streams.tools.export.positions import Positions
from traceweir.streams.tools.export.problems import ProblemLog
from traceweir.streams.tools.export.readiness import Readiness
from traceweir.streams.tools.export.source import ExportSource, Found
from traceweir.streams.tools.export.undelivered import Undelivered
from traceweir.streams.tools.export.waiting_topic import WaitingTopic
from traceweir.streams.worker.kafka.consumer_tasks import ConsumerTaskEndedError
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.fetch import read_as_parsed
from traceweir.streams.worker.kafka.request_thread import in_request_thread
from traceweir.streams.worker.kafka.silence import LOST_AFTER_S, asking_bootstrap_servers, failing_with_client
from traceweir.streams.worker.kafka.topic_admin import check_partitions

log = logging.getLogger(__name__)

READ_FOR_S = 0.5
AGAIN_AT_ONCE = 32
"""Scores at most that are sent again between two reads: a target that hangs on them holds back what is new for so long."""
RETRY_AFTER_S = (1.0, 2.0, 5.0, 10.0)
"""Seconds until Kafka is tried again, by the number of failures so far; then the last of them."""


class Relay(Generic[Found]):
    """Brings the scores of a topic to a target, until it is told to stop.

    Args:
        settings: Where Kafka is.
        source: What is read; `score` in names stands for one of its records.
        target: Where the scores go.
        group: The consumer group, which keeps the offsets.
        problems: Logs what fails.
        only_new: Whether a group without offsets begins with the next record, in place of the oldest one.
        lost_after_s: Seconds without an answer of Kafka after which its client is started again.
        now: The clock, in UTC.
    """

    def __init__(
        self,
        settings: Settings,
        source: ExportSource[Found],
        target: Target[Found],
        *,
        group: str,
        problems: ProblemLog,
        only_new: bool = False,
        lost_after_s: float = LOST_AFTER_S,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._lost_after_s = lost_after_s
        self._settings = settings
        self._target = target
        self._group = group
        self._topic = source.topic
        self._problems = problems
        self._batch = BatchInWork()
        self._checkpoints = ExportTransactions(settings, group)
        self._undelivered = Undelivered(
            settings, source, WaitingTopic(settings, group, source.key_field), problems, now
        )
        self._positions = Positions(settings, source.topic, group, only_new=only_new)
        self._known: set[int] = set()
        """The partitions whose waiting scores are known; none from the moment on at which partitions begin to move."""
        self._assigned: frozenset[TopicPartition] | None = None
        """What was assigned and has no position yet; None: nothing."""
        self.leave_within_s = settings.session_timeout_s / 2
        """Seconds that a batch has to end when partitions move; the group waits twice as long for this process."""
        self._removed = 0
        self.readiness = Readiness()
        """How far this exporter has come with Kafka."""
        self._forwarding = Forwarding(
            source, target, self._undelivered, self._checkpoints, self._positions, self.readiness
        )

    @property
    def counts(self) -> Counter[str]:
        """Since the start: `removed`, which retention has removed before they were read; and what `Forwarding` counts."""
        return self._forwarding.counts + Counter(removed=self._removed)

    @property
    def waiting(self) -> int:
        """Number of scores that the target has not taken, and that are sent again later."""
        return len(self._undelivered)

    @property
    def waiting_in_memory(self) -> int:
        """Number of those in memory; the others are on the topic `export-waiting` alone."""
        return self._undelivered.loaded

    @property
    def next_attempt(self) -> datetime | None:
        """When a score that waits is sent again; None if none waits."""
        return self._undelivered.next_attempt

    async def run(self, stop: asyncio.Event, stop_within_s: float) -> None:
        """Reads and delivers until `stop` is set, then waits for the batch in work; starts again if Kafka fails.

        Raises:
            KafkaUnreachableError: no broker answered at the start.
            ExportError: at the start the topic was missing or wrong, or the group sends another one; or the target does not
                fit.
        """
        topics = self._settings.topics
        names = [self._topic, topics.export_waiting, topics.dead_letters]
        if problems := await in_request_thread(check_partitions, self._settings, names):
            raise ExportError("\n".join(problems))
        await in_request_thread(check_group_use, self._settings, self._group, self._topic)
        read_as_parsed(())
        failures = 0
        while not stop.is_set():
            read_before = self.counts["read"]
            self._known.clear()
            self._assigned = None
            try:
                async with asking_bootstrap_servers(self._settings, self.readiness.last_answer):
                    is_open = await done_unless(stop, self._open())
                if is_open:
                    await self._follow(stop, stop_within_s)
            except _PASSING as error:
                failures = 0 if self.counts["read"] > read_before else failures
                self.readiness.trouble = f"no score is read now: {printable(str(error) or repr(error), 1_000)}"
                log.warning("%s", self.readiness.trouble)
                wait_s = RETRY_AFTER_S[min(failures, len(RETRY_AFTER_S) - 1)]
                failures += 1
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), wait_s)
            finally:
                await self._undelivered.close()
                self._target.acceptance.forget()
                await self._checkpoints.close()
                await self._positions.close()

    async def _open(self) -> None:
        await self._positions.open()
        self.readiness.last_answer.note(answered=True)
        await self._checkpoints.open()

    async def _follow(self, stop: asyncio.Event, stop_within_s: float) -> None:
        consumer = group_consumer(self._settings, self._group)
        consumer.subscribe([self._topic], listener=_Ownership(self))
        self.readiness.reach("joining")
        last_answer = self.readiness.last_answer
        try:
            # A start waits for the group without a limit, and a stop signal must not.
            async with asking_bootstrap_servers(self._settings, last_answer):
                has_joined = await done_unless(stop, consumer.start())
            if has_joined:
                async with failing_with_client(consumer, lost_after_s=self._lost_after_s, last=last_answer):
                    while not stop.is_set():
                        await self._one_batch(consumer, stop, stop_within_s)
        except (GroupAuthorizationFailedError, TopicAuthorizationFailedError) as error:
            raise ExportError(
                f"Kafka does not allow this user what an exporter in the consumer group {self._group!r} needs ({error}): grant "
                "the rights of docs/access-control.md, and start the exporter again"
            ) from error
        finally:
            self.readiness.reach("stopping" if stop.is_set() else "starting")
            await self._batch.end(0.0)
            await self._positions.write()
            await consumer.stop()

    async def _one_batch(self, consumer: AIOKafkaConsumer, stop: asyncio.Event, stop_within_s: float) -> None:
        if self._assigned is not None:
            assigned = self._assigned
            self._assigned = None
            try:
                await self._begin(consumer, assigned)
            except (CommitFailedError, IllegalStateError):
                log.info("partitions moved again before they had a position")
            return
        if self._known and (load := self._undelivered.begin_load()) is not None:
            await self._batch.run(self._undelivered.load(load), stop, stop_within_s)
            return
        due = self._undelivered.due(AGAIN_AT_ONCE) if self._has_positions() else []
        if due:
            await self._batch.run(self._forwarding.send_again(consumer, due), stop, stop_within_s)
            if stop.is_set() or self._assigned is not None:
                return
        self._pause_or_resume(consumer)
        try:
            read_for_s = 0.0 if due else READ_FOR_S
            found = await consumer.getmany(timeout_ms=int(read_for_s * 1000), max_records=self._target.max_records)
        except OffsetOutOfRangeError as error:
            if self._known:
                await self._begin(consumer, list(error.args[0]) if error.args else consumer.assignment())
            return
        except NoOffsetForPartitionError:
            # Also raised for a fetch that was sent before the positions were set.
            if self._known and (missing := consumer.assignment() - self._positions.offsets.keys()):
                await self._begin(consumer, missing)
            return
        if self._assigned is not None:
            # `_begin` sets the positions back to what is not delivered yet.
            return
        await self._positions.write_if_due()
        # Partitions can have begun to move since the read; then their owner after the move reads these records again.
        if found and self._known:
            await self._batch.run(self._forwarding.send(consumer, found), stop, stop_within_s)

    def _pause_or_resume(self, consumer: AIOKafkaConsumer) -> None:
        if self._undelivered.full:
            self._problems.full(self.waiting)
            consumer.pause(*consumer.assignment())
        else:
            consumer.resume(*consumer.paused())

    async def _begin(self, consumer: AIOKafkaConsumer, places: Collection[TopicPartition]) -> None:
        if not self._known >= {place.partition for place in places}:
            # First, because it waits for the last transaction of the former owner, which can move the offsets.
            self._known = {place.partition for place in consumer.assignment()}
            await self._undelivered.take_over(self._known)
        if self._assigned is None:
            self._removed += await self._positions.begin(consumer, places, self._has_moved)
        if not places or not self._has_moved():
            self.readiness.reach_ready(self._known)

    def _has_positions(self) -> bool:
        return bool(self._known) and self._known <= {place.partition for place in self._positions.offsets}

    def _has_moved(self) -> bool:
        return self._assigned is not None or not self._known

    def note_assignment(self, places: Collection[TopicPartition]) -> None:
        """Lets the next batch set the positions of these partitions, outside of the rebalance.

        aiokafka sends no heartbeat while it waits for the callback of an assignment, and `_begin` asks the brokers some 20
        times: the group would take the partitions away again where the brokers are distant.
        """
        self._assigned = frozenset(places)
        self.readiness.reach("catching up")

    async def leave(self) -> None:
        """Ends the batch in work before partitions move, and writes where the group stands."""
        # First, because the reads go on beside this: without it they would begin the next batch.
        self._known.clear()
        # An assignment that was not begun yet has ended, and the next one can have other partitions.
        self._assigned = None
        self.readiness.reach("joining")
        await self._batch.end(self.leave_within_s)
        await self._positions.write()
        self._positions.forget()
        self._undelivered.forget()
        self._target.acceptance.forget()


class _Ownership(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
    """Ends the batch in work before partitions move, so that no other process sends later scores of its sessions first."""

    def __init__(self, relay: Relay[Found]) -> None:
        self._relay = relay

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Waits for the batch in work, as long as the group waits for this process."""
        await self._relay.leave()

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Lets the relay set the positions."""
        self._relay.note_assignment(assigned)


_PASSING = (KafkaUnreachableError, ConsumerTaskEndedError, KafkaError, OSError)
"""Errors after which a new attempt can succeed."""
