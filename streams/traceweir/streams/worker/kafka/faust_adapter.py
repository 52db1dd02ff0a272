"""Connects Traceweir to the private parts of Faust: delivers records in batches, and reports rebalances.

Every part that is used here is private to Faust or aiokafka and can change with any release. Therefore the versions are
pinned, and `verify` reports at start if one of these parts has changed.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, Protocol

import aiokafka
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer import fetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import TopicPartitionState
from aiokafka.producer.sender import Sender, TxnOffsetCommitHandler
from aiokafka.producer.transaction_manager import TransactionManager
from aiokafka.record import default_records
from aiokafka.record.default_records import _DefaultRecordBatchPy
from faust.assignor import PartitionAssignor
from faust.stores.rocksdb import Store
from faust.tables.manager import TableManager
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode.threads import WorkerThread
from rocksdict import WriteBatch, WriteOptions

from traceweir.streams.base.clock import seconds_now
from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.stages.base import End, Record
from traceweir.streams.worker.kafka.answer_limits import limit_answers
from traceweir.streams.worker.kafka.broker_list import require_broker_list
from traceweir.streams.worker.kafka.consumer_tasks import watch_tasks
from traceweir.streams.worker.kafka.fast_close import install_fast_close
from traceweir.streams.worker.kafka.fetch import PartitionRecords, read_as_parsed
from traceweir.streams.worker.kafka.fetch_pace import space_fetches
from traceweir.streams.worker.kafka.fetch_times import FetchTimes
from traceweir.streams.worker.kafka.partition_assignor import join_for_added_partitions
from traceweir.streams.worker.kafka.rejoin import StaticPlace, end_if_replaced, rejoin_on_error
from traceweir.streams.worker.kafka.steady_thread import SteadyThread
from traceweir.streams.worker.kafka.topic_creation import create_no_topics

PINNED = {"faust-streaming": "0.15.3", "aiokafka": "0.14.0", "mode-streaming": "0.7.1"}
_PARTS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (driver.Consumer, ("_getmany", "_new_consumer_thread", "_seek", "perform_seek", "wait_empty")),
    (
        driver.AIOKafkaConsumerThread,
        (
            "_create_worker_consumer",
            "_ensure_consumer",
            "_fetch_records",
            "_keepalive2",
            "_log_slow_processing_commit",
            "call_thread",
            "on_crash",
            "on_start",
        ),
    ),
    (
        GroupCoordinator,
        ("_coordination_routine", "_do_rejoin_group", "_push_error_to_user", "request_rejoin", "reset_generation"),
    ),
    (AIOKafkaClient, ("_get_conn", "_md_synchronizer", "bootstrap")),
    (AIOKafkaConnection, ("send",)),
    (TopicPartitionState, ("await_reset", "has_valid_position")),
    (
        PartitionAssignor,
        (
            "_compress",
            "_decompress",
            "_get_client_metadata",
            "_global_table_standby_assignments",
            "_perform_assignment",
            "_protocol_assignments",
            "on_assignment",
        ),
    ),
    (TableManager, ("on_actives_ready", "on_rebalance", "on_start", "_update_channels", "recovery")),
    (
        Store,
        ("_db_for_partition", "basename", "offset_key", "path", "persisted_offset"),
    ),
    (TransactionManager, ("error_transaction", "maybe_add_partition_to_txn")),
    (Sender, ("_do_txn_offset_commit", "_find_coordinator")),
    (TxnOffsetCommitHandler, ("create_request", "handle_response")),
    (fetcher, ("MemoryRecords", "PartitionRecords")),
    (fetcher.Fetcher, ("_fetch_requests_routine", "_select_read_replica")),
    (default_records, ("gzip_decode", "lz4_decode", "snappy_decode", "zstd_decode")),
    (PartitionRecords, ("_consumer_record", "_unpack_records")),
    (_DefaultRecordBatchPy, ("_read_msg",)),
    (aiokafka.AIOKafkaProducer, ("create_batch", "send_batch", "send_offsets_to_transaction")),
)

FETCH_WAIT_MS = 100
"""Maximum time for which the broker holds a fetch that finds no records (Faust: 1.5 s).

The watermark moves with the answers, so that a session can close this much later, and a pause (`fetch_pace`), while
nothing comes.
"""
FETCH_BYTES = 1
"""Bytes that let a fetch return earlier: any record does."""


class IncompatibleFaustError(RuntimeError):
    """The installed Faust or aiokafka differs from the version that the checkpoint was written for."""


def verify() -> None:
    """Checks the versions and the private parts of Faust and aiokafka.

    Raises:
        IncompatibleFaustError: a version or a part differs; the message names all differences.
    """
    found = {name: version(name) for name in PINNED}
    problems = [f"{name} is {found[name]}, not {wanted}" for name, wanted in PINNED.items() if found[name] != wanted]
    problems += [
        f"{part.__name__}.{name} does not exist" for part, names in _PARTS for name in names if not hasattr(part, name)
    ]
    if problems:
        pins = " ".join(f"{name}=={wanted}" for name, wanted in PINNED.items())
        raise IncompatibleFaustError(
            f"{'; '.join(problems)}. Install what Traceweir was tested with: pip install {pins}"
        )


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


def _no_log() -> WriteOptions:
    options = WriteOptions()
    options.disable_wal = True
    return options


class LocalRowsError(WorkerError):
    """The local rows of a partition cannot be opened or written; the message contains the reason and the way out."""


class PartitionTable:
    """Reads and writes Faust's table of one application by partition."""

    _source_key = b"__traceweir\0source__"
    _current_key = b"__traceweir\0current__"

    def __init__(self, table: Any) -> None:
        self._store = table.data
        self.changelog: str = table.changelog_topic_name

    def open(self, partition: int) -> None:
        """Opens a partition without RocksDB's write-ahead log. Call this before the partition is read or written.

        The changelog replaces the write-ahead log. After a crash the rows have a consistent earlier state, and
        `reached` returns the changelog offset of this state.
        """
        with self.translate_errors(partition):
            self._store._db_for_partition(partition).set_write_options(_no_log())

    def rows(self, partition: int) -> dict[bytes, bytes]:
        """Returns all rows of a partition."""
        rows: dict[bytes, bytes] = dict(self._store._db_for_partition(partition).items())
        for hidden in self._hidden:
            rows.pop(hidden, None)
        return rows

    def read(self, partition: int, key: bytes) -> bytes | None:
        """Returns one row, or None."""
        value: bytes | None = self._store._db_for_partition(partition).get(key)
        return value

    @property
    def _hidden(self) -> tuple[bytes, ...]:
        return self._store.offset_key, self._source_key, self._current_key

    def write(
        self,
        partition: int,
        rows: Iterable[tuple[bytes, bytes | None]],
        offset: int,
        current_at: float | None = None,
    ) -> None:
        """Writes committed rows and their last changelog offset (inclusive) in one atomic batch.

        Args:
            partition: The partition.
            rows: The rows; None deletes a row.
            offset: The offset.
            current_at: A time, in seconds since 1970, before which no row was written that is missing here; None: the
                time of the former rows holds.
        """
        batch = WriteBatch(raw_mode=True)
        for key, value in rows:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        batch.put(self._store.offset_key, str(offset).encode())
        if current_at is not None:
            batch.put(self._current_key, str(current_at).encode())
        # A failed background flush surfaces here: RocksDB then refuses all writes. The rows on disk stay consistent.
        with self.translate_errors(partition):
            self._store._db_for_partition(partition).write(batch, _no_log())

    @contextmanager
    def translate_errors(self, partition: int | None = None) -> Iterator[None]:
        """Translates RocksDB's errors into a message with the way out.

        Raises:
            LocalRowsError: RocksDB raised an error.
        """
        try:
            yield
        except Exception as error:
            whose = "local rows" if partition is None else f"the local rows of partition {partition}"
            raise LocalRowsError(
                f"{whose} in {self._store.path} cannot be opened or written ({error}). No data is lost: free disk space or "
                "repair the disk, and start the worker again; if the rows are damaged, delete that folder, and the worker "
                "rebuilds it from the changelog"
            ) from error

    def reached(self, partition: int) -> int:
        """Returns the changelog offset up to which the rows are written (inclusive); -1 without rows."""
        offset = self._store.persisted_offset(TP(self.changelog, partition))
        return -1 if offset is None else int(offset)

    def reach(self, partition: int, offset: int, current_at: float) -> None:
        """Notes that the rows are written up to this changelog offset (inclusive), where the changelog ended at a time."""
        self.write(partition, (), offset, current_at)

    def current_at(self, partition: int) -> float | None:
        """Returns a time, in seconds since 1970, before which no row was written that is missing here; None: unknown."""
        noted = self.read(partition, self._current_key)
        return None if noted is None else float(noted)

    def source(self, partition: int) -> str | None:
        """Returns the id of the changelog from which the rows were read; None if the id is unknown."""
        noted = self.read(partition, self._source_key)
        return None if noted is None else noted.decode()

    def discard_all_but(self, partitions: Collection[int]) -> list[int]:
        """Deletes the local rows of all other partitions; returns their numbers."""
        found: list[int] = []
        for file in self._store.path.glob(f"{self._store.basename}-*.db"):
            number = file.stem.rpartition("-")[2]
            if number.isdecimal() and int(number) not in partitions:
                self._store._dbs.pop(int(number), None)
                shutil.rmtree(file, ignore_errors=True)
                found.append(int(number))
        return sorted(found)

    def start_over(self, partition: int, source: str, now: float) -> int:
        """Deletes all rows, notes the changelog of the following rows and the time; returns the number of deleted rows."""
        db = self._store._db_for_partition(partition)
        keys = set(db.keys())
        count = len(keys.difference(self._hidden))
        with self.translate_errors(partition):
            db.delete(
                self._source_key
                # Deleted first: after a crash in this function the remaining rows must not look complete.
            )
            for key in keys:
                db.delete(key)
            db.put(self._current_key, str(now).encode())
            db.put(self._source_key, source.encode())
        return count
