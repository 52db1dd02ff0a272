"""Connects Traceweir to the private parts of Faust: delivers records in batches, and reports rebalances.

Every part that is used here is private to Faust or aiokafka and can change with any release. Therefore the versions are
pinned, and `pinned_parts.verify` reports at start if one of these parts has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import aiokafka
from aiokafka.consumer.subscription_state import TopicPartitionState
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode.threads import WorkerThread

from traceweir.streams.base.clock import seconds_now
from traceweir.streams.base.stages.base import End, Record
from traceweir.streams.worker.kafka.answer_limits import limit_answers
from traceweir.streams.worker.kafka.broker_list import require_broker_list
from traceweir.streams.worker.kafka.consumer_tasks import watch_tasks
from traceweir.streams.worker.kafka.fast_close import install_fast_close
from traceweir.streams.worker.kafka.fetch import read_as_parsed
from traceweir.streams.worker.kafka.fetch_pace import space_fetches
from traceweir.streams.worker.kafka.fetch_times import FetchTimes
from traceweir.streams.worker.kafka.partition_assignor import join_for_added_partitions
from traceweir.streams.worker.kafka.rejoin import StaticPlace, end_if_replaced, rejoin_on_error
from traceweir.streams.worker.kafka.steady_thread import SteadyThread
from traceweir.streams.worker.kafka.topic_creation import create_no_topics

FETCH_WAIT_MS = 100
"""Maximum time for which the broker holds a fetch that finds no records (Faust: 1.5 s).

The watermark moves with the answers, so that a session can close this much later, and a pause (`fetch_pace`), while
nothing comes.
"""
FETCH_BYTES = 1
"""Bytes that let a fetch return earlier: any record does."""


class Intake(Protocol):
    """Receives the records."""

    inputs: Mapping[str, object]
    place: StaticPlace | None
    """The place of a static member; None: a dynamic one."""

    def full(self, tp: TP) -> bool:
        """Returns whether the consumer should stop fetching this partition for now."""

    def pending_seeks(self) -> Sequence[tuple[TP, int]]:
        """Returns partitions with the offset to which the consumer must seek; each is returned once."""

    async def take(self, tp: TP, records: Sequence[Record]) -> None:
        """Takes a batch of one partition."""

    def dropped(self, tp: TP) -> None:
        """Notes that a batch of this partition was dropped."""

    def fetched(self, ends: Mapping[TP, End]) -> None:
        """Notes that a fetch has returned and its batches were taken."""

    def waited(self) -> None:
        """Notes that nothing was fetched for a moment, because all partitions are full."""

    async def out_of_range(self, places: Sequence[TP]) -> None:
        """Notes that the broker does not have the offsets at which these partitions were read."""

    async def revoke(self) -> None:
        """Finishes the work on the partitions before they are revoked."""

    async def fail(self, error: BaseException) -> None:
        """Ends the worker after an error."""

    def report_end(self, error: BaseException) -> None:
        """Logs why the worker ends, at the first call; threads other than that of the worker can call this too."""


class _WorkerThread(WorkerThread):  # type: ignore[misc]
    """Reports the error of the consumer's thread in place of a traceback on stderr."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:  # noqa: BLE001  # the thread ends here, and the service has passed the error on
            self.service.intake.report_end(error)


class _Thread(SteadyThread, driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """The consumer's thread, which reads committed records only and notes how far each partition was read."""

    logger = driver.logger
    Worker = _WorkerThread
    ends: Mapping[TP, End] = {}
    out_of_range: set[TP]
    intake: Intake
    client_rack: str | None = None
    _fetch_times: FetchTimes

    async def on_start(self) -> None:
        self.out_of_range = set()
        await super().on_start()
        install_fast_close(self._consumer)
        coordinator = self._consumer._coordinator
        coordinator._push_error_to_user = rejoin_on_error(coordinator, self._fail, self.intake.place)
        if self.intake.place is not None:
            end_if_replaced(coordinator, self.intake.place, self._fail)
        join_for_added_partitions(self._consumer, self._assignor)
        watch_tasks(self._consumer, self._fail)

    def _fail(self, error: BaseException) -> None:
        asyncio.run_coroutine_threadsafe(self.intake.fail(error), self.parent_loop)

    def on_crash(self, msg: str, *fmt: Any, **kwargs: Any) -> None:
        """Logs the error as a worker does; Faust would print a traceback to stderr."""
        self.intake.report_end(fmt[-1])

    def _log_slow_processing_commit(self, msg: str, *args: Any) -> None:
        """Does nothing: Faust looks for commits of its own, and the offsets of a worker are in its transactions.

        The watchdogs see checkpoints that make no progress.
        """

    def close(self) -> None:
        """Does nothing. Faust calls this when a rebalance meets a worker that stops; the stop closes the consumer.

        Faust's own function closes the client and the coordinator in the event loop of the worker, while the event loop
        of this thread uses them. The worker then ended with SIGSEGV, or did not stop in time.
        """

    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        require_broker_list(consumer)
        create_no_topics(consumer)
        limit_answers(consumer)
        # In this order: a fetch is sent after its pause.
        self._fetch_times = FetchTimes(consumer._client, seconds_now, FETCH_WAIT_MS / 1000)
        space_fetches(consumer._client)
        consumer._isolation_level = "read_committed"
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._fetch_min_bytes = FETCH_BYTES
        consumer._client_rack = self.client_rack
        return consumer

    def join_again(self) -> None:
        """Lets the worker join its group again, as after a lost heartbeat."""
        coordinator = self._ensure_consumer()._coordinator
        self.thread_loop.call_soon_threadsafe(coordinator.request_rejoin)

    async def seek_in_thread(self, tp: TP, offset: int) -> None:
        """Seeks in this thread, because a seek wakes aiokafka's fetch routine in the event loop of this thread.

        Faust seeks in the thread of the worker, and an event loop is not safe for a second thread.
        """
        await self.call_thread(self._seek, tp, offset)

    async def _seek(self, tp: TP, offset: int) -> None:
        consumer = self._ensure_consumer()
        consumer.seek(tp, offset)
        # aiokafka has taken the group's offset before, which the broker may not have any more.
        _out_of_range(consumer, {tp})
        self.out_of_range.discard(tp)

    async def _fetch_records(self, consumer: Any, *args: Any, **kwargs: Any) -> Any:
        records = await super()._fetch_records(consumer, *args, **kwargs)
        # Set in this thread, before the records are passed on, so that the ends belong to these records.
        self.ends = dict(_ends(consumer, self._fetch_times))
        self.out_of_range |= _out_of_range(consumer)
        return records


def _ends(consumer: Any, fetches: FetchTimes) -> Iterable[tuple[TP, End]]:
    subscription = consumer._subscription.subscription
    if subscription is None or subscription.assignment is None:
        return
    for tp in list(subscription.assignment.tps):
        state = subscription.assignment.state_value(tp)
        if state is not None and state.lso is not None and state.has_valid_position:
            # The embedded broker has no transactions and answers -1.
            stable = state.lso if state.lso >= 0 else state.highwater
            # aiokafka discards the answer to a fetch from another position: then the earlier end keeps an earlier time.
            at = min(fetches.read_at(tp), state.timestamp / 1000)
            yield TP(tp.topic, tp.partition), End(state.position, stable, at, state.highwater > stable)


def note_resets() -> None:
    """Lets aiokafka's partitions remember that they have lost a position, because the broker has no such offset."""
    if hasattr(TopicPartitionState, "lost_position"):
        return
    await_reset = TopicPartitionState.await_reset

    def await_reset_and_note(self: Any, strategy: Any) -> None:
        self.lost_position = self.has_valid_position
        await_reset(self, strategy)

    TopicPartitionState.lost_position = False
    TopicPartitionState.await_reset = await_reset_and_note


def _out_of_range(consumer: Any, of: Collection[TP] | None = None) -> set[TP]:
    """Returns those of all partitions, or of these, whose position the broker does not have; each is returned once."""
    subscription = consumer._subscription.subscription
    if subscription is None or subscription.assignment is None:
        return set()
    found = set()
    for tp in list(subscription.assignment.tps):
        state = subscription.assignment.state_value(tp)
        if state is not None and state.lost_position and (of is None or tp in of):
            state.lost_position = False
            found.add(TP(tp.topic, tp.partition))
    return found


def install(app: Any, intake: Intake, changelog: str, client_rack: str | None = None) -> None:
    """Passes the records of the intake's inputs to the intake in batches, and calls the intake before a revocation.

    Changelog records are not copied either: Faust reads none of them, because the table is restored before Faust
    compares the table with its changelog. Faust has no setting for the rack (KIP-392).
    """
    note_resets()

    class Consumer(driver.Consumer):  # type: ignore[misc]
        logger = driver.logger

        def _new_consumer_thread(self) -> _Thread:
            thread = _Thread(self, loop=self.loop, beacon=self.beacon)
            thread.intake = intake
            thread.client_rack = client_rack
            return thread

        def join_again(self) -> None:
            self._thread.join_again()

        async def perform_seek(self) -> None:
            """Does nothing: the intake names every position, and Faust would ask for one committed offset after the other.

            From another region, this would take as many seconds as the worker has partitions of topics.
            """

        async def _seek(self, partition: TP, offset: int) -> None:
            await self._thread.seek_in_thread(partition, offset)

        async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
            generation = self.app.consumer_generation_id
            if self.app.tables.actives_ready and self.flow_active:
                for tp, offset in intake.pending_seeks():
                    await self.seek(tp, offset)
            full = {tp for tp in active_partitions or () if intake.full(tp)}
            if full and active_partitions is not None:
                active_partitions = active_partitions - full
                timeout = 0.02
                # aiokafka reads an empty set as all partitions.
                if not active_partitions:
                    await self.sleep(0.01)
                    intake.waited()
                    return {}
            records = await super()._getmany(active_partitions, min(timeout, FETCH_WAIT_MS / 1000))
            ends = self._thread.ends
            lost = self._thread.out_of_range
            self._thread.out_of_range = set()
            if lost and self.app.tables.actives_ready and self.flow_active:
                await intake.out_of_range(sorted(tp for tp in lost if tp.topic in intake.inputs))
                return {}
            for place in [place for place in records if place.topic in intake.inputs]:
                batch = records.pop(place)
                tp = TP(place.topic, place.partition)
                current = generation == self.app.consumer_generation_id
                if current and self.app.tables.actives_ready and self.flow_active:
                    await intake.take(tp, batch)
                else:
                    intake.dropped(tp)
            intake.fetched(ends)
            return records

        async def wait_empty(self) -> None:
            await intake.revoke()
            await super().wait_empty()

    async def start_tables() -> None:
        # Faust's own function first waits a second for tables that are declared late. Traceweir's table exists already,
        # and partitions would wait.
        if not app.tables.should_stop:
            await app.tables._update_channels()
            await app.tables.recovery.start()

    note_ready = app.tables.on_actives_ready

    def on_actives_ready() -> None:
        # The recovery of an earlier assignment can end while the partitions of the next one are taken over.
        if app.tables.recovery._generation_id == app.consumer_generation_id:
            note_ready()

    app.tables.on_actives_ready = on_actives_ready
    app.tables.on_start = start_tables
    app.transport.Consumer = Consumer
    read_as_parsed({*intake.inputs, changelog}, batches_of=intake.inputs)
