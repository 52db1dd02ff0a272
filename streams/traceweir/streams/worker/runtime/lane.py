"""Defines a lane: one owned partition with its stages, their read positions and their checkpoint."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from traceweir.streams.base.stages.base import (
    Cut,
    End,
    MissedRecords,
    Output,
    Record,
    Rows,
    SetsSessionsAside,
    Stage,
    StageSpec,
    UnreadableBatch,
)
from traceweir.streams.base.stages.errors import RecordRejected, SessionFailed
from traceweir.streams.base.stages.inputs import Place, inputs_of, place_of
from traceweir.streams.worker.runtime.checkpoint_rows import OFFSETS
from traceweir.streams.worker.runtime.counted_stages import CountedStages
from traceweir.streams.worker.runtime.inbox import Inbox
from traceweir.streams.worker.runtime.known_ends import KnownEnds
from traceweir.streams.worker.runtime.positions import InputLogs
from traceweir.streams.worker.runtime.row_formats import FORMAT_ROW, ROW_FORMATS, RowFormats
from traceweir.streams.worker.runtime.stage_failures import raise_stage_failed, stage_failed
from traceweir.streams.worker.runtime.stage_rows import StateTable, row_reader, rows_by_stage
from traceweir.streams.worker.runtime.stored_offsets import StoredOffsets
from traceweir.streams.worker.runtime.suspects import Suspects
from traceweir.streams.worker.runtime.unread_times import UnreadTimes

log = logging.getLogger(__name__)

FAR_BEHIND = 1_000
"""Number of unread records of a partition above which throughput is more important than latency."""
MANY_PENDING = 5_000
"""Number of pending records that need a checkpoint without waiting for outputs."""
STALE_S = 1.0
"""Age in seconds at which the time of the last tick is too old to check timestamps of records."""


class Lane:
    """Holds the stages of one partition; a lane lives exactly as long as the worker owns the partition."""

    def __init__(
        self,
        number: int,
        specs: Sequence[StageSpec],
        table: StateTable,
        beginnings: Mapping[str, int],
        now: float,
        suspects: Suspects | None = None,
        logs: InputLogs | None = None,
        formats: RowFormats = ROW_FORMATS,
    ) -> None:
        """Loads the stages from the table.

        Args:
            number: The partition.
            specs: The stages, in the order of processing.
            table: The restored table.
            beginnings: The first available offset by input. Those of topics with added partitions are named here only.
            now: Seconds since 1970.
            suspects: The records that come one at a time, because a stage raised on them before.
            logs: The logs with which the stored offsets are compared; None: they were compared before.
            formats: The formats in which rows are read and written.

        Raises:
            OtherClusterError: the stored offsets are those of another cluster.
            StateDirectoryError: this version cannot read the format of the rows.
            StageFailed: a stage raised in its first tick, not because of one session.
        """
        self.number = number
        self.beginnings = beginnings
        self._inputs = {spec.name: inputs_of(spec.inputs, beginnings) for spec in specs}
        self.places: dict[str, Place] = {
            name: place_of(name, number) for inputs in self._inputs.values() for name in inputs
        }
        """The partition that each input is."""
        self.suspects = suspects or Suspects()
        self.woken = self.urgent = False
        """`woken`: there can be changes to cut. `urgent`: somebody waits for outputs, or there are many changes."""
        self.notify: Callable[[], object] = lambda: None
        """Called when `woken` or `urgent` becomes true."""
        self.worked: Callable[[], object] = lambda: None
        """Called each time that work which a stage has started is done."""
        self.in_checkpoint = False
        """Whether a checkpoint of this lane is being sent."""
        self.cut_at = -math.inf
        """When the last checkpoint began, in seconds of a monotonic clock."""
        self.dead = False
        self.pending = 0
        """Number of records that the stages have taken since the last cut."""
        self.pending_bytes = 0
        """Bytes of their values."""
        self.rounds = 0
        """Number of finished checkpoints, including those without changes."""
        self.stages: dict[str, Stage] = {}
        self._inboxes: dict[str, Inbox] = {}
        self._inbox_of: dict[str, Inbox] = {}
        self._unread = {source: UnreadTimes() for source in self.places}
        self._trusted: set[str] = set()
        self._pending_seeks: set[str] = set()
        self._asked: dict[str, int] = {}
        self._ticked = 0.0
        self.lag = 0
        """Number of unread records in the inputs when the last fetch returned."""
        self._known_ends = KnownEnds()
        self._unreadable = 0
        """Number of waiting batches that no stage can read."""
        self._unwritten: dict[bytes, bytes | None] = {}
        rows = table.rows(number)
        self._formats = formats
        self._format = formats.to_write(rows.get(FORMAT_ROW), number, table.changelog, is_new=OFFSETS not in rows)
        self._unwritten_format = rows.get(FORMAT_ROW) != b"%d" % self._format
        shares = rows_by_stage(rows)
        self.counted = CountedStages()
        for spec in specs:
            stage = self.stages[spec.name] = self._load(spec, table, shares.get(spec.name.encode(), {}), now)
            inputs = self._inputs[spec.name]
            inbox = self._inboxes[spec.name] = Inbox(spec.name, stage, inputs, spec.max_records)
            self._inbox_of |= dict.fromkeys(inputs, inbox)
            self._note_outputs(inbox)
        self._set_latest(now)
        self.offsets = StoredOffsets(rows, self.places, logs)
        """The offsets that the checkpoints of this partition store."""
        # Without an offset the position is the first available record; otherwise a gap after a rebalance would be missed.
        self.position = {source: self._start(source, first) for source, first in beginnings.items()}
        self._pending_seeks.update(self.position)
        self.suspects.start_at(self.position)

    def _start(self, source: str, first: int) -> int:
        """Returns where to read on in an input; says, and counts, what was not read or is read again."""
        start = self.offsets.start(source, first)
        stage = self._inbox_of[source].stage
        counters = getattr(stage, "counters", None)
        if counters is not None:
            counters.update({name: n for name, n in (("missed", start.missed), ("new_logs", start.is_new_log)) if n})
        if start.missed and start.problem is not None:
            stage.reject(source, MissedRecords(start.offset - 1), RecordRejected("missed", start.problem))
        return start.offset

    def _load(self, spec: StageSpec, table: StateTable, rows: Mapping[bytes, bytes], now: float) -> Stage:
        """Returns a stage with its rows, without the sessions on which the stage has raised twice."""
        while True:
            read = row_reader(table, self.number, spec.name.encode() + b"/", self._unwritten)
            stage = spec.new(self.number, read, self._changed)
            stage.load(rows)
            # Before sessions are set aside: their dead letters count as changes.
            self.counted.add(spec.name, stage)
            for session, why in self.suspects.poison_sessions(spec.name).items():
                if isinstance(stage, SetsSessionsAside):
                    log.warning(
                        "partition %d: the records of a session become dead letters, because the stage %s raised twice on "
                        "that session alone",
                        self.number,
                        spec.name,
                    )
                    stage.set_aside(session, why)
            try:
                stage.tick(now, dict.fromkeys(self._inputs[spec.name], 0.0))
            except SessionFailed as failed:
                # The stage holds a part of the work, so it is loaded again.
                stage.drop()
                self.suspects = self.suspects.after(stage_failed(spec.name, failed, {}, 0))
            else:
                return stage

    def _changed(self) -> None:
        """Notes that work which a stage has started is done, so that there are outputs."""
        self._wake()
        self._urge()
        self.worked()

    def _note_outputs(self, inbox: Inbox) -> None:
        if not self.urgent and (inbox.has_outputs() or self.pending >= MANY_PENDING):
            self._urge()

    def _wake(self) -> None:
        if not self.woken:
            self.woken = True
            self.notify()

    def _urge(self) -> None:
        if not self.urgent:
            self.urgent = True
            self.notify()

    def full(self, source: str, limit: int) -> bool:
        """Returns whether the consumer should stop fetching this input for now."""
        inbox = self._inbox_of[source]
        return self.pending >= limit or inbox.full(source) or inbox.stage.full()

    def busy(self) -> bool:
        """Returns whether a stage accepts no further records for now."""
        return any(stage.full() for stage in self.stages.values())

    def in_flight(self) -> int:
        """Returns the number of records on which stages still work."""
        return sum(inbox.in_flight() for inbox in self._inboxes.values())

    @property
    def watermark_ms(self) -> int:
        """The highest watermark of the stages, in milliseconds since 1970; 0 if they have none."""
        return max((getattr(stage, "watermark_ms", 0) for stage in self.stages.values()), default=0)

    def unread_since(self, source: str, end: End | None) -> int | None:
        """Returns what `UnreadTimes.since` says of an input, of which the last fetch reported this end."""
        return self._unread[source].since(is_behind=end is not None and end.position < end.stable)

    def far_behind(self) -> bool:
        """Returns whether throughput is more important than the time of one session."""
        return self.lag > FAR_BEHIND or self.busy()

    def pending_seeks(self) -> dict[str, int]:
        """Returns, by input, the offsets to which the consumer must seek before it reads on; each is returned once."""
        places = {source: self.position[source] for source in self._pending_seeks}
        self._pending_seeks.clear()
        return places

    def lose(self, source: str) -> None:
        """Notes that a batch of this input was dropped and must be read again."""
        self._trusted.discard(source)
        self._known_ends.forget(source)
        self._pending_seeks.add(source)

    def has_gap_before(self, source: str, first: int) -> bool:
        """Returns whether records are missing before the offset `first`; the lane then requests them again.

        Only the first batch after an assignment or a dropped batch is checked. Afterwards the consumer reads in
        sequence, and gaps in the offsets come from transaction markers and compaction. If a request returns the same
        first offset again, the gap is of this kind.
        """
        if first > self.position[source] and source not in self._trusted and self._asked.get(source) != first:
            self._asked[source] = first
            self._pending_seeks.add(source)
            return True
        self._trusted.add(source)
        return False

    def observe_clock(self, now: float) -> None:
        """Passes the time to the stages before records arrive, and while no partition has room for records.

        Without this call, records would seem to be from the future after a pause of the process. All inputs count as
        behind, because their ends are unknown here; therefore the clock closes no session.
        """
        if now - self._ticked > STALE_S:
            self._ticked = now
            self._set_latest(now)
            for name, inbox in self._inboxes.items():
                self._tick(inbox, now, dict.fromkeys(self._inputs[name], 0.0))

    async def take(self, source: str, records: Sequence[Record]) -> None:
        """Applies the records that need not wait for another input, and lets other tasks run in between.

        Raises:
            StageFailed: a stage raised.
        """
        expected = self.position[source]
        if records[0].offset < expected:
            records = [record for record in records if record.offset >= expected]
        if not records:
            return
        inbox = self._inbox_of[source]
        inbox.put(source, records)
        self._unread[source].note_read(records)
        # The types are compared in C: 2,000 records take a thousandth of the time in which assemble joins them.
        if UnreadableBatch in map(type, records):
            self._unreadable += sum(isinstance(record, UnreadableBatch) for record in records)
        self.position[source] = records[-1].offset + 1
        taken = 0
        while count := self._feed(inbox):
            taken += count
            # Not after each run: alternating inputs make short runs.
            if taken >= inbox.max_records:
                taken = 0
                await asyncio.sleep(0)

    def take_appended(self, topic: str, records: Sequence[Record]) -> bool:
        """Takes records that this worker has just appended to an input, before they can be fetched.

        The topic is one of `handed_topics`. Their transaction is open. If it fails, this lane must be dropped.

        Returns:
            Whether the lane has taken them. Otherwise they come with a fetch: records before them were not read yet, or
            the lane takes no more for now.

        Raises:
            StageFailed: a stage raised.
        """
        inbox = self._inbox_of[topic]
        first = records[0].offset
        # A suspect is committed alone, before the stage takes the next record.
        if self.dead or self.suspects.isolating or inbox.full(topic) or inbox.stage.full():
            return False
        # `take` lets other tasks run between batches; this method does not.
        if len(records) > inbox.max_records:
            return False
        if not self._known_ends.is_next(topic, first) or self.position[topic] > first:
            return False
        inbox.put(topic, records)
        self._unread[topic].note_read(records)
        self.position[topic] = records[-1].offset + 1
        self._known_ends.note_appended(topic, records[-1].offset)
        while self._feed(inbox):
            pass
        return True

    def note_committed(self) -> None:
        """Notes that the last cuts, and the records that were taken by `take_appended`, are committed and in the table."""
        self._known_ends.note_committed()
        self._unwritten.clear()

    def fetched(self, ends: Mapping[tuple[str, int], End], now: float) -> None:
        """Passes the time and the read positions of their inputs to the stages, after a fetch.

        If all inputs are read to their end, the stages get the time up to which they are read instead of the current time,
        because records can have arrived since then.

        Raises:
            StageFailed: a stage raised.
        """
        self._set_latest(now)
        self.lag = 0
        for name, inbox in self._inboxes.items():
            inputs = self._inputs[name]
            found = {source: ends.get(self.places[source]) for source in inputs}
            self.lag += sum(end.stable - end.position for end in found.values() if end is not None)
            inbox.behind = [
                t for t, e in found.items() if e is None or e.position < e.stable or t in self._pending_seeks
            ]
            for source, end in found.items():
                if end is not None and source not in self._pending_seeks:
                    inbox.note_end(source, end)
                    if source in self._trusted:
                        self._known_ends.note_read(source, end.position)
            while self._feed(inbox):
                pass
            behind = {
                source: inbox.newer_than(source) for source in inputs if source in inbox.behind or inbox.waiting[source]
            }
            read = [end.at for end in found.values() if end is not None]
            self._tick(inbox, now if behind else min(now, *read), behind)
        self._ticked = now
        self._wake()

    def _set_latest(self, now: float) -> None:
        for inbox in self._inboxes.values():
            # The next call comes before this time is out of date.
            inbox.latest = (now + STALE_S) * 1000

    def _feed(self, inbox: Inbox) -> int:
        """Passes the next records to a stage. Returns their number; 0 if all records must wait."""
        limit = self.suspects.limit(inbox.waiting)
        if self.dead or (limit is not None and inbox.pending):
            return 0
        source, records = inbox.next_run(inbox.max_records if limit is None else min(limit, inbox.max_records))
        refused, records = self._without_refused(inbox, source, records)
        if not records:
            return 0
        inbox.take_up(source, records)
        self.pending += len(records)
        self.pending_bytes += sum(len(record.value or b"") for record in records)
        self._wake()
        try:
            if refused is None:
                inbox.stage.apply(source, records)
            else:
                inbox.stage.reject(source, records[0], refused)
        except BaseException as error:  # noqa: BLE001  # `_failed` distinguishes records from the machine
            self._failed(inbox, error)
        self._note_outputs(inbox)
        self.counted.note_read(self.places[source].topic, len(records))
        return len(records)

    def _without_refused(
        self, inbox: Inbox, source: str, records: list[Record]
    ) -> tuple[RecordRejected | None, list[Record]]:
        """Returns the records up to the first one that no stage takes; if it is the first of all, this record and why."""
        if not (self._unreadable or self.suspects.has_poison):
            return None, records
        for number, record in enumerate(records):
            refused = self._refused(source, record)
            if refused is not None:
                end = max(1, number)
                inbox.put_back(source, records[end:])
                if not number and isinstance(record, UnreadableBatch):
                    self._unreadable -= 1
                return (None if number else refused), records[:end]
        return None, records

    def _refused(self, source: str, record: Record) -> RecordRejected | None:
        if isinstance(record, UnreadableBatch):
            return RecordRejected("unreadable_batch", record.problem)
        poison = self.suspects.poison(source, record.offset)
        return None if poison is None else RecordRejected("poison", poison)

    def _tick(self, inbox: Inbox, now: float, behind: Mapping[str, float]) -> None:
        if self.dead:
            return
        try:
            inbox.stage.tick(now, behind)
        except BaseException as error:  # noqa: BLE001  # `_failed` distinguishes records from the machine
            self._failed(inbox, error, in_tick=True)
        self._note_outputs(inbox)

    def _failed(self, inbox: Inbox, error: BaseException, *, in_tick: bool = False) -> NoReturn:
        """Marks the lane as dead at once, so that no checkpoint commits the half of a record's work."""
        self.dead = True
        raise_stage_failed(inbox, error, in_tick=in_tick)

    def cut(self) -> Cut:
        """Cuts all stages at the same point in time; the method does not await.

        Raises:
            StageFailed: a stage raised.
        """
        self.woken = self.urgent = False
        rows: Rows = []
        outputs: list[Output] = []
        offsets: dict[str, int] = {}
        for name, stage in self.stages.items():
            try:
                cut = stage.cut()
            except BaseException as error:  # noqa: BLE001  # `_failed` distinguishes records from the machine
                self._failed(self._inboxes[name], error)
            prefix = name.encode() + b"/"
            rows += [(prefix + key, value) for key, value in cut.rows]
            outputs += cut.outputs
            offsets |= cut.offsets
        for source, offset in offsets.items():
            self._unread[source].note_cut(offset)
        for inbox in self._inboxes.values():
            for source, (_, last) in inbox.pending_offsets.items():
                self.suspects.passed(source, last)
            inbox.pending = 0
            inbox.pending_offsets = {}
        self.suspects.set_aside()
        self.pending = self.pending_bytes = 0
        if self._unwritten_format and (rows or offsets):
            self._unwritten_format = False
            # Before the offsets, because plain sends can stop in between: offsets without a format are those of format 1.
            rows.append((FORMAT_ROW, b"%d" % self._format))
        rows += self.offsets.rows(offsets, has_rows=bool(rows))
        rows = self._formats.rows_in(self._format, rows)
        self._unwritten.update(rows)
        return Cut(rows, outputs, offsets)

    def drop(self) -> None:
        """Drops all stages, because their memory must not outlive the ownership of the partition."""
        self.dead = True
        for stage in self.stages.values():
            stage.drop()
