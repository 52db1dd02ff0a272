"""The table of a worker is caught up from its committed changelog, before anything else of a partition is read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from traceweir.streams.kafka.fast_close import install_fast_close
from traceweir.streams.kafka.faust_adapter import Table

log = logging.getLogger(__name__)

FETCH_BYTES = 4 << 20


class StopRequested(Exception):  # noqa: N818  # an outcome that the caller handles
    """The worker ends in the middle of a catch-up."""


class ChangelogRestore:
    """Reads changelogs into a table."""

    def __init__(
        self, table: Table, options: Mapping[str, Any], stepped: Callable[[], None], told_to_stop: Callable[[], bool]
    ) -> None:
        """Prepare it.

        Args:
            table: What is caught up.
            options: How aiokafka's clients connect.
            stepped: Called after each batch.
            told_to_stop: Whether to leave off.
        """
        self._table, self._options, self._stepped, self._told_to_stop = table, options, stepped, told_to_stop
        self.rows = self.bytes = 0
        """Read so far."""

    async def read(
        self, numbers: Sequence[int], changelog_id: Awaitable[str], inputs: Collection[str]
    ) -> dict[TopicPartition, int]:
        """Bring partitions up to the committed end of their changelog. Returns the first offset that there is of each of their inputs.

        Rows that are not the beginning of this changelog are thrown away first.

        Raises:
            ToldToStopError: the worker ends; what was read is kept.
        """
        consumer = AIOKafkaConsumer(
            **self._options,
            enable_auto_commit=False,
            isolation_level="read_committed",
            max_partition_fetch_bytes=FETCH_BYTES,
            fetch_max_wait_ms=20,
        )
        install_fast_close(consumer)
        found, _ = await asyncio.gather(changelog_id, consumer.start())
        try:
            logs = {TopicPartition(self._table.changelog, number): number for number in numbers}
            sources = [TopicPartition(topic, number) for topic in inputs for number in numbers]
            consumer.assign([*logs, *sources])  # together: each wait for metadata costs 0.3 s
            consumer.pause(*sources)
            ends, begins = await asyncio.gather(
                consumer.end_offsets(list(logs)), consumer.beginning_offsets([*logs, *sources])
            )
            for place, number in logs.items():
                self._leave_or_clear(number, found, ends[place])
                consumer.seek(place, max(begins[place], self._table.reached(number) + 1))
            await self._to_the_end(consumer, logs, ends)
        finally:
            await consumer.stop()
        return {place: begins[place] for place in sources}

    async def _to_the_end(
        self, consumer: AIOKafkaConsumer, logs: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        todo = set(logs)
        while todo:
            if self._told_to_stop():
                raise StopRequested
            for place in list(todo):
                if await consumer.position(place) >= ends[place]:
                    todo.discard(place)
                    if ends[place]:  # transaction markers end the log; Faust would wait for a record there
                        self._table.reach(logs[place], ends[place] - 1)
            if todo:
                for place, records in (await consumer.getmany(*todo, timeout_ms=20)).items():
                    rows = [(record.key, record.value) for record in records]
                    self._table.write(logs[place], rows, records[-1].offset)
                    self.rows += len(rows)
                    self.bytes += sum(len(key) + len(value or b"") for key, value in rows)
                    self._stepped()

    def _leave_or_clear(self, number: int, changelog_id: str, end: int) -> None:
        """Throw a partition's local rows away if they are not the beginning of its changelog."""
        self._table.open(number)
        reached = self._table.reached(number)
        reason = misfit(self._table.source(number), reached, changelog_id, end)
        if reason is None:
            return
        count = self._table.start_over(number, changelog_id)
        if reached >= 0 or count:  # else the partition is new here
            log.warning("partition %d: threw away %d local rows, to read them from Kafka: %s", number, count, reason)


def misfit(source: str | None, reached: int, changelog_id: str, end: int) -> str | None:
    """Why local rows, up to offset `reached` (-1: none) of the changelog `source`, cannot be the beginning of this changelog.

    None if they can. Contents tell nothing: compaction may have removed what the rows were made of.
    """
    if source is None:
        return f"nothing says from which changelog they are; it is now {changelog_id}"
    if source != changelog_id:
        return f"they are from the changelog {source}, and it is now {changelog_id}: broker or topic were made anew"
    if reached >= end:
        return f"they reach offset {reached} of the changelog, which ends before {end}: it has lost records"
    return None
