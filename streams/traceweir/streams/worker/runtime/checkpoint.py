"""Takes over partitions, passes records to their lanes, and commits their work in Kafka transactions: checkpoints.

Faust manages the application, the consumer group, the assignor and the table. This module takes over partitions and
commits their work:

- An assignment begins a takeover, which goes on outside of the rebalance (`takeover`). It restores the table from the
  committed changelog, fences the former owners of the partitions (`ownership`), and creates the lanes, so that memory,
  position and producer start together. Only then are records read.
- A revocation stops the takeover that is under way, commits a last checkpoint, and drops the lanes, before the worker
  joins its group again.
- While partitions are owned, the next checkpoint starts as soon as outputs are pending, on average at least
  `interval_s` after the last checkpoint (`checkpoint_pace`). Changes that nobody waits for can wait longer. One
  transaction has the changes of all partitions that are due (`checkpoint_rounds`).
- RocksDB gets the rows after the commit, so RocksDB is never ahead of the committed state.
- When Kafka has ended the transactions of the worker, all lanes are dropped, and the worker joins its group again. After
  any other failure the lanes are dropped first, then the process ends. The next owner starts from the last committed
  transaction.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any

from faust.types import TP

from traceweir.streams.base.clock import seconds_now
from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.process_log import LAST_WORD
from traceweir.streams.base.service_tasks import TaskCancelledError
from traceweir.streams.base.setting_groups.worker import TRANSACTION_TIMEOUT_S
from traceweir.streams.base.stages.base import End, Record, StageSpec, handed_topics
from traceweir.streams.base.stages.inputs import input_name
from traceweir.streams.worker.kafka.faust_adapter import install
from traceweir.streams.worker.kafka.log_facts import LogFacts
from traceweir.streams.worker.kafka.partition_table import PartitionTable
from traceweir.streams.worker.kafka.pinned_parts import verify
from traceweir.streams.worker.kafka.rejoin import StaticPlace
from traceweir.streams.worker.runtime.checkpoint_rounds import CheckpointRounds
from traceweir.streams.worker.runtime.delivery import TRANSACTIONS_ENDED
from traceweir.streams.worker.runtime.failure import in_words
from traceweir.streams.worker.runtime.health import Phase
from traceweir.streams.worker.runtime.lane import Lane
from traceweir.streams.worker.runtime.ownership import Ownership
from traceweir.streams.worker.runtime.row_formats import ROW_FORMATS, RowFormats
from traceweir.streams.worker.runtime.suspects import StageFailed, describe
from traceweir.streams.worker.runtime.takeover import Parts, Takeover
from traceweir.streams.worker.runtime.transaction_bound import TransactionBound
from traceweir.streams.worker.runtime.unread_records import UnreadRecords
from traceweir.streams.worker.runtime.watchdog import Duty

log = logging.getLogger(__name__)

HARD_EXIT_S = 10.0
LOSSES_WITHIN_S = 600.0
MAX_LOSSES = 5
"""How often a worker can lose its partitions within `LOSSES_WITHIN_S` seconds; at one more it ends."""
EXIT_FAILED = 70

DISCARD_AFTER_S = 600.0
"""Seconds after a takeover in which the local rows of partitions of other workers are kept, in case they come back."""


class MissingInputError(WorkerError):
    """An input has no such partition; the message contains the way out."""


class OffsetOutOfRangeError(WorkerError):
    """The broker does not have the offset at which an input is read on."""


class Checkpoints:
    """Runs the stages of all owned partitions on a Faust app, and commits their work."""

    def __init__(
        self,
        app: Any,
        table: Any,
        specs: Sequence[StageSpec],
        ownership: Callable[[], Ownership],
        facts: Callable[[], Awaitable[LogFacts]],
        client_options: Mapping[str, Any],
        *,
        partitions: int,
        interval_s: float,
        limit: int = 20_000,
        transaction_timeout_s: float = TRANSACTION_TIMEOUT_S,
        formats: RowFormats = ROW_FORMATS,
    ) -> None:
        """Attaches the checkpoints to the app.

        Args:
            app: A Faust app that is not started yet.
            table: The app's only table.
            specs: The stages, in the order of processing.
            ownership: Creates what makes this worker the writer of the partitions of one assignment.
            facts: Returns what the cluster says of the changelog and the inputs.
            client_options: Options of aiokafka's consumers.
            partitions: Number of partitions of Traceweir's own topics. An input can have more.
            interval_s: Average time between two checkpoints, in seconds.
            limit: Pending records of a partition above which the consumer stops fetching for this partition.
            transaction_timeout_s: Seconds after which Kafka aborts a transaction.
            formats: The formats of rows of this version.
        """
        verify()
        self._app = app
        self._table = PartitionTable(table)
        self._new_ownership = ownership
        self._parts = Parts(self._table, specs, facts, client_options, partitions, formats)
        self._ownership: Ownership | None = None
        self._limit = limit
        self.inputs: Mapping[str, object] = {topic: spec for spec in specs for topic in spec.inputs}
        self.lanes: dict[int, Lane] = {}
        self.transaction_timeout_s = transaction_timeout_s
        """Seconds after which Kafka aborts a transaction."""
        bound = TransactionBound(transaction_timeout_s)
        self.rounds = CheckpointRounds(
            app, self._table, self.lanes, interval_s, bound=bound, fail=self.fail, lose=self.lose, isolate=self._isolate
        )
        """The checkpoints of the lanes."""
        self.unread = UnreadRecords(self.lanes, self.inputs)
        """What no checkpoint contains yet."""
        self._isolations: set[asyncio.Task[None]] = set()
        self._revoking = False
        self._taking_over: Mapping[int, object] | None = None
        self._takeover: Takeover | None = None
        self.takeover_task: asyncio.Task[None] | None = None
        """The latest takeover; None after its revocation."""
        self._steps = 0
        self._losses: list[float] = []
        self._discard: asyncio.TimerHandle | None = None
        self.first_offsets: Mapping[tuple[str, int], int] = {}
        """By topic and partition, the offset before which no record is read."""
        self.takes_over: Callable[[int], object] = lambda partitions: None
        """Called with the number of assigned partitions, before the worker takes them over."""
        self.steps_before: Callable[[], int] = lambda: 0
        """Returns a counter of the work that is done before the worker joins its group; for the watchdog."""
        self.retention_s: Mapping[str, float] = {}
        """How long Kafka keeps the records of an input, in seconds by topic; without topics that say nothing."""
        self.place: StaticPlace | None = None
        """The place of a static member of the group; None: a dynamic one."""
        self.problems: list[str] = []
        """The reason why the worker failed; empty before a failure. The sentence contains no text from records."""
        for topic in self.inputs:
            app.topics.add(
                app.topic(topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
            )
        install(app, self, self._table.changelog, client_options.get("client_rack"))
        self._faust_on_rebalance = app.tables.on_rebalance
        app.tables.on_rebalance = self._on_rebalance

    # Assignment and revocation of partitions

    async def _on_rebalance(self, assigned: set[TP], revoked: set[TP], newly: set[TP], generation: int = 0) -> None:
        """Begins the takeover of an assignment; no heartbeat is sent before this returns, so this waits for nobody."""
        if self._stops():
            return
        try:
            owned = self._owned(assigned)
        except BaseException as error:
            # Faust would swallow it.
            self._give_up(error)
            raise
        # Read before the first await: it belongs to the generation of this assignment.
        formats = self._parts.formats._replace(agreed=self._app.assignor.row_format)
        await self._stop_takeover()
        self._forget()
        self._app.tables.actives_ready = False
        self.takes_over(len(owned))
        self._taking_over = owned
        self._parts = self._parts._replace(formats=formats)
        if owned and formats.default < formats.newest:
            log.info(
                "a member of the group reads rows up to format %d only, so this worker does not write format %d yet",
                formats.agreed,
                formats.newest,
            )
        if owned and formats.agreed < formats.default:
            log.warning(
                "a member of the group reads rows up to format %d only, and this version writes format %d: that member ends "
                "when it gets a partition of this worker. Stop all workers of the earlier version",
                formats.agreed,
                formats.default,
            )
        assignment = assigned, revoked, newly, generation
        self.takeover_task = asyncio.create_task(self._take_over(owned, assignment))

    async def _take_over(self, owned: dict[int, list[TP]], assignment: tuple[set[TP], set[TP], set[TP], int]) -> None:
        """Takes over partitions, then lets Faust find that the table is restored and resume the paused partitions."""
        started = monotonic()
        summary = "nothing to do"
        lanes: dict[int, Lane] = {}
        try:
            await self._stop_writing()
            # Opens the RocksDB files.
            with self._table.translate_errors():
                for table in self._app.tables.values():
                    await table.on_rebalance(*assignment)
            if owned:
                ownership = self._ownership = self._new_ownership()
                takeover = self._takeover = Takeover(owned, self._parts, ownership, self.first_offsets, self._step)
                lanes = await takeover.run()
                summary = takeover.summary
                self.rounds.ownership = ownership
                self.rounds.handed = handed_topics(self._parts.specs) if ownership.hands_over else ()
            await self._faust_on_rebalance(*assignment)
            if not self._stops():
                # Nothing is awaited from here on: a lane that others can see is never stopped with its takeover.
                self.lanes.update(lanes)
                lanes = {}
                self.rounds.begin()
                self._discard = asyncio.get_running_loop().call_later(DISCARD_AFTER_S, self._discard_others, owned)
                log.info("took over partitions %s in %.0f ms: %s", [*owned], (monotonic() - started) * 1e3, summary)
        except asyncio.CancelledError:
            if self.takeover_task is asyncio.current_task() and not self._stops():
                await self.fail(TaskCancelledError("takes over partitions"))
            log.info("stopped taking over partitions %s; the rows that were read so far are kept", [*owned])
            await self._stop_writing()
        except TRANSACTIONS_ENDED as error:
            await self.lose(error)
        except Exception as error:  # noqa: BLE001  # nobody else sees an error of this task
            await self.fail(error)
        finally:
            for lane in lanes.values():
                lane.drop()
            self._takeover = self._taking_over = None

    async def _stop_takeover(self) -> None:
        """Stops the takeover that is under way, if there is one."""
        task = self.takeover_task
        self.takeover_task = None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])

    def _discard_others(self, owned: Collection[int]) -> None:
        """Deletes local rows that get no changes any more; they would only become too old to be used."""
        if numbers := self._table.discard_all_but(owned):
            log.info("deleted the local rows of partitions %s, which other workers own", numbers)

    def _stops(self) -> bool:
        return bool(self.problems) or bool(self._app.should_stop)

    def _owned(self, assigned: set[TP]) -> dict[int, list[TP]]:
        """Returns the partitions of which this worker owns the changelog, with the partitions of topics that each reads.

        Raises:
            MissingInputError: the assignment does not contain all inputs of such a partition.
        """
        numbers = sorted(
            tp.partition for tp in assigned if tp.topic == self._table.changelog and self._app.assignor.is_active(tp)
        )
        for number in numbers:
            missing = [topic for topic in self.inputs if TP(topic, number) not in assigned]
            if missing:
                raise MissingInputError(
                    f"partition {number} was assigned without {', '.join(missing)}: the topic was deleted, or has fewer "
                    "partitions than the others. `traceweir topics check` names the wrong topics, and `traceweir topics "
                    "create` creates missing ones; start the worker again"
                )
        inputs = sorted(tp for tp in assigned if tp.topic in self.inputs)
        return {number: [tp for tp in inputs if tp.partition % self._parts.partitions == number] for number in numbers}

    async def _stop_writing(self) -> None:
        # Detached before the first await: a rebalance and the end of the app can run this at the same time.
        ownership = self._ownership
        self._ownership = None
        if ownership is not None:
            await ownership.stop()

    @property
    def restoring(self) -> int:
        """Number of offsets of changelogs that are still to be read; 0 when no state is restored."""
        return self._takeover.remaining if self._takeover is not None else 0

    def _step(self) -> None:
        self._steps += 1

    async def revoke(self) -> None:
        """Commits a last checkpoint of every lane, then drops the lanes, even if the checkpoint failed.

        Kafka waits for this before a member joins the group again, and heartbeats go on.
        """
        self._revoking = True
        try:
            await self._stop_takeover()
            await self.rounds.last()
        finally:
            self._revoking = False
            self._forget()
            if self._app.should_stop:
                await self._stop_writing()

    def _forget(self) -> None:
        self.rounds.end()
        if self._discard is not None:
            self._discard.cancel()
        for number in list(self.lanes):
            self.lanes.pop(number).drop()

    def _give_up(self, error: BaseException) -> None:
        """Drops all lanes and ends the process.

        A later checkpoint must not commit offsets beyond the rows of the failed checkpoint.
        """
        # The task takes `problems` for the reason of its end.
        if self.takeover_task is not None and self.takeover_task is not asyncio.current_task():
            self.takeover_task.cancel()
        self._forget()
        self.report_end(error)

    def report_end(self, error: BaseException) -> None:
        """Logs why the worker ends, and ends the process after a time limit; further calls do nothing.

        Threads other than that of the worker can call this method too.
        """
        if self.problems:
            return
        self.problems.append(f"the worker stops after {type(error).__name__}; its log contains the details")
        words = in_words(error)
        log.error(
            "the process ends after a failure: %s",
            words or describe(error),
            extra={LAST_WORD: words is not None},
        )
        # Faust's own stop can hang.
        hard_exit = threading.Timer(HARD_EXIT_S, os._exit, [EXIT_FAILED])
        hard_exit.daemon = True
        hard_exit.start()

    async def fail(self, error: BaseException) -> None:
        """Drops all lanes and ends the process."""
        self._give_up(error)
        await self._app.crash(error)

    async def lose(self, error: BaseException) -> None:
        """Drops all lanes, and joins the group again: the next takeover puts right what `error` says.

        Its partitions share a transaction, so that it loses all of them. The outcome of the last transaction is unknown
        here; the next takeover of each partition reads it from the changelog. A worker that loses its partitions again
        and again ends.
        """
        now = monotonic()
        self._losses = [at for at in self._losses if now - at < LOSSES_WITHIN_S] + [now]
        if self._stops() or len(self._losses) > MAX_LOSSES:
            await self.fail(error)
            return
        log.warning("the partitions are dropped, and the worker joins its group again: %s", in_words(error))
        self._forget()
        self._app.tables.actives_ready = False
        if not self._revoking:
            self._app.consumer.join_again()

    # Records in

    def full(self, tp: TP) -> bool:
        """Returns whether the consumer should stop fetching this topic partition for now."""
        lane, source = self._reader(tp)
        if lane is None or tp.topic not in self.inputs:
            return False
        return lane.full(source, self._limit) or self.rounds.full()

    def _reader(self, tp: TP) -> tuple[Lane | None, str]:
        """Returns the lane that reads a partition of a topic, None if there is none, and the name of its input."""
        partitions = self._parts.partitions
        return self.lanes.get(tp.partition % partitions), input_name(tp.topic, tp.partition, partitions)

    def dropped(self, tp: TP) -> None:
        """Notes that a batch was dropped, because the consumer could not pass the batch on at that moment."""
        lane, source = self._reader(tp)
        if lane is not None:
            lane.lose(source)

    def pending_seeks(self) -> list[tuple[TP, int]]:
        """Returns the positions to which the consumer must seek before it reads on."""
        return [
            (TP(*lane.places[source]), offset)
            for lane in self.lanes.values()
            for source, offset in lane.pending_seeks().items()
        ]

    async def take(self, tp: TP, records: Sequence[Record]) -> None:
        """Passes a batch to its lane."""
        lane, source = self._reader(tp)
        if lane is None:
            return
        if lane.has_gap_before(source, records[0].offset):
            return
        try:
            lane.observe_clock(seconds_now())
            await lane.take(source, records)
        except StageFailed as failed:
            await asyncio.shield(self._start_isolation(lane, failed))
            return
        # Faust's stall detector reads these values.
        self._app.monitor.stream_inbound_time[tp] = monotonic()
        self._app.monitor.track_tp_end_offset(tp, self._app.consumer.highwater(tp))

    async def out_of_range(self, places: Sequence[TP]) -> None:
        """Takes the partitions over again, which compares their positions with the logs."""
        if any(self._reader(place)[0] is not None for place in places):
            named = ", ".join(f"{place.topic}/{place.partition}" for place in places)
            await self.lose(
                OffsetOutOfRangeError(
                    f"the broker does not have the next offset of {named}: retention has deleted unread records, or the "
                    "log has lost records"
                )
            )

    def fetched(self, ends: Mapping[TP, End]) -> None:
        """Passes the time and the ends of the inputs to every lane, after a fetch."""
        now = seconds_now()
        self.unread.note(ends)
        self._for_each(lambda lane: lane.fetched(ends, now))

    def waited(self) -> None:
        """Passes the time to every lane; what is due by time, such as a retry, does not wait for the next fetch."""
        now = seconds_now()
        self._for_each(lambda lane: lane.observe_clock(now))

    def _for_each(self, pass_on: Callable[[Lane], None]) -> None:
        for lane in list(self.lanes.values()):
            try:
                pass_on(lane)
            except StageFailed as failed:
                self._start_isolation(lane, failed)

    # State for health pages and watchdogs

    @property
    def phase(self) -> Phase:
        """The current phase of the worker."""
        app = self._app
        if self.problems or app.should_stop:
            return "stopping"
        if app.tables.actives_ready and not app.rebalancing and self._taking_over is None:
            return "ready"
        if self._taking_over or self.lanes:
            return "catching up"
        return "joining" if app._consumer is not None and app._consumer.started else "starting"

    def state(self) -> dict[str, object]:
        """Returns the phase, and the numbers of the partitions that are owned or being taken over."""
        return {"phase": self.phase, "partitions": sorted(self._taking_over or self.lanes)}

    def ready_partitions(self) -> list[int] | None:
        """Returns the numbers of the partitions that this worker owns; None while it is not ready."""
        return sorted(self.lanes) if self.phase == "ready" else None

    def duties(self) -> Iterable[Duty]:
        """Returns the work that must make progress in the current phase."""
        phase = self.phase
        if phase == "stopping":
            return
        if phase != "ready":
            steps = self._app.rebalancing_count, self._steps, self.steps_before()
            yield Duty(
                f"{phase} ({', '.join(f'partition {n}' for n in self._taking_over or ()) or 'no partition yet'})",
                True,
                steps,
            )
            return
        for number, lane in self.lanes.items():
            yield Duty(f"partition {number}: the next checkpoint", lane.woken or lane.in_checkpoint, lane.rounds)
            for source, place in lane.places.items():
                tp = TP(*place)
                end = self.unread.end_of(place)
                yield Duty(f"partition {number}: fetching {source}", not self.full(tp), end and (end.position, end.at))

    # Exceptions of stages

    def _start_isolation(self, lane: Lane, failed: StageFailed) -> asyncio.Task[None]:
        """Isolates in a task of its own: a cancelled fetch must not leave a dead lane behind."""
        task = asyncio.get_running_loop().create_task(self._isolate(lane, failed))
        self._isolations.add(task)
        task.add_done_callback(self._isolations.discard)
        return task

    async def _isolate(self, lane: Lane, failed: StageFailed) -> None:
        """Loads a partition again from its last checkpoint after a stage raised, and isolates the cause.

        The worker ends if neither a record nor a session is the cause. The lane is dead since the exception, so no
        checkpoint commits its memory.
        """
        number = lane.number
        # A checkpoint from before the exception can be in progress.
        async with self.rounds.lock:
            # The partition goes to another worker.
            if self._revoking or self.lanes.get(number) is not lane:
                return
            try:
                suspects = lane.suspects.after(failed)
                lane.drop()
                log.warning(
                    "partition %d: %s; it starts again from its last checkpoint and isolates the cause",
                    number,
                    failed.for_log,
                )
                again = Lane(
                    number,
                    self._parts.specs,
                    self._table,
                    lane.beginnings,
                    seconds_now(),
                    suspects,
                    lane.offsets.undecided_logs,
                    self._parts.formats,
                )
            except Exception as error:  # noqa: BLE001  # the lane cannot be built, so the partition has no owner
                await self.fail(error.error if isinstance(error, StageFailed) else error)
                return
            self.lanes[number] = again
            self.rounds.watch(again)
