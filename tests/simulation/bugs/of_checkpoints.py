"""Bugs of fencing, checkpoints, positions, restores and the disk."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from aiokafka import AIOKafkaConsumer
from tests.simulation.bugs.registry import bug, bug_of_higher_seeds, put
from tests.simulation.world import World

from traceweir.streams.base.stages.base import Cut, Output
from traceweir.streams.pipeline.score.offset_tracker import OffsetTracker
from traceweir.streams.worker.kafka.partition_table import PartitionTable
from traceweir.streams.worker.runtime import changelog_restore, checkpoint, takeover
from traceweir.streams.worker.runtime.batches import RowsByPlace
from traceweir.streams.worker.runtime.changelog_restore import ChangelogRestore
from traceweir.streams.worker.runtime.checkpoint import Checkpoints
from traceweir.streams.worker.runtime.checkpoint_rounds import CheckpointRounds
from traceweir.streams.worker.runtime.checkpoint_rows import WRITER_ROW
from traceweir.streams.worker.runtime.delivery import Transaction
from traceweir.streams.worker.runtime.known_ends import KnownEnds
from traceweir.streams.worker.runtime.lane import Lane
from traceweir.streams.worker.runtime.ownership import ClaimedPartitions

# Fencing, transactions and checkpoints


@bug
def no_fence(world: World) -> None:
    """Each producer has a transactional id of its own, so that a former owner is not fenced."""
    start, numbers = Transaction.__init__, count()

    def init(self: Any, options: Any, transactional_id: str, *args: Any, **named: Any) -> None:
        start(self, options, f"{transactional_id}-{next(numbers)}", *args, **named)

    put(Transaction, "__init__", init)


@bug
def former_writer_is_not_fenced(world: World) -> None:
    """A worker claims its partitions, and leaves their former writers alone."""
    claim = ClaimedPartitions.claim
    put(ClaimedPartitions, "claim", lambda self, writers, formats: claim(self, (), formats))


@bug
def claims_do_not_fence_each_other(world: World) -> None:
    """Two workers can claim a partition at the same time."""
    begin = ClaimedPartitions.begin

    async def alone(self: Any, numbers: Any, stepped: Any) -> None:
        application, self._application = self._application, self._name
        try:
            await begin(self, numbers, stepped)
        finally:
            self._application = application

    put(ClaimedPartitions, "begin", alone)


@bug_of_higher_seeds
def takeover_goes_on_after_its_revocation(world: World) -> None:
    """A worker joins its group again while it still takes over the partitions of the former assignment."""

    async def leave(self: Any) -> None:
        self.takeover_task = None

    put(Checkpoints, "_stop_takeover", leave)


@bug_of_higher_seeds
def takeover_without_heartbeats(world: World) -> None:
    """Partitions are taken over in the callback of their assignment, in which aiokafka sends no heartbeats."""
    begin = Checkpoints._on_rebalance

    async def wait(self: Any, *assignment: Any) -> None:
        await begin(self, *assignment)
        if self.takeover_task is not None:
            await asyncio.wait([self.takeover_task])

    put(Checkpoints, "_on_rebalance", wait)


@bug
def rows_before_the_fence_are_missed(world: World) -> None:
    """The restore ends where the changelog ended before the former writers were fenced."""
    read = ChangelogRestore.read

    async def early(self: Any, numbers: Any, begun: Any, facts: Any, inputs: Any, claim: Any) -> Any:
        async def nothing(writers: Any) -> Any:
            return {}

        found = await read(self, numbers, begun, facts, inputs, nothing)
        await claim({writer.decode() for n in numbers if (writer := self._table.read(n, WRITER_ROW))})
        return found

    put(ChangelogRestore, "read", early)


@bug
def commit_again_after_unknown_outcome(world: World) -> None:
    """A checkpoint whose outcome is unknown is sent again by another producer."""
    commit = Transaction.send

    async def send(self: Any, rows: RowsByPlace, outputs: Sequence[Output], offsets: Any, further: Any = None) -> Any:
        try:
            return await commit(self, rows, outputs, offsets, further)
        except Exception:  # noqa: BLE001  # the bug
            again = Transaction(self.options, self._id, self._group, **self.named)
            await again.start()
            return await commit(again, rows, outputs, offsets)

    init = Transaction.__init__

    def keep(self: Any, options: Any, *args: Any, **named: Any) -> None:
        self.options, self.named = options, named
        init(self, options, *args, **named)

    put(Transaction, "__init__", keep)
    put(Transaction, "send", send)


@bug
def failed_commit_counts_as_done(world: World) -> None:
    """An exception of the commit is swallowed."""
    commit = Transaction.send

    async def send(self: Any, rows: RowsByPlace, outputs: Sequence[Output], offsets: Any, further: Any = None) -> Any:
        try:
            return await commit(self, rows, outputs, offsets, further)
        except Exception:  # noqa: BLE001  # the bug
            return dict.fromkeys(rows, -1)

    put(Transaction, "send", send)


@bug
def rows_before_commit(world: World) -> None:
    """RocksDB gets the rows before the transaction is committed."""
    commit = CheckpointRounds._commit

    async def ahead(self: Any, lanes: Sequence[Lane], content: Any) -> Any:
        plain = content.cut

        def cut(lanes: Sequence[Lane]) -> Any:
            changes = plain(lanes)
            for place, rows in changes.rows.items() if changes is not None else ():
                self._table.write(place.partition, rows, self._table.reached(place.partition) + len(rows))
            return changes

        content.cut = cut
        return await commit(self, lanes, content)

    put(CheckpointRounds, "_commit", ahead)


@bug
def outputs_in_a_transaction_of_their_own(world: World) -> None:
    """Outputs are committed before the rows and offsets."""
    commit = Transaction.send

    async def send(self: Any, rows: RowsByPlace, outputs: Sequence[Output], offsets: Any, further: Any = None) -> Any:
        if outputs:
            await commit(self, {}, outputs, {})
        return await commit(self, rows, [], offsets)

    put(Transaction, "send", send)


@bug
def rows_in_a_transaction_of_their_own(world: World) -> None:
    """Rows and offsets are committed before the outputs."""
    commit = Transaction.send

    async def send(self: Any, rows: RowsByPlace, outputs: Sequence[Output], offsets: Any, further: Any = None) -> Any:
        ends = await commit(self, rows, [], offsets)
        if outputs:
            await commit(self, {}, outputs, {})
        return ends

    put(Transaction, "send", send)


# Hand-over


@bug
def records_are_handed_over_despite_a_gap(world: World) -> None:
    """A stage takes what its worker has appended, although others have written before it."""
    put(KnownEnds, "is_next", lambda self, topic, first: topic in self._ends)


@bug
def markers_are_counted_twice(world: World) -> None:
    """A marker that the consumer has read counts once more when the answer to the commit comes."""

    def note_committed(self: Any) -> None:
        for topic in self._appended:
            if topic in self._ends:
                self._ends[topic] += 1
        self._appended.clear()

    put(KnownEnds, "note_committed", note_committed)


@bug
def records_are_taken_again_from_a_fetch(world: World) -> None:
    """A lane does not note that it has taken what its worker has appended."""
    take = Lane.take_appended

    def forgetful(self: Lane, topic: str, records: Any) -> bool:
        before = self.position[topic]
        taken = take(self, topic, records)
        self.position[topic] = before
        return taken

    put(Lane, "take_appended", forgetful)


@bug
def rows_of_an_open_transaction_cannot_be_read(world: World) -> None:
    """A stage that is cut twice in a transaction does not find the rows of its first cut."""
    before = Lane.cut

    def cut(self: Lane) -> Cut:
        found = before(self)
        self._unwritten.clear()
        return found

    put(Lane, "cut", cut)


# Memory and positions


@bug
def memory_is_kept_over_a_rebalance(world: World) -> None:
    """A lane of a partition that comes back is used again."""
    kept: dict[Any, Lane] = {}

    def isolated(number: int, specs: Any, table: Any, *args: Any) -> Lane:
        kept[id(table), number] = lane = Lane(number, specs, table, *args)
        return lane

    def taken_over(number: int, specs: Any, table: Any, *args: Any, **options: Any) -> Lane:
        key = id(table), number
        if key not in kept:
            kept[key] = Lane(number, specs, table, *args, **options)
        kept[key].dead = False
        return kept[key]

    put(checkpoint, "Lane", isolated)
    put(takeover, "Lane", taken_over)
    drop = Lane.drop

    def soft(self: Lane) -> None:
        stages, self.stages = self.stages, {}
        drop(self)
        self.stages = stages

    put(Lane, "drop", soft)


@bug
def offset_before_work(world: World) -> None:
    """The offset of the score stage is behind its sessions in flight."""
    put(OffsetTracker, "mark", property(lambda self: self._next))


@bug
def offset_row_forgets_other_topics(world: World) -> None:
    """The row of the offsets has only the topics of the last checkpoint."""
    before = Lane.cut

    def cut(self: Lane) -> Cut:
        self.offsets.committed = {}
        return before(self)

    put(Lane, "cut", cut)


@bug
def position_from_the_group(world: World) -> None:
    """A lane begins at the offsets of the consumer group, and not at those of its rows."""
    init = Lane.__init__

    def start(self: Lane, number: int, *args: Any, **options: Any) -> None:
        init(self, number, *args, **options)
        offsets = world.cluster.group(world.application).offsets
        for topic in self.position:
            self.position[topic] = offsets.get((topic, number), self.beginnings[topic])

    put(Lane, "__init__", start)


@bug
def no_seek_to_the_position(world: World) -> None:
    """The consumer reads on from where the group's offsets are, and the lane does not look at gaps."""
    init = Lane.__init__

    def start(self: Lane, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        self._pending_seeks.clear()
        self._trusted.update(self.position)

    put(Lane, "__init__", start)


@bug
def rest_of_a_batch_is_lost_after_an_exception(world: World) -> None:
    """An exception in a stage is swallowed: the rest of its batch is lost, and the offset is committed."""
    feed = Lane._feed

    def careless(self: Lane, inbox: Any) -> int:
        try:
            return feed(self, inbox)
        except Exception:  # noqa: BLE001  # the bug
            self.dead = False
            return 1

    put(Lane, "_feed", careless)


@bug
def isolation_begins_after_the_batch(world: World) -> None:
    """A lane that is built again after an exception begins after the records that the former one had taken."""
    isolate = Checkpoints._isolate

    async def careless(self: Any, lane: Lane, failed: Any) -> None:
        await isolate(self, lane, failed)
        again = self.lanes.get(lane.number)
        if again is not None and again is not lane:
            again.position = dict(lane.position)

    put(Checkpoints, "_isolate", careless)


@bug
def worker_goes_on_after_a_failure(world: World) -> None:
    """After a failed checkpoint the lanes live on."""

    async def fail(self: Any, error: BaseException) -> None:
        self.forgiven = error

    put(Checkpoints, "fail", fail)


# Restore and disk


@bug
def restore_reads_uncommitted_rows(world: World) -> None:
    """The changelog is restored with the rows of aborted transactions."""
    consumer = AIOKafkaConsumer

    def lenient(**options: Any) -> Any:
        return consumer(**options | {"isolation_level": "read_uncommitted"})

    put(changelog_restore, "AIOKafkaConsumer", lenient)


@bug_of_higher_seeds
def old_rows_are_trusted(world: World) -> None:
    """Local rows are used whose deletion compaction has removed."""
    misfit = changelog_restore.misfit

    def trusting(source: Any, reached: int, changelog_id: str, end: int, *_: Any) -> str | None:
        return misfit(source, reached, changelog_id, end, 0.0, math.inf)

    put(changelog_restore, "misfit", trusting)
    put(ChangelogRestore, "_check_age", lambda self, number, tombstones_s: None)


@bug
def restore_stops_early(world: World) -> None:
    """The restore leaves out the end of the changelog."""
    to_the_end = ChangelogRestore._to_the_end

    async def early(self: Any, consumer: Any, logs: Any, ends: Any, *others: Any) -> None:
        await to_the_end(self, consumer, logs, {place: max(0, end - 4) for place, end in ends.items()}, *others)

    put(ChangelogRestore, "_to_the_end", early)


@bug
def restore_trusts_the_local_offset(world: World) -> None:
    """The restore begins one record too late."""
    reached = PartitionTable.reached
    put(PartitionTable, "reached", lambda self, partition: reached(self, partition) + 6)


@bug
def tombstones_are_missing(world: World) -> None:
    """Deleted rows stay in the changelog and in RocksDB."""
    before = Lane.cut

    def cut(self: Lane) -> Cut:
        found = before(self)
        return found._replace(rows=[row for row in found.rows if row[1] is not None])

    put(Lane, "cut", cut)


@bug
def rows_are_written_without_their_offset(world: World) -> None:
    """RocksDB gets rows with an offset that is ahead of them, so that a restore leaves out the rows in between."""
    write = PartitionTable.write
    put(PartitionTable, "write", lambda self, number, rows, offset, *at: write(self, number, rows, offset + 3, *at))


@bug
def failed_write_is_ignored(world: World) -> None:
    """A write that fails is taken for done, so that later rows hide the gap."""
    write = PartitionTable.write

    def careless(self: Any, *args: Any) -> None:
        with suppress(Exception):
            write(self, *args)

    put(PartitionTable, "write", careless)
