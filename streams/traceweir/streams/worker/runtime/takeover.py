"""Takes over the partitions of one assignment, outside of the rebalance, so that the worker's heartbeats go on.

aiokafka sends no heartbeat while it waits for the callback of an assignment. A takeover asks the brokers some 25 times,
one after the other, and reads the changelog; it can take longer than the session timeout of the group. Therefore it is a
task of its own. The partitions stay paused until it has ended.

The next rebalance begins with `stop`: the takeover has ended before the worker joins its group again
(`ownership` says why this matters).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple

from faust.types import TP

from traceweir.streams.base.clock import seconds_now
from traceweir.streams.base.stages.base import StageSpec
from traceweir.streams.base.stages.inputs import input_name
from traceweir.streams.worker.kafka.log_facts import LogFacts
from traceweir.streams.worker.kafka.partition_table import PartitionTable
from traceweir.streams.worker.runtime.changelog_restore import ChangelogRestore
from traceweir.streams.worker.runtime.checkpoint_rows import OFFSETS
from traceweir.streams.worker.runtime.lane import Lane
from traceweir.streams.worker.runtime.ownership import Ownership
from traceweir.streams.worker.runtime.positions import InputLogs
from traceweir.streams.worker.runtime.row_formats import FORMAT_ROW, RowFormats


class Parts(NamedTuple):
    """The parts of a worker that each of its takeovers uses."""

    table: PartitionTable
    specs: Sequence[StageSpec]
    """The stages, in the order of processing."""
    facts: Callable[[], Awaitable[LogFacts]]
    """Returns what the cluster says of the changelog and the inputs."""
    client_options: Mapping[str, Any]
    """Connection options of aiokafka's clients."""
    partitions: int
    """Number of partitions of Traceweir's own topics."""
    formats: RowFormats
    """The formats in which rows are read and written."""


class Takeover:
    """Takes over partitions once: fences their former owners, restores their rows, and creates their lanes."""

    def __init__(
        self,
        owned: Mapping[int, Sequence[TP]],
        parts: Parts,
        ownership: Ownership,
        first_offsets: Mapping[tuple[str, int], int],
        stepped: Callable[[], None],
    ) -> None:
        """Stores the arguments; `run` begins.

        Args:
            owned: The partitions, and the partitions of topics that each of them reads.
            parts: The parts of the worker.
            ownership: Makes this worker the writer of the partitions.
            first_offsets: By topic and partition, the offset before which no record is read.
            stepped: Called after each step.
        """
        self._owned = owned
        self._numbers = list(owned)
        self._parts = parts
        self._ownership = ownership
        self._first_offsets = first_offsets
        self._stepped = stepped
        self._restore = ChangelogRestore(parts.table, parts.client_options, stepped)
        self.summary = "nothing to do"
        """What was done, for the log."""

    @property
    def remaining(self) -> int:
        """Number of offsets of changelogs that are still to be read."""
        return self._restore.remaining

    async def run(self) -> dict[int, Lane]:
        """Takes the partitions over; when this is cancelled, the rows that were read so far are kept.

        Returns:
            The lane of each partition. Nobody else can commit to these partitions any more.

        Raises:
            StateDirectoryError: this version cannot read the rows of a partition.
            OtherClusterError: the rows are those of another cluster.
        """
        began = monotonic()
        read_from = [place for places in self._owned.values() for place in places]
        begun = self._ownership.begin(self._numbers, self._stepped)
        sources = await self._restore.read(self._numbers, begun, self._parts.facts(), read_from, self._claim)
        read = monotonic()
        lanes: dict[int, Lane] = {}
        try:
            for number, owned in self._owned.items():
                places = {input_name(place.topic, place.partition, self._parts.partitions): place for place in owned}
                firsts = {
                    name: max(sources.begins[place], self._first_offsets.get(place, 0))
                    for name, place in places.items()
                }
                logs = InputLogs(sources.ids, {name: sources.ends[place] for name, place in places.items()})
                lanes[number] = Lane(
                    number,
                    self._parts.specs,
                    self._parts.table,
                    firsts,
                    seconds_now(),
                    logs=logs,
                    formats=self._parts.formats,
                )
                self._stepped()
                # Loading a large lane blocks the event loop for long.
                await asyncio.sleep(0)
        except BaseException:
            for lane in lanes.values():
                lane.drop()
            raise
        self.summary = (
            f"{self._restore.rows} rows, {self._restore.bytes / 1e6:.1f} MB in {(read - began) * 1e3:.0f} ms, "
            f"and {(monotonic() - read) * 1e3:.0f} ms to load"
        )
        return lanes

    async def _claim(self, writers: Collection[str]) -> Mapping[int, int]:
        table = self._parts.table
        to_write = self._parts.formats.to_write
        formats = {
            n: to_write(table.read(n, FORMAT_ROW), n, table.changelog, is_new=table.read(n, OFFSETS) is None)
            for n in self._numbers
        }
        return await self._ownership.claim(writers, formats)
