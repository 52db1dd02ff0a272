"""Reads the output topics from the offsets in the store, and writes what they contain to the store, batch by batch."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from traceweir.schemas.text import printable
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import Topics
from traceweir.streams.board.dashboard.withdrawals import Withdrawals
from traceweir.streams.board.store.errors import StoreError, StoreUnavailableError
from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.rows import Batch, RowReader, SourcePartition
from traceweir.streams.board.store.tables import TableName
from traceweir.streams.worker.kafka.broker_list import require_broker_list
from traceweir.streams.worker.kafka.client_options import consumer_options
from traceweir.streams.worker.kafka.cluster import Cluster
from traceweir.streams.worker.kafka.consumer_tasks import ConsumerTaskEndedError
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.fast_close import install_fast_close
from traceweir.streams.worker.kafka.fetch import read_as_parsed
from traceweir.streams.worker.kafka.log_facts import tombstones_s
from traceweir.streams.worker.kafka.request_thread import in_request_thread
from traceweir.streams.worker.kafka.silence import LastAnswer, failing_with_client
from traceweir.streams.worker.kafka.topic_admin import check_partitions, topic_ids
from traceweir.streams.worker.kafka.topic_creation import create_no_topics

log = logging.getLogger(__name__)

BATCH_RECORDS = 10_000
"""Maximum number of records of a batch. A batch is a transaction, and larger ones cost less per record."""
BATCH_EVERY_S = 1.0
"""Minimum seconds between the starts of two batches: a transaction costs as much as hundreds of rows. Pages are told of rows
once a second at most. The first record after a pause is stored at once."""
UNWATCHED_EVERY_S = 5.0
"""The same while nobody looks at the store. Who then begins to look sees the rest about a second later."""
RETRY_AFTER_S = (1.0, 2.0, 5.0, 10.0)
"""Seconds to the next attempt after a failed one, by the number of failures so far; then the last of them."""
REMOVE_OLD_EVERY_S = 3600.0
LOOK_EVERY_S = 60.0
"""Longest interval in seconds at which the ids of the topics are compared, and the end of a compacted topic is asked for."""
_OTHER_STORE = (
    "Name another store with TRACEWEIR_STORE, which is filled from the new topics; the former store stays as it is"
)


@dataclass
class FeedState:
    """What a person or a health check asks about a feed."""

    problem: str | None = None
    """Why nothing is read or stored now, with the way out; None if there is no problem."""
    stored_rows: int = 0
    """Number of rows that were stored since the start."""
    unreadable: dict[str, int] = field(default_factory=dict)
    """Number of records since the start that are not what a worker writes there, by topic."""
    behind: int | None = None
    """Number of records, at most, that were read by nobody yet; None while that is unknown, as while no broker answers."""
    batches: int = 0
    """Number of batches that were stored since the start."""


class Feed:
    """Brings everything that the output topics contain into a store, in order, until it is cancelled.

    Args:
        settings: Where Kafka is.
        store: Where the rows go.
        keep: For how long rows of each table are kept; a table that is not named is kept whole.
        keep_figures: For how long figures are kept; None: without an end. Those per minute are kept as long as results.
        now: The clock by which rows grow old.
        changed: Called after each batch that was stored, and when a problem begins or ends.
        last_answer: Receives each answer of a broker; None: a new one.
        is_watched: Returns whether somebody looks at the store; batches are larger and fewer while nobody does.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        keep: Mapping[TableName, timedelta],
        now: Callable[[], datetime],
        keep_figures: timedelta | None = None,
        changed: Callable[[], object] = lambda: None,
        last_answer: LastAnswer | None = None,
        is_watched: Callable[[], bool] = lambda: True,
    ) -> None:
        self._settings = settings
        self._store = store
        self._keep = keep
        self._now = now
        self._changed = changed
        self._is_watched = is_watched
        self._rows = RowReader(tables_of(settings.topics), now=now)
        self._keep_figures = keep_figures
        self._old_removed_at_s: float | None = None
        self._ends: dict[TopicPartition, int] = {}
        self.state = FeedState()
        """What the feed itself knows; see `present`."""
        self.last_answer = LastAnswer() if last_answer is None else last_answer

    def present(self) -> FeedState:
        """Returns the state as it is known now: what a broker said is unknown once no broker answers."""
        silent = self.last_answer.problem
        return self.state if silent is None else replace(self.state, problem=self.state.problem or silent, behind=None)

    async def run(self) -> None:
        """Reads and stores, and starts again after each failure of Kafka or of the store.

        Raises:
            StoreError: the store belongs to another process or to other topics, so that a new attempt cannot help.
        """
        failures = 0
        while True:
            batches = self.state.batches
            try:
                await self._follow()
            except _PASSING as error:
                failures = 0 if self.state.batches > batches else failures
                self._tell(printable(str(error) or repr(error), 1_000))
                await asyncio.sleep(RETRY_AFTER_S[min(failures, len(RETRY_AFTER_S) - 1)])
                failures += 1

    async def _follow(self) -> None:
        names = list(tables_of(self._settings.topics))
        problems = await in_request_thread(check_partitions, self._settings, names)
        self.last_answer.note(answered=True)
        if problems:
            raise _NotYetError("\n".join(problems))
        read_as_parsed(())
        consumer = AIOKafkaConsumer(
            **consumer_options(self._settings),
            enable_auto_commit=False,
            isolation_level="read_committed",
            # Retention can remove records before they are read, and a topic can be deleted and created again. A start
            # tells the one from the other; a consumer that moves itself to the first record does not.
            auto_offset_reset="none",
        )
        install_fast_close(consumer)
        require_broker_list(consumer)
        create_no_topics(consumer)
        await consumer.start()
        try:
            async with failing_with_client(consumer, last=self.last_answer):
                await self._start_at_stored_offsets(consumer, names)
                not_before_s = 0.0
                while True:
                    found = await read_batch(consumer, not_before_s, is_watched=self._is_watched)
                    not_before_s = asyncio.get_running_loop().time() + BATCH_EVERY_S
                    await self._one_batch(consumer, found)
        finally:
            await consumer.stop()

    async def _start_at_stored_offsets(self, consumer: AIOKafkaConsumer, names: Sequence[str]) -> None:
        places = [TopicPartition(name, number) for name in names for number in range(self._settings.partitions)]
        network = self._settings.topics.network
        asked_at = self._now()
        kept_s = await in_request_thread(lambda: tombstones_s(Cluster(self._settings), network))
        current_at = await asyncio.to_thread(self._store.current_at)
        self._withdrawals = Withdrawals(network, current_at.get(network), kept_s)
        self._look_every = timedelta(seconds=min(LOOK_EVERY_S, kept_s / 4))
        await self._require_same_topics(names)
        consumer.assign(places)
        begins = await consumer.beginning_offsets(places)
        ends = await consumer.end_offsets(places)
        self._ends = ends
        stored = await asyncio.to_thread(self._store.offsets)
        for place in places:
            if (offset := stored.get(SourcePartition(*place), 0)) > ends[place]:
                raise StoreError(
                    f"the store contains {place.topic}[{place.partition}] up to offset {offset}, and the partition ends at "
                    f"{ends[place]}: its topics were deleted and created again. {_OTHER_STORE}"
                )
        stored = await self._usable_offsets(stored, begins, asked_at)
        self._withdrawals.await_ends(ends, asked_at)
        self._look_at = asked_at + self._look_every
        for place in places:
            if (offset := stored.get(SourcePartition(*place), begins[place])) < begins[place]:
                log.warning(
                    "%s[%d]: the records from offset %d to %d were removed by the topic's retention before they were stored",
                    *place, offset, begins[place],
                )  # fmt: skip
            consumer.seek(place, max(offset, begins[place]))

    async def _usable_offsets(
        self, stored: dict[SourcePartition, int], begins: Mapping[TopicPartition, int], asked_at: datetime
    ) -> dict[SourcePartition, int]:
        """Returns the stored offsets, without those of a topic whose withdrawals can be lost: its rows are removed."""
        network = self._withdrawals.topic
        lost = self._withdrawals.lost(stored, begins, asked_at)
        if lost is None and any(source.topic == network for source in stored):
            return stored
        removed = await asyncio.to_thread(self._store.start_over, "network", network, asked_at)
        self._withdrawals.begin(asked_at)
        if lost is not None:
            log.warning(
                "%s is read from its beginning, and its %d stored traces are removed first: withdrawals can have left the topic "
                "before they were read, because %s", network, removed, lost,
            )  # fmt: skip
        return {source: offset for source, offset in stored.items() if source.topic != network}

    async def _require_same_topics(self, names: Sequence[str]) -> None:
        read = {source.topic for source in await asyncio.to_thread(self._store.offsets)}
        found = await in_request_thread(topic_ids, self._settings, names)
        stored = await asyncio.to_thread(self._store.topic_ids)
        for name, found_id in found.items():
            if name in read and stored.get(name, found_id) != found_id:
                raise StoreError(
                    f"the topic {name} was deleted and created again since the store read it: its id is {found_id}, and the store "
                    f"has {stored[name]}. {_OTHER_STORE}"
                )
        if found.items() - stored.items():
            await asyncio.to_thread(self._store.write, Batch(topic_ids=found))

    async def _one_batch(self, consumer: AIOKafkaConsumer, found: Mapping[TopicPartition, Sequence[Any]]) -> None:
        if found:
            next_offsets = {SourcePartition(*place): await consumer.position(place) for place in found}
            batch = await asyncio.to_thread(self._write, found, next_offsets)
            self.state.stored_rows += batch.row_count
            self.state.batches += 1
            for topic, number in batch.unreadable.items():
                self.state.unreadable[topic] = self.state.unreadable.get(topic, 0) + number
            self._changed()
        await self._remove_old()
        positions = {place: await consumer.position(place) for place in consumer.assignment()}
        await self._look(consumer, positions)
        behind = 0
        for place, position in positions.items():
            # A partition from which nothing was fetched since the start has no high watermark yet.
            end = max(consumer.highwater(place) or 0, self._ends[place])
            behind += max(0, end - position)
        self.state.behind = behind
        # A start without records yet does not show that the store can write again.
        if found or not behind:
            self._tell(None)

    async def _look(self, consumer: AIOKafkaConsumer, positions: Mapping[TopicPartition, int]) -> None:
        """Stores the time up to which the store lacks no withdrawal; asks for the next one once a minute."""
        now = self._now()
        # The process slept, or could not store for long.
        if self._withdrawals.are_kept_for_long and (reason := self._withdrawals.outlived(now)) is not None:
            raise _NotYetError(
                f"withdrawals in {self._withdrawals.topic} can be lost, because {reason}; reading starts again"
            )
        if (batch := self._withdrawals.reached(positions)) is not None:
            await asyncio.to_thread(self._store.write, batch)
        if now < self._look_at:
            return
        self._look_at = now + self._look_every
        await self._require_same_topics(list(tables_of(self._settings.topics)))
        self._withdrawals.await_ends(
            await consumer.end_offsets([place for place in positions if place.topic == self._withdrawals.topic]), now
        )

    def _write(self, found: Mapping[TopicPartition, Sequence[Any]], offsets: Mapping[SourcePartition, int]) -> Batch:
        batch = Batch(offsets=dict(offsets))
        for place, records in found.items():
            self._rows.add(batch, place.topic, records)
        self._store.write(batch)
        return batch

    async def _remove_old(self) -> None:
        at_s = asyncio.get_running_loop().time()
        if self._old_removed_at_s is not None and at_s - self._old_removed_at_s < REMOVE_OLD_EVERY_S:
            return
        before = {name: self._now() - age for name, age in self._keep.items()}
        removed = await asyncio.to_thread(self._store.remove_old, before)
        if self._keep_figures is not None and "results" in before:
            figures_before = self._now() - self._keep_figures
            await asyncio.to_thread(self._store.remove_old_figures, before["results"], figures_before)
        self._old_removed_at_s = at_s
        if any(removed.values()):
            log.info("removed old rows: %s", ", ".join(f"{name} {number}" for name, number in removed.items()))

    def _tell(self, problem: str | None) -> None:
        if problem == self.state.problem:
            return
        self.state.problem = problem
        if problem is not None:
            self.state.behind = None
        if problem is None:
            log.info("the store receives records again")
        else:
            log.warning("no record is stored now: %s", problem)
        self._changed()


class _NotYetError(Exception):
    """The topics are not there yet, have another number of partitions, or have lost the next records."""


_PASSING = (
    KafkaUnreachableError, ConsumerTaskEndedError, _NotYetError, StoreUnavailableError, KafkaError, OSError
)  # fmt: skip
"""Errors after which a new attempt can succeed."""


async def read_batch(
    consumer: AIOKafkaConsumer,
    not_before_s: float,
    *,
    most: int = BATCH_RECORDS,
    is_watched: Callable[[], bool] = lambda: True,
) -> dict[TopicPartition, list[Any]]:
    """Returns the records of the next batch, at most `most`; none if none came within `BATCH_EVERY_S`.

    An answer of a broker can have few records although many more wait, so one answer is not a batch.

    Args:
        consumer: Reads the topics.
        not_before_s: The batch has all records that arrive until this time of the event loop; after it, the next ones.
        most: The number of records after which the batch ends.
        is_watched: Returns whether somebody waits for the records. While nobody does, the batch ends later: as much as
            `UNWATCHED_EVERY_S` is longer than `BATCH_EVERY_S`.
    """
    found: dict[TopicPartition, list[Any]] = {}
    left = most
    while True:
        later_s = 0.0 if is_watched() else UNWATCHED_EVERY_S - BATCH_EVERY_S
        left_s = not_before_s + later_s - asyncio.get_running_loop().time()
        if not left or (found and left_s <= 0):
            return found
        # Not longer, so that somebody who begins to look soon sees what has come.
        wait_s = min(left_s, BATCH_EVERY_S) if left_s > 0 else BATCH_EVERY_S
        try:
            some = await consumer.getmany(timeout_ms=math.ceil(wait_s * 1000), max_records=left)
        except OffsetOutOfRangeError as error:
            raise _NotYetError(
                "records were removed from a topic before they were read; reading starts again"
            ) from error
        for place, records in some.items():
            found.setdefault(place, []).extend(records)
            left -= len(records)
        if left_s <= 0:
            return found


def tables_of(topics: Topics) -> dict[str, TableName]:
    """Returns the table of each output topic, by the name of the topic."""
    return {
        topics.results: "results",
        topics.sessions: "sessions",
        topics.network: "network",
        topics.dead_letters: "dead_letters",
        topics.labels: "labels",
        topics.alerts: "alerts",
    }
