"""Where Traceweir reaches into Faust: records come in by the batch, and a partition changes hands through us.

Everything here is an inner part of Faust or aiokafka and may change with any release. So the versions are pinned, and
`verify` says at start if one of these parts does not look as it did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol

import aiokafka
from aiokafka.consumer import fetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.producer.transaction_manager import TransactionManager
from aiokafka.record.default_records import _DefaultRecordBatchPy
from faust.stores.rocksdb import Store
from faust.tables.manager import TableManager
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from rocksdict import WriteBatch, WriteOptions

from traceweir.streams.errors import WorkerError
from traceweir.streams.kafka.fast_close import install_fast_close
from traceweir.streams.kafka.fetch import read_as_parsed
from traceweir.streams.kafka.rejoin import rejoin_on_error
from traceweir.streams.stages.base import Record

PINNED = {"faust-streaming": "0.15.3", "aiokafka": "0.14.0", "mode-streaming": "0.7.1"}
_PARTS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (driver.Consumer, ("_getmany", "_new_consumer_thread", "wait_empty")),
    (driver.AIOKafkaConsumerThread, ("_create_worker_consumer", "_fetch_records", "on_start")),
    (GroupCoordinator, ("_push_error_to_user", "request_rejoin")),
    (TableManager, ("on_rebalance", "on_start", "_update_channels", "recovery")),
    (
        Store,
        ("_db_for_partition", "offset_key", "persisted_offset", "set_persisted_offset"),
    ),
    (TransactionManager, ("maybe_add_partition_to_txn",)),
    (fetcher, ("MemoryRecords", "PartitionRecords")),
    (fetcher.PartitionRecords, ("_consumer_record", "_unpack_records")),
    (_DefaultRecordBatchPy, ("_read_msg",)),
    (aiokafka.AIOKafkaProducer, ("create_batch", "send_batch", "send_offsets_to_transaction")),
)

FETCH_WAIT_MS = 20
"""How long the broker may hold a fetch. Faust's 1.5 s would delay every partition that was left out of a fetch by as much."""
FETCH_BYTES = 100_000
"""How much has to be there for a fetch to return earlier. With 1, under a light load, every few records would be a fetch of their own."""


class IncompatibleFaustError(RuntimeError):
    """Faust or aiokafka is not the one that the checkpoint was written for."""


def verify() -> None:
    """Check versions and parts.

    Raises:
        IncompatibleFaustError: one differs; the message names all that do.
    """
    found = {name: version(name) for name in PINNED}
    problems = [f"{name} is {found[name]}, not {wanted}" for name, wanted in PINNED.items() if found[name] != wanted]
    problems += [
        f"{part.__name__}.{name} is gone" for part, names in _PARTS for name in names if not hasattr(part, name)
    ]
    if problems:
        pins = " ".join(f"{name}=={wanted}" for name, wanted in PINNED.items())
        raise IncompatibleFaustError(
            f"{'; '.join(problems)}. Install what Traceweir was tested with: pip install {pins}"
        )


class End(NamedTuple):
    """How far an input was read when a fetch returned, and the clock of that moment."""

    position: int
    stable: int
    """Offset of the end of what `read_committed` may see."""
    at: float
    """Seconds since 1970 when the broker said so."""


class Intake(Protocol):
    """What takes the records."""

    inputs: Mapping[str, object]

    def full(self, tp: TP) -> bool:
        """Whether to leave the records of this partition where they are."""

    def pending_seeks(self) -> Sequence[tuple[TP, int]]:
        """Partitions that must be read from another offset, each told once."""

    async def take(self, tp: TP, records: Sequence[Record]) -> None:
        """Take a batch of one partition."""

    def dropped(self, tp: TP) -> None:
        """A batch of this partition could not be taken."""

    def fetched(self, ends: Mapping[TP, End]) -> None:
        """A fetch has returned and its batches are taken."""

    async def revoke(self) -> None:
        """The partitions are about to be given up."""

    async def fail(self, error: BaseException) -> None:
        """The worker cannot go on."""


class _Thread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """The consumer's own thread: reads committed records only, and notes how far each input was read."""

    logger = driver.logger
    ends: Mapping[TP, End] = {}
    intake: Intake

    async def on_start(self) -> None:
        await super().on_start()
        install_fast_close(self._consumer)
        coordinator = self._consumer._coordinator
        coordinator._push_error_to_user = rejoin_on_error(
            coordinator, lambda error: asyncio.run_coroutine_threadsafe(self.intake.fail(error), self.parent_loop)
        )

    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = "read_committed"
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._fetch_min_bytes = FETCH_BYTES
        return consumer

    async def _fetch_records(self, consumer: Any, *args: Any, **kwargs: Any) -> Any:
        records = await super()._fetch_records(consumer, *args, **kwargs)
        # In this thread and before the records are handed over: whoever has taken these records has read this far.
        self.ends = dict(_ends(consumer))
        return records


def _ends(consumer: Any) -> Iterable[tuple[TP, End]]:
    subscription = consumer._subscription.subscription
    if subscription is None or subscription.assignment is None:
        return
    for tp in list(subscription.assignment.tps):
        state = subscription.assignment.state_value(tp)
        if state is not None and state.lso is not None and state.has_valid_position:
            # The embedded broker says -1: it knows of no transactions.
            stable = state.lso if state.lso >= 0 else state.highwater
            yield TP(tp.topic, tp.partition), End(state.position, stable, state.timestamp / 1000)


def install(app: Any, intake: Intake, changelog: str) -> None:
    """Hand all records of the intake's inputs to it, in batches, and let it act before partitions are given up.

    The changelog's records are left as they are parsed, too: Faust itself reads none, as the table is caught up before it looks.
    """

    class Consumer(driver.Consumer):  # type: ignore[misc]
        logger = driver.logger

        def _new_consumer_thread(self) -> _Thread:
            thread = _Thread(self, loop=self.loop, beacon=self.beacon)
            thread.intake = intake
            return thread

        async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:
            generation = self.app.consumer_generation_id
            if self.app.tables.actives_ready and self.flow_active:
                # Faust itself seeks nowhere for a partition without a committed offset.
                for tp, offset in intake.pending_seeks():
                    await self.seek(tp, offset)
            full = {tp for tp in active_partitions or () if intake.full(tp)}
            if full and active_partitions is not None:
                active_partitions = active_partitions - full
                timeout = 0.02
                if not active_partitions:  # to aiokafka an empty set means all
                    await self.sleep(0.01)
                    return {}
            records = await super()._getmany(active_partitions, min(timeout, FETCH_WAIT_MS / 1000))
            ends = self._thread.ends
            for place in [place for place in records if place.topic in intake.inputs]:
                batch, tp = records.pop(place), TP(place.topic, place.partition)
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
        # Faust's own waits a second first, for tables that are declared late. Ours is there, and a partition waits for it.
        if not app.tables.should_stop:
            await app.tables._update_channels()
            await app.tables.recovery.start()

    app.tables.on_start = start_tables
    app.transport.Consumer = Consumer
    read_as_parsed({*intake.inputs, changelog})


def _no_log() -> WriteOptions:
    options = WriteOptions()
    options.disable_wal = True
    return options


class LocalRowsError(WorkerError):
    """The local rows of a partition cannot be opened or written; the message says why and what to do."""


class Table:
    """Faust's table of one application, read and written by partition."""

    _source_key = b"__traceweir\0source__"

    def __init__(self, table: Any) -> None:
        self._store = table.data
        self.changelog: str = table.changelog_topic_name

    def open(self, partition: int) -> None:
        """To be called before a partition is read or written: from now on nothing is written ahead of it to a log of its own.

        The changelog is that log. After a crash the rows are those of an earlier moment, all of them, and `reached` says of which.
        """
        with self.translate_errors(partition):
            self._store._db_for_partition(partition).set_write_options(_no_log())

    def rows(self, partition: int) -> dict[bytes, bytes]:
        """All rows of a partition."""
        rows: dict[bytes, bytes] = dict(self._store._db_for_partition(partition).items())
        for hidden in (self._store.offset_key, self._source_key):
            rows.pop(hidden, None)
        return rows

    def read(self, partition: int, key: bytes) -> bytes | None:
        """One row."""
        value: bytes | None = self._store._db_for_partition(partition).get(key)
        return value

    def write(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]], offset: int) -> None:
        """Write committed rows, and that the changelog is written up to this offset, inclusive; all of it or nothing."""
        batch = WriteBatch(raw_mode=True)
        for key, value in rows:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        batch.put(self._store.offset_key, str(offset).encode())
        # A flush in the background that failed shows here: RocksDB then takes no more writes. What is on disk is of one moment.
        with self.translate_errors(partition):
            self._store._db_for_partition(partition).write(batch, _no_log())

    @contextmanager
    def translate_errors(self, partition: int | None = None) -> Iterator[None]:
        """Turn what RocksDB complains of, in the rows of this partition or of any, into what to do.

        Raises:
            LocalRowsError: it has complained.
        """
        try:
            yield
        except Exception as error:
            whose = "local rows" if partition is None else f"partition {partition}: its local rows"
            raise LocalRowsError(
                f"{whose} in {self._store.path} cannot be opened or written ({error}). Nothing is lost: make room or mend the disk, and "
                "start the worker again; if the rows are damaged, delete that folder, and they are rebuilt from the changelog"
            ) from error

    def reached(self, partition: int) -> int:
        """Offset in the changelog up to which, inclusive, the rows are written; -1 if none is."""
        offset = self._store.persisted_offset(TP(self.changelog, partition))
        return -1 if offset is None else int(offset)

    def reach(self, partition: int, offset: int) -> None:
        """Note that the rows up to this offset, inclusive, are written."""
        with self.translate_errors(partition):
            self._store.set_persisted_offset(TP(self.changelog, partition), offset)

    def source(self, partition: int) -> str | None:
        """The id of the changelog that the rows are from; None if nobody has noted it."""
        noted = self.read(partition, self._source_key)
        return None if noted is None else noted.decode()

    def start_over(self, partition: int, source: str) -> int:
        """Throw all rows away, and note which changelog the next ones are from. Returns how many rows there were."""
        db = self._store._db_for_partition(partition)
        keys = set(db.keys())
        count = len(keys - {self._store.offset_key, self._source_key})
        with self.translate_errors(partition):
            db.delete(self._source_key)  # first, so that after a crash in here nobody takes the rest for whole
            for key in keys:
                db.delete(key)
            db.put(self._source_key, source.encode())
        return count
