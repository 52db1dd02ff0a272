"""Commits table rows, outputs and source offsets of all due partitions in one Kafka transaction: a checkpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from time import monotonic
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from faust.types import TP

from traceweir.streams.base.clock import seconds_now
from traceweir.streams.base.stages.base import Output
from traceweir.streams.worker.kafka.partition_table import PartitionTable
from traceweir.streams.worker.runtime.batches import TOO_LARGE
from traceweir.streams.worker.runtime.checkpoint_content import CheckpointContent
from traceweir.streams.worker.runtime.checkpoint_pace import CheckpointPace
from traceweir.streams.worker.runtime.cluster_clock import ClocksApartError, ClockWentBackError, require_no_step_back
from traceweir.streams.worker.runtime.delivery import TRANSACTIONS_ENDED
from traceweir.streams.worker.runtime.hand_over import HandOver
from traceweir.streams.worker.runtime.lane import Lane
from traceweir.streams.worker.runtime.ownership import Ownership
from traceweir.streams.worker.runtime.suspects import StageFailed
from traceweir.streams.worker.runtime.transaction_bound import TransactionBound

log = logging.getLogger(__name__)

_PENDING_BYTES: Callable[[Lane], int] = attrgetter("pending_bytes")


class _Committed(NamedTuple):
    """A committed checkpoint."""

    ends: Mapping[TopicPartition, int]
    """The offset of the last row in each partition of the changelog."""
    began_at: float
    """When it began, in seconds since 1970."""


class CheckpointRounds:
    """Commits the lanes of a worker: those that are due at the same time in one transaction.

    A transaction takes 3 ms of the worker and as much of the broker, whatever the number of its partitions. One lane
    whose stage raises is left out, and the others are committed. Lanes whose changes together have too many bytes for one
    transaction are committed one after the other.
    """

    def __init__(
        self,
        app: Any,
        table: PartitionTable,
        lanes: dict[int, Lane],
        interval_s: float,
        *,
        bound: TransactionBound,
        fail: Callable[[BaseException], Awaitable[object]],
        lose: Callable[[BaseException], Awaitable[object]],
        isolate: Callable[[Lane, StageFailed], Awaitable[object]],
    ) -> None:
        """Stores the arguments; `begin` starts the checkpoints.

        Args:
            app: The Faust app.
            table: The app's table.
            lanes: The owned partitions.
            interval_s: Average time between two checkpoints, in seconds.
            bound: The bytes that a transaction can have.
            fail: Ends the worker after a failure with an unknown outcome.
            lose: Drops all lanes, and joins the group again, after Kafka has ended the transactions of the worker, after
                its clock has gone back, or after a topic has refused a batch for its size.
            isolate: Loads a lane again whose stage raised.
        """
        self._app = app
        self._table = table
        self._lanes = lanes
        self._pace = CheckpointPace(interval_s)
        self._bound = bound
        self._fail = fail
        self._lose = lose
        self._isolate = isolate
        self.ownership: Ownership
        """Sends the checkpoints, and compares the clocks afterwards; set before there are lanes."""
        self.handed: Collection[str] = ()
        """The topics whose records can be handed over to the next stage; set with `ownership`."""
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._worked = asyncio.Event()
        self.lock = asyncio.Lock()
        """Held while a checkpoint is sent."""
        self.committed: tuple[Callable[[Mapping[str, int], Sequence[Output]], object], ...] = ()
        """Called for each cut of a committed checkpoint with what it has counted (`stage.counter`), and its outputs."""
        self.not_committed: list[int] = []
        """The partitions whose last checkpoint was not sent, because a stage raised; their records are read again."""
        self.finished: Callable[[], object] = lambda: None
        """Called after each committed checkpoint; for measuring."""

    def begin(self) -> None:
        """Commits the lanes from now on."""
        for lane in self._lanes.values():
            self.watch(lane)
        self._task = asyncio.create_task(self._run())

    def end(self) -> None:
        """Begins no further checkpoint."""
        if self._task is not None:
            self._task.cancel()
        self._task = None

    def watch(self, lane: Lane) -> None:
        """Looks at a new lane as soon as it has changes."""
        lane.notify = self._woken.set
        lane.worked = self._worked.set
        self._woken.set()

    def full(self) -> bool:
        """Returns whether the lanes have taken as many bytes as the next transaction can have; it then comes at once."""
        if not self._is_full():
            return False
        self._woken.set()
        return True

    def _is_full(self) -> bool:
        return sum(map(_PENDING_BYTES, self._lanes.values())) >= self._bound.pending_bytes

    async def last(self) -> None:
        """Commits a last checkpoint of every lane, and drops the lanes."""
        lanes = list(self._lanes.values())
        while lanes:
            lanes = await self._checkpoint(lanes, last=True)

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            waits = self._waits()
            shortest = min(waits.values(), default=None)
            if shortest is not None and shortest <= 0:
                # Those that are due soon come with the others, so that their next checkpoints coincide too.
                due = [lane for lane, wait in waits.items() if wait <= self._pace.early_s(behind=lane.far_behind())]
                # The first are those that an earlier checkpoint had no room for.
                await self._checkpoint(sorted(due, key=lambda lane: lane.cut_at))
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(shortest):
                    await self._woken.wait()

    def _waits(self) -> dict[Lane, float]:
        """Returns the time until the next checkpoint of each lane that can have changes."""
        now = monotonic()
        full = self._is_full()
        return {
            lane: 0.0 if full else self._pace.wait_s(now, lane.cut_at, urgent=lane.urgent, behind=lane.far_behind())
            for lane in self._lanes.values()
            if lane.woken and not lane.dead
        }

    async def _checkpoint(self, lanes: Sequence[Lane], *, last: bool = False) -> list[Lane]:
        """Commits lanes, and returns those that did not fit the transaction."""
        # Shielded: a cancelled waiter must not leave half a transaction for the next checkpoint.
        return await asyncio.shield(self._guarded_commit(lanes, last))

    async def _guarded_commit(self, lanes: Sequence[Lane], last: bool) -> list[Lane]:
        async with self.lock:
            living = [lane for lane in lanes if not lane.dead]
            if last:
                dead = [lane.number for lane in lanes if lane.dead and self._lanes.get(lane.number) is lane]
                self.not_committed += dead
            now = monotonic()
            self._pace.begin(now)
            handed = () if last else self.handed
            content = CheckpointContent(self._table.changelog, now, handed, last=last, most_bytes=self._bound.bytes)
            committed: _Committed | None = None
            try:
                committed = await self._commit(living, content)
            except TRANSACTIONS_ENDED as error:
                seconds = monotonic() - now
                self._bound.note_end(content.bytes, seconds=seconds)
                await self._lose(self._bound.reason(error, content.bytes, seconds=seconds))
            except TOO_LARGE as error:
                await self._lose(error)
            except Exception as error:  # noqa: BLE001  # after any failure it is unknown whether the checkpoint was committed
                await self._fail(error)
            left = [lane for lane in living if lane not in content.tried and self._lanes.get(lane.number) is lane]
            for lane in content.tried:
                lane.in_checkpoint = False
                lane.rounds += 1
            if last:
                for lane in content.tried:
                    # Otherwise this lane would start another checkpoint, and would lose its producer during that
                    # checkpoint.
                    self._lanes.pop(lane.number, None)
                    lane.drop()
        if committed is not None:
            self.finished()
            if not last:
                await self._compare_clocks(committed)
        for lane, raised in content.failed.items():
            if last:
                self.not_committed.append(lane.number)
                log.warning(
                    "partition %d: %s; its last checkpoint is not sent, and its records are read again",
                    lane.number,
                    raised.for_log,
                )
            else:
                await self._isolate(lane, raised)
        return left

    async def _commit(self, lanes: Sequence[Lane], content: CheckpointContent) -> _Committed | None:
        """Commits the changes of the lanes, with what follows from them in other stages; None if there were none."""
        changes = content.cut(lanes)
        if changes is None:
            return None
        further = HandOver(self._lanes, content, self._worked).further if content.handed else None
        began = monotonic()
        began_at = seconds_now()
        ends = await self.ownership.delivery.send(*changes, further)
        self._bound.note(content.bytes, content.taken_bytes, seconds=monotonic() - began)
        for lane, rows in content.rows.items():
            self._table.write(lane.number, rows, ends[content.place(lane)], began_at)
        # A lane can have taken records without a cut after that.
        for lane in self._lanes.values():
            lane.note_committed()
        self._app.consumer._committed_offset.update({TP(*place): offset for place, offset in content.offsets.items()})
        for cut in content.counted:
            log.debug("partition %d: committed %d rows and %d outputs", cut.lane.number, cut.rows, len(cut.outputs))
            for note in self.committed:
                note(cut.counts, cut.outputs)
        return _Committed(ends, began_at)

    async def _compare_clocks(self, committed: _Committed) -> None:
        """Compares the clocks after the checkpoint, whose time tells how fast the cluster is and must not contain this.

        A clock that was ahead between two comparisons, and is right again, has left watermarks by which all records are
        `late`. A takeover sets them back.
        """
        try:
            await self.ownership.compare_clocks(*committed)
            require_no_step_back({number: lane.watermark_ms for number, lane in self._lanes.items()}, seconds_now())
        except ClocksApartError as error:
            await self._fail(error)
        except ClockWentBackError as error:
            await self._lose(error)
