"""Checkpoints: table rows, outputs and source offsets of a partition in one Kafka transaction, all of it or nothing.

Faust keeps the application, the group, the assignor and the table. Here a partition changes hands, and its work becomes visible:

- on assignment, before anything is read, the partition's producer fences whoever had it; the table is caught up from its committed
  changelog, from its beginning where the local rows are not of it; then the lane is made, with memory, position and producer
  together, and takes records;
- while it is owned, one checkpoint follows the other as soon as something is pending, `interval_s` apart at least;
- RocksDB gets the rows after the commit, so it is never ahead of what is committed;
- whatever goes wrong, memory goes first and the process ends. Its successor starts from the last transaction.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, Literal

from aiokafka import TopicPartition
from faust.types import TP

from traceweir.streams.clock import seconds_now
from traceweir.streams.errors import in_words
from traceweir.streams.kafka.faust_adapter import End, Table, install, verify
from traceweir.streams.process_setup import LAST_WORD
from traceweir.streams.runtime.changelog_restore import ChangelogRestore, StopRequested
from traceweir.streams.runtime.delivery import Delivery
from traceweir.streams.runtime.lane import Lane, StageSpec
from traceweir.streams.runtime.watchdog import Duty
from traceweir.streams.stages.base import Record

log = logging.getLogger(__name__)

FAR_BEHIND = 1_000
"""From so many unread records on a partition's results are late whatever is done, and what counts is to catch up."""
PATIENCE = 4
"""How many times further apart its checkpoints are then, or while a stage has all that it can take: larger ones cost less a record."""
HARD_EXIT_S = 10.0
EXIT_FAILED = 70

Phase = Literal["starting", "joining", "catching up", "ready", "stopping"]
"""Where a worker is: not yet connected, waiting for the group, taking partitions over, at work, on its way out."""


class Checkpoints:
    """Runs stages on a Faust app."""

    def __init__(
        self,
        app: Any,
        table: Any,
        specs: Sequence[StageSpec],
        delivery: Callable[[int], Delivery],
        changelog_id: Callable[[], Awaitable[str]],
        client_options: Mapping[str, Any],
        *,
        interval_s: float = 0.05,
        limit: int = 20_000,
    ) -> None:
        """Attach to the app.

        Args:
            app: A Faust app that is not started yet.
            table: Its one table.
            specs: The stages, in the order of the path.
            delivery: Makes what sends a partition's checkpoints.
            changelog_id: Tells which changelog it is: another one of the same name has another id.
            client_options: How aiokafka's clients connect.
            interval_s: Seconds between two checkpoints of a partition, at least.
            limit: Records that a partition may have pending before it is fetched no further.
        """
        verify()
        self._app, self._table, self._specs, self._delivery = app, Table(table), specs, delivery
        self._changelog_id = changelog_id
        self._options, self._interval_s, self._limit = client_options, interval_s, limit
        self.inputs: Mapping[str, object] = {topic: spec for spec in specs for topic in spec.inputs}
        self.lanes: dict[int, Lane] = {}
        self._deliveries: dict[int, Delivery] = {}
        self._ends: Mapping[TP, End] = {}
        self._taking_over: list[int] | None = None
        self._steps = 0
        self.takes_over: Callable[[int], object] = lambda partitions: None
        """Told how many partitions are this worker's, before it takes them over."""
        self.steps_before: Callable[[], int] = lambda: 0
        """Counts what goes on before the worker joins its group; for the watchdog."""
        self.problems: list[str] = []
        """Why the worker has given up, once it has: a sentence without anything that came from outside."""
        self.finished: Callable[[Lane], None] | None = None
        """Called after each checkpoint; for measuring."""
        for topic in self.inputs:
            app.topics.add(
                app.topic(topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
            )
        install(app, self, self._table.changelog)
        self._faust_on_rebalance = app.tables.on_rebalance
        app.tables.on_rebalance = self._on_rebalance

    # A partition changes hands

    async def _on_rebalance(self, assigned: set[TP], revoked: set[TP], newly: set[TP], generation: int = 0) -> None:
        """After the assignment is known, and before Faust compares the table with its changelog."""
        try:
            started, owned = monotonic(), self._owned(assigned)
            self._taking_over = owned
            self._forget()
            self.takes_over(len(owned))
            await self._stop_deliveries()
            await asyncio.gather(*(self._fence(number) for number in owned))
            with self._table.translate_errors():
                for table in self._app.tables.values():
                    await table.on_rebalance(assigned, revoked, newly, generation)  # opens the RocksDB files
            what = await self._catch_up(owned) if owned else "nothing to do"
            log.info("took over partitions %s in %.0f ms: %s", owned, (monotonic() - started) * 1e3, what)
            await self._faust_on_rebalance(assigned, revoked, newly, generation)
        except StopRequested:
            log.info("told to stop while catching up: what was read so far is kept")
        except BaseException as error:  # Faust would swallow it
            self._give_up(error)
            raise
        finally:
            self._taking_over = None

    def _owned(self, assigned: set[TP]) -> list[int]:
        """The partitions whose changelog is active here. Their inputs must have come with them."""
        numbers = sorted(
            tp.partition for tp in assigned if tp.topic == self._table.changelog and self._app.assignor.is_active(tp)
        )
        for number in numbers:
            missing = [topic for topic in self.inputs if TP(topic, number) not in assigned]
            if missing:
                raise RuntimeError(
                    f"partition {number} came without {', '.join(missing)}; all topics need the same partition count"
                )
        return numbers

    async def _stop_deliveries(self) -> None:
        # Taken at once: a rebalance and the end of the app may both be here.
        deliveries, self._deliveries = self._deliveries, {}
        await asyncio.gather(*(delivery.stop() for delivery in deliveries.values()))

    async def _fence(self, number: int) -> None:
        delivery = self._delivery(number)
        await delivery.start()
        self._deliveries[number] = delivery
        self._step()

    async def _catch_up(self, numbers: Sequence[int]) -> str:
        """Bring the table up to the committed end of its changelog, and make the lanes. Returns what there was to do."""
        began = monotonic()
        catch_up = ChangelogRestore(self._table, self._options, self._step, lambda: bool(self._app.should_stop))
        beginnings = await catch_up.read(numbers, self._changelog_id(), self.inputs)
        read = monotonic()
        for number in numbers:
            firsts = {topic: beginnings[TopicPartition(topic, number)] for topic in self.inputs}
            lane = self.lanes[number] = Lane(number, self._specs, self._table, firsts, seconds_now())
            lane.task = asyncio.create_task(self._run(lane))
            self._step()
            await asyncio.sleep(0)  # to load a large one takes its time
            if self.problems or self._app.should_stop:
                raise StopRequested
        return (
            f"{catch_up.rows} rows, {catch_up.bytes / 1e6:.1f} MB in {(read - began) * 1e3:.0f} ms, "
            f"and {(monotonic() - read) * 1e3:.0f} ms to load"
        )

    def _step(self) -> None:
        self._steps += 1

    async def revoke(self) -> None:
        """A last checkpoint of every lane; whatever comes of it, their memory goes."""
        try:
            await asyncio.gather(*(self._checkpoint(lane, last=True) for lane in list(self.lanes.values())))
        finally:
            self._forget()
            if self._app.should_stop:
                await self._stop_deliveries()

    def _forget(self) -> None:
        for number in list(self.lanes):
            self.lanes.pop(number).drop()

    def _give_up(self, error: BaseException) -> None:
        """Fail-stop. Memory goes at once: a second checkpoint must not commit offsets past the rows of the failed one."""
        self._forget()
        if self.problems:
            return
        self.problems.append(f"the worker gives up: {type(error).__name__}; its log says more")
        words = in_words(error)
        log.error(
            "giving up, the process ends: %s",
            words or f"{type(error).__name__}: {error}",
            extra={LAST_WORD: words is not None},
        )
        hard_exit = threading.Timer(HARD_EXIT_S, os._exit, [EXIT_FAILED])  # Faust's own stop may hang
        hard_exit.daemon = True
        hard_exit.start()

    async def fail(self, error: BaseException) -> None:
        """Give all partitions up and end the process."""
        self._give_up(error)
        await self._app.crash(error)

    # Records in

    def full(self, tp: TP) -> bool:
        """Whether a partition has enough to do."""
        lane = self.lanes.get(tp.partition)
        return lane is not None and tp.topic in self.inputs and lane.full(tp.topic, self._limit)

    def dropped(self, tp: TP) -> None:
        """A batch came at a moment at which it could not be taken."""
        lane = self.lanes.get(tp.partition)
        if lane is not None:
            lane.lose(tp.topic)

    def pending_seeks(self) -> list[tuple[TP, int]]:
        """Where the consumer has to go before it reads on."""
        return [
            (TP(topic, lane.number), offset)
            for lane in self.lanes.values()
            for topic, offset in lane.pending_seeks().items()
        ]

    async def take(self, tp: TP, records: Sequence[Record]) -> None:
        """Hand a batch to its lane."""
        lane = self.lanes.get(tp.partition)
        if lane is None:
            return
        if lane.has_gap_before(tp.topic, records[0].offset):
            return
        lane.observe_clock(seconds_now())
        await lane.take(tp.topic, records)
        # Faust's stall detector looks at these.
        self._app.monitor.stream_inbound_time[tp] = monotonic()
        self._app.monitor.track_tp_end_offset(tp, self._app.consumer.highwater(tp))

    def fetched(self, ends: Mapping[TP, End]) -> None:
        """Let time pass in every lane."""
        now = seconds_now()
        self._ends = ends
        for lane in self.lanes.values():
            lane.fetched(ends, now)

    # What others may know

    @property
    def phase(self) -> Phase:
        """Where the worker is."""
        app = self._app
        if self.problems or app.should_stop:
            return "stopping"
        if app.tables.actives_ready and not app.rebalancing:
            return "ready"
        if self._taking_over or self.lanes:
            return "catching up"
        return "joining" if app._consumer is not None and app._consumer.started else "starting"

    def state(self) -> dict[str, object]:
        """The phase, and the numbers of the partitions that are owned or being taken over."""
        return {"phase": self.phase, "partitions": sorted(self._taking_over or self.lanes)}

    def duties(self) -> Iterable[Duty]:
        """What has to go on in the present phase."""
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
            yield Duty(
                f"partition {number}: the next checkpoint", lane.wake.is_set() or lane.lock.locked(), lane.rounds
            )
            for topic in self.inputs:
                place = TP(topic, number)
                end = self._ends.get(place)
                yield Duty(
                    f"partition {number}: fetching {topic}", not self.full(place), end and (end.position, end.at)
                )

    # Checkpoints out

    async def _run(self, lane: Lane) -> None:
        last = 0.0
        while not lane.dead:
            await lane.wake.wait()
            patience = PATIENCE if lane.lag > FAR_BEHIND or lane.busy() else 1
            await asyncio.sleep(last + self._interval_s * patience - monotonic())
            lane.wake.clear()
            last = monotonic()
            await self._checkpoint(lane)
            lane.rounds += 1

    async def _checkpoint(self, lane: Lane, *, last: bool = False) -> None:
        # Shielded, so that a cancelled waiter never leaves half a transaction to the next one.
        await asyncio.shield(self._guarded_commit(lane, last))

    async def _guarded_commit(self, lane: Lane, last: bool) -> None:
        async with lane.lock:
            if lane.dead:
                return
            try:
                await self._commit(lane, last)
            except Exception as error:  # noqa: BLE001  # any failure of a checkpoint leaves its outcome unknown
                await self.fail(error)
            if last:
                # While slower partitions are at theirs it would begin another one, and lose its producer in the middle of it.
                self.lanes.pop(lane.number, None)
                lane.drop()

    async def _commit(self, lane: Lane, last: bool) -> None:
        cut, number = lane.cut(), lane.number
        told = lane.offsets_to_commit(monotonic(), last=last)
        if not (any(cut) or told):
            return
        offsets = {TopicPartition(topic, number): offset for topic, offset in told.items()}
        end = await self._deliveries[number].send(cut.rows, cut.outputs, offsets)
        if cut.rows:
            self._table.write(number, cut.rows, end)
        self._app.consumer._committed_offset.update({TP(*place): offset for place, offset in offsets.items()})
        if self.finished is not None:
            self.finished(lane)
