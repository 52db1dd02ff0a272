"""Restores the table of a worker from its committed changelog, before any other record of a partition is read."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition

from traceweir.streams.base.clock import seconds_now
from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.together import together
from traceweir.streams.worker.kafka.answer_limits import limit_answers
from traceweir.streams.worker.kafka.broker_list import require_broker_list
from traceweir.streams.worker.kafka.consumer_tasks import failing_with_tasks
from traceweir.streams.worker.kafka.fast_close import install_fast_close
from traceweir.streams.worker.kafka.high_watermarks import high_watermarks
from traceweir.streams.worker.kafka.log_facts import LogFacts, can_lack_deletions
from traceweir.streams.worker.kafka.partition_table import PartitionTable
from traceweir.streams.worker.kafka.topic_creation import create_no_topics
from traceweir.streams.worker.runtime.checkpoint_rows import WRITER_ROW

log = logging.getLogger(__name__)

FETCH_BYTES = 4 << 20
_MARKS_S = 0.005
"""Pause between two looks at the ends, in seconds."""
_LOOKS = 200
"""Looks at an end before rows beyond it count as lost by the changelog."""


class RestoreTooSlowError(WorkerError):
    """The changelog can have dropped deletions while it was read; the message contains the way out."""


class Sources(NamedTuple):
    """What the inputs of the restored partitions hold."""

    ids: Mapping[str, str]
    """By topic, the id of its log."""
    begins: Mapping[TopicPartition, int]
    """The first offset that can be read."""
    ends: Mapping[TopicPartition, int]
    """The offset after the last record, committed or not."""


class ChangelogRestore:
    """Reads changelog partitions into a table."""

    def __init__(self, table: PartitionTable, options: Mapping[str, Any], stepped: Callable[[], None]) -> None:
        """Stores the arguments; opens no connection.

        Args:
            table: The table to restore.
            options: Connection options of aiokafka's clients.
            stepped: Called after each batch.
        """
        self._table = table
        self._options = options
        self._stepped = stepped
        self.rows = self.bytes = 0
        """Number of rows, and of bytes of keys and values, that were read so far."""
        self.remaining = 0
        """Number of offsets that are still to be read."""

    async def read(
        self,
        numbers: Sequence[int],
        begun: Awaitable[None],
        facts: Awaitable[LogFacts],
        inputs: Collection[tuple[str, int]],
        claim: Callable[[Collection[str]], Awaitable[Mapping[int, int]]],
    ) -> Sources:
        """Restores partitions, claims them on the way, and reads on to the committed end of their changelog.

        Local rows that do not belong to this changelog, or are too old for it, are deleted first. When this is
        cancelled, the rows that were read are kept.

        Args:
            numbers: The partitions.
            begun: Makes sure that nobody else can claim the partitions any more.
            facts: What the cluster says of the changelog and the inputs.
            inputs: The topics and partitions that the stages read.
            claim: Fences the former writers, by their names, and claims the partitions; returns the offsets of the claims.

        Returns:
            What the inputs hold.

        Raises:
            ConsumerTaskEndedError: a background task of the consumer ended.
            RestoreTooSlowError: the changelog can have dropped deletions while it was read.
        """
        consumer = AIOKafkaConsumer(
            **self._options,
            enable_auto_commit=False,
            isolation_level="read_committed",
            max_partition_fetch_bytes=FETCH_BYTES,
            fetch_max_wait_ms=20,
        )
        install_fast_close(consumer)
        limit_answers(consumer)
        require_broker_list(consumer)
        create_no_topics(consumer)
        asked = asyncio.ensure_future(facts)
        try:
            # At the same time, because each of the three asks the brokers some six times.
            await together([begun, consumer.start()])
            found = await asked
            logs = {TopicPartition(self._table.changelog, number): number for number in numbers}
            # aiokafka refuses Faust's type.
            sources = [TopicPartition(*place) for place in inputs]
            # In one call: each wait for metadata costs 0.3 s.
            consumer.assign([*logs, *sources])
            consumer.pause(*sources)
            for number in numbers:
                self._table.open(number)
            # A broker without topic ids names its cluster at least.
            log_id = found.ids.get(self._table.changelog, found.cluster)
            # The last transaction of this worker can lack its mark; rows of another changelog are deleted anyway.
            written = {
                place: self._table.reached(number) if self._table.source(number) == log_id else -1
                for place, number in logs.items()
            }
            asked_at = seconds_now()
            ends, begins = await asyncio.gather(
                self._ends_above(consumer, written, _LOOKS), consumer.beginning_offsets([*logs, *sources])
            )
            for place, number in logs.items():
                self._leave_or_clear(number, log_id, ends[place], found.tombstones_s)
                consumer.seek(place, max(begins[place], self._table.reached(number) + 1))
            async with failing_with_tasks(consumer):
                await self._to_the_end(consumer, logs, ends, asked_at, found.tombstones_s)
                claims = await claim({writer.decode() for n in numbers if (writer := self._table.read(n, WRITER_ROW))})
                claimed = {place: claims.get(number, -1) for place, number in logs.items()}
                asked_at = seconds_now()
                ends = await self._ends_above(consumer, claimed)
                await self._to_the_end(consumer, logs, ends, asked_at, found.tombstones_s)
                source_ends = await high_watermarks(consumer, sources)
        finally:
            asked.cancel()
            await consumer.stop()
        return Sources(found.ids, {place: begins[place] for place in sources}, source_ends)

    async def _ends_above(
        self, consumer: AIOKafkaConsumer, offsets: Mapping[TopicPartition, int], looks: int | None = None
    ) -> dict[TopicPartition, int]:
        """Returns the committed ends, once each is above its offset, or after a number of looks.

        A broker writes the mark that ends a transaction after it has confirmed the end.
        """
        for look in itertools.count(1):
            ends: dict[TopicPartition, int] = await consumer.end_offsets(list(offsets))
            if look == looks or all(end > offsets[place] for place, end in ends.items()):
                break
            await asyncio.sleep(_MARKS_S)
        return ends

    async def _to_the_end(
        self,
        consumer: AIOKafkaConsumer,
        logs: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        asked_at: float,
        tombstones_s: float,
    ) -> None:
        """Reads up to these ends, which were asked for at a time in seconds since 1970."""
        todo = set(logs)
        while todo:
            positions = {place: await consumer.position(place) for place in todo}
            self.remaining = sum(max(0, ends[place] - position) for place, position in positions.items())
            for place, position in positions.items():
                if position >= ends[place]:
                    todo.discard(place)
                    self._check_age(logs[place], tombstones_s)
                    # A transaction marker can be the last entry; Faust would wait for a record there.
                    if ends[place]:
                        self._table.reach(logs[place], ends[place] - 1, asked_at)
            if todo:
                for place, records in (await consumer.getmany(*todo, timeout_ms=20)).items():
                    rows = [(record.key, record.value) for record in records]
                    self._table.write(logs[place], rows, records[-1].offset)
                    self.rows += len(rows)
                    self.bytes += sum(len(key) + len(value or b"") for key, value in rows)
                    self._stepped()

    def _check_age(self, number: int, tombstones_s: float) -> None:
        """Checks that no deletion can have left the changelog before it was read.

        Raises:
            RestoreTooSlowError: the changelog can have dropped deletions.
        """
        current_at = self._table.current_at(number)
        if current_at is not None and seconds_now() - current_at > tombstones_s:
            raise RestoreTooSlowError(
                f"the rows of partition {number} were last complete {(seconds_now() - current_at) / 3600:.1f} h ago, longer "
                f"than {self._table.changelog} keeps deletions ({tombstones_s / 3600:g} h, delete.retention.ms). Start the "
                "worker again: it reads the changelog from its beginning. If that takes longer than the option, raise the "
                "option"
            )

    def _leave_or_clear(self, number: int, changelog_id: str, end: int, tombstones_s: float) -> None:
        """Deletes the local rows of a partition if they cannot be used with its changelog."""
        now = seconds_now()
        current_at = self._table.current_at(number)
        age_s = None if current_at is None else now - current_at
        reached = self._table.reached(number)
        reason = misfit(self._table.source(number), reached, changelog_id, end, age_s, tombstones_s)
        if reason is None:
            return
        count = self._table.start_over(number, changelog_id, now)
        # Otherwise the partition is new on this machine.
        if reached >= 0 or count:
            log.warning("partition %d: deleted %d local rows, and restores them from Kafka: %s", number, count, reason)


def misfit(
    source: str | None, reached: int, changelog_id: str, end: int, age_s: float | None, tombstones_s: float
) -> str | None:
    """Returns the reason why local rows cannot be used with this changelog; None if they can be used.

    The rows themselves cannot be compared, because compaction can have removed the records from which they were built.

    Args:
        source: Id of the changelog from which the rows were read.
        reached: Offset up to which the rows were read; -1: no row.
        changelog_id: Current id of the changelog.
        end: Current end offset of the changelog.
        age_s: Seconds since no row was missing; None: unknown, as in rows of an earlier version.
        tombstones_s: How long the changelog keeps deletions at least, in seconds.
    """
    if source is None:
        return f"the changelog that they were read from is unknown; the changelog is now {changelog_id}"
    if source != changelog_id:
        return (
            f"they were read from the changelog {source}, and the changelog is now {changelog_id}: the broker or the "
            "topic was created again"
        )
    if reached >= end:
        return f"they reach offset {reached} of the changelog, which ends before {end}: the changelog has lost records"
    if age_s is None:
        return "it is unknown how old they are"
    if can_lack_deletions(age_s, tombstones_s):
        return (
            f"they were complete {age_s / 3600:.1f} h ago, and the changelog keeps deletions for {tombstones_s / 3600:g} h "
            "(delete.retention.ms): they can contain rows whose deletion is not there any more"
        )
    return None
