"""A simulated world in which processes watch scores: a cluster, a log of scores with a planted drop, and the watches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

from aiokafka.errors import KafkaError
from aiokafka.record.memory_records import MemoryRecords
from tests.audit.committed import Row
from tests.simulation.cluster.batches import Sent, batch_of
from tests.simulation.cluster_world import ClusterWorld
from tests.simulation.loop import Process, SimulatedLoop
from tests.simulation.scenario import PREFIX, Scenario
from tests.simulation.seams import RequestThread, put
from tests.support.alert_story import RULE
from tests.support.ledger import PARTITIONS

from traceweir.schemas.score import Score
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.scoring.configs.alert_records import rule_record
from traceweir.streams.scoring.configs.records import HOME
from traceweir.streams.tools.alerts import anchor_evidence, write_pace
from traceweir.streams.tools.alerts import watcher as watcher_module
from traceweir.streams.tools.alerts.state_topic import alerts_group
from traceweir.streams.tools.alerts.watcher import Watcher
from traceweir.streams.tools.anchors.reading import AnchorReader
from traceweir.streams.tools.anchors.topics import AnchorsError
from traceweir.streams.tools.anchors.watch import AnchorWatch
from traceweir.streams.tools.export import checkpoints
from traceweir.streams.worker.kafka import bounded_reader, request_thread, silence
from traceweir.streams.worker.kafka.consumer_tasks import ConsumerTaskEndedError
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

WRITE_EVERY_S = 0.5
"""A watch writes a state without alerts after this time, in seconds, so that many of its writes are disturbed."""
KILLED_AFTER_S = 30.0
"""Time after SIGTERM after which a process is killed, in seconds."""


class SimulatedWatch:
    """`traceweir alerts run` in a process of its own.

    Args:
        loop: The loop of the world.
        name: The name of the process.
        settings: The settings of the watch.
    """

    def __init__(self, loop: SimulatedLoop, name: str, settings: Settings) -> None:
        self.process = Process(name)
        self._loop, self._settings = loop, settings
        self._stops: asyncio.Event | None = None
        self.watcher: Watcher | None = None
        self.problem = ""
        """Why the process has ended by itself."""
        self._main: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the process."""
        self._main = self.process.context.run(self._loop.create_task, self._run())

    def terminate(self) -> None:
        """Sends SIGTERM."""
        self._loop.call_soon(self._begin_to_stop, context=self.process.context)

    def _begin_to_stop(self) -> None:
        if self._stops is None:
            self.process.end(0)
        else:
            self._stops.set()
            self._loop.call_later(KILLED_AFTER_S, self.process.end, -9)

    async def _run(self) -> None:
        self._stops = asyncio.Event()
        self.watcher = Watcher(self._settings)
        code = 0
        try:
            await self.watcher.run(self._stops)
        except Exception as error:  # noqa: BLE001  # as a process, which ends after any error
            code, self.problem = 1, repr(error)
        self.process.end(code)


class WatchWorld(ClusterWorld):
    """Everything that a simulation of watches consists of.

    Args:
        seed: Determines what happens.
        scenario: What was drawn for the seed.
    """

    def __init__(self, seed: int, scenario: Scenario) -> None:
        super().__init__(seed)
        self.scenario = scenario
        self.problems: list[str] = []
        """What no watch may meet, whatever is disturbed."""
        self.settings = Settings(
            kafka_bootstrap_servers=self.servers,
            topic_prefix=PREFIX,
            partitions=PARTITIONS,
            session_timeout_s=6.0,
            heartbeat_interval_s=1.5,
            # Below the default, so that some of the freezes outlast it.
            transaction_timeout_s=20.0,
        )
        topics = self.settings.topics
        for name in (topics.results, topics.alerts, topics.alerts_state, topics.configs, topics.anchor_verdicts):
            self.cluster.create_topic(name, PARTITIONS)
        _replace_parts()
        put(anchor_evidence, "read_apart", self._read_anchors)
        key, value = rule_record(RULE.id, RULE)
        self.cluster.append((topics.configs, HOME), batch_of([Sent(key, value, int(self.now() * 1000))]))

    def start(self, name: str) -> SimulatedWatch:
        """Starts a watch; a living one stays as it is."""
        self.gone.discard(name)
        if name in self.workers and self.workers[name].process.alive:
            return self.workers[name]  # type: ignore[no-any-return]
        self.tell(f"{name} starts")
        watch = self.workers[name] = SimulatedWatch(self.loop, name, self.settings)
        watch.process.ended = partial(self._ended, watch)
        watch.start()
        return watch

    def _ended(self, watch: SimulatedWatch) -> None:
        name = watch.process.name
        self.tell(f"{name} ends with code {watch.process.exit_code} {watch.problem}".rstrip())
        if watch.problem:
            self.problems.append(f"{name} ended by itself: {watch.problem}")
        self.forget(watch.process)
        if self.restarts:
            self.after(self.rnd.uniform(0.2, 4.0), lambda: name in self.gone or self.start(name))

    async def _read_anchors(self, reader: AnchorReader, now: datetime) -> AnchorWatch:
        """Reads in the loop of the world, which knows no other one."""
        try:
            found = await reader.watch(now)
        except (AnchorsError, KafkaUnreachableError, ConsumerTaskEndedError, KafkaError, OSError):
            raise
        except Exception as error:
            self.problems.append(f"anchors were read, and this was raised: {error!r}")
            raise
        self.tell("the verdicts on anchors are read")
        return found

    def calm(self) -> None:
        """Ends all faults that last: from now on everything works."""
        for node in [*self.cluster.down]:
            self.cluster.start_node(node)
        self.slow_down(1.0)
        self.cluster.throttles.clear()
        self.cluster.fetch_all()
        for watch in self.workers.values():
            self.loop.resume(watch.process)
            self.loop.unblock(watch.process)

    def slow_down(self, factor: float) -> None:
        """Lets messages and threads take so many times as long as usual."""
        self.network.slowness = self.loop.slowness = factor

    def compact(self) -> int:
        """Compacts the state of the alerts; returns how many records are gone."""
        now_ms = int(self.now() * 1000)
        name = self.settings.topics.alerts_state
        return sum(log.compact(now_ms) for (topic, _), log in self.cluster.logs.items() if topic == name)

    def send(self, scores: Sequence[Score]) -> None:
        """Appends scores to the topic of results, as workers do."""
        for score in scores:
            key = score.session_id.encode()
            place = self.settings.topics.results, partition_of(key, PARTITIONS)
            self.cluster.append(place, batch_of([Sent(key, score.wire(), int(self.now() * 1000))]))

    def unread(self) -> int:
        """Returns the number of scores that no committed state contains."""
        offsets = self.cluster.group(alerts_group(PREFIX)).offsets
        name = self.settings.topics.results
        return sum(log.end - offsets.get(place, 0) for place, log in self.cluster.logs.items() if place[0] == name)

    def owner_is_at_the_end(self) -> bool:
        """Returns whether a living watch has taken all scores, written or not."""
        name = self.settings.topics.results
        ends = {place[1]: log.end for place, log in self.cluster.logs.items() if place[0] == name}
        for watch in self.workers.values():
            known = watch.watcher
            if watch.process.alive and known is not None and known.lag is not None:
                return {place.partition: offset for place, offset in known._positions.items()} == ends
        return False

    def rows(self, name: str) -> list[Row]:
        """Returns the committed records of a topic, partition by partition."""
        return [
            row
            for (topic, number), log in self.cluster.logs.items()
            if topic == name
            for row in _committed(number, log)
        ]


def _committed(number: int, log: Any) -> list[Row]:
    _, raw, _ = log.read(log.begin, 1 << 40, committed=True)
    records = MemoryRecords(raw)
    found = []
    while records.has_next():
        batch = records.next_batch()
        first = batch.base_offset
        is_aborted = any(each.producer == batch.producer_id and each.first <= first < each.last for each in log.aborted)
        if not batch.is_control_batch and not is_aborted:
            found += [
                Row(number, each.offset, each.key, each.value, [*each.headers], each.timestamp)
                for each in batch
                if each.offset >= log.begin
            ]
    return found


def _replace_parts() -> None:
    """Replaces what asks a cluster through a client in C, which knows no simulated world; lets watches write often."""
    for module in checkpoints, bounded_reader, silence:
        put(module, "reach", lambda settings, *within: "simulated")
    put(bounded_reader, "partition_count", lambda settings, name, error: settings.partitions)
    put(checkpoints, "usable_transactions", lambda settings, *, embedded: True)
    put(request_thread, "threading", SimpleNamespace(Thread=RequestThread))
    put(write_pace, "WRITE_EVERY_S", WRITE_EVERY_S)
    put(watcher_module, "check_partitions", lambda settings, names: [])
    put(watcher_module, "topic_ids", lambda settings, names: {name: f"simulated/{name}" for name in names})
