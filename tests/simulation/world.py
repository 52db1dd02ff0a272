"""A simulated world: a cluster with Traceweir's topics, workers, a load, and what was committed."""

from __future__ import annotations

import asyncio
import math
import random
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextvars import Context
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from aiokafka.record.memory_records import MemoryRecords
from tests.audit.committed import CHANGELOG, CONFIGS, INPUTS, OUTPUTS, SPAN_INPUTS, CommittedRecords, Row
from tests.simulation import hostile, seams
from tests.simulation.cluster.batches import Sent, batch_of
from tests.simulation.cluster.broker import Cluster
from tests.simulation.cluster.network import Network
from tests.simulation.cluster_world import ClusterWorld
from tests.simulation.disk import Disk
from tests.simulation.loop import START_S, SimulatedLoop, process_of_context
from tests.simulation.models import SimulatedModels
from tests.simulation.pushes import ConfigPushes
from tests.simulation.replays import Replays
from tests.simulation.scenario import APPS, BYTES_SCALE, DELETE_RETENTION_S, JUDGED, Scenario
from tests.simulation.scorer import ScorerFaults, SimulatedScoringProcess
from tests.simulation.worker import SimulatedWorker
from tests.support.ledger import PARTITIONS, Refused, Sending, home_of_refused
from tests.support.next_format import NEXT_FORMATS, of_next_version

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import Read, Stage, StageSpec
from traceweir.streams.base.topics import StageName, application_id
from traceweir.streams.pipeline.assemble import partition_sessions
from traceweir.streams.pipeline.topology import Topology, topics_of
from traceweir.streams.scoring.configs.records import HOME
from traceweir.streams.scoring.isolation import processes
from traceweir.streams.scoring.isolation.supervisor import ScoringSupervisor
from traceweir.streams.worker import app as worker_app
from traceweir.streams.worker.kafka.log_facts import LogFacts
from traceweir.streams.worker.runtime import transaction_bound
from traceweir.streams.worker.runtime.row_formats import ROW_FORMATS

COMPACTED_EVERY_S = 10.0
"""Time between two compactions while a worker is away, in seconds."""
SETTLED_S = 25.0
"""Time within which a worker that was away has taken partitions over and has published what its old rows make it publish,
in seconds; beside the scenario's `takeover_s`."""
GIVES = 4
"""How many times as many bytes a node gives as it takes, as with a quota of producers."""
WRITE_S = 0.0005
"""Mean time of a write to a disk, in seconds. It counts only while everything is slow."""


class World(ClusterWorld):
    """Everything that a simulation of workers consists of.

    Args:
        seed: Determines what happens.
        scenario: What the workers do.
        folder: An empty folder, for the files beside RocksDB.
    """

    def __init__(self, seed: int, scenario: Scenario, folder: Path) -> None:
        super().__init__(seed)
        self.network.distance_s = scenario.distance_s
        if scenario.bytes_per_s:
            self.limit_bytes(self.cluster.nodes, scenario.bytes_per_s)
            self.cluster.bytes_scale = BYTES_SCALE
            _scale_limits()
        if scenario.away:
            self.cluster.delete_retention_ms = int(DELETE_RETENTION_S * 1000)
        self.scorers = SimulatedScoringProcess.faults = ScorerFaults(random.Random(f"scorers {seed}"))
        start: Any = SimulatedScoringProcess
        seams.put(processes, "ScoringSupervisor", partial(ScoringSupervisor, start=start))
        tombstones_s = DELETE_RETENTION_S if scenario.away else math.inf
        seams.put(worker_app, "log_facts", partial(_facts, tombstones_s=tombstones_s))
        seams.put(worker_app, "Topology", _stumbling(self))
        self.models = SimulatedModels(random.Random(f"models {seed}"))
        self.models.install()
        self.scenario, self._folder = scenario, folder
        self.stages = scenario.stages
        self._plans = read_plan(scenario.config), read_plan(scenario.changed_config)
        variables = {"kafka_bootstrap_servers": self.servers, "partitions": PARTITIONS, **scenario.variables}
        # Below the default, so that some of the freezes outlast it.
        self.settings = Settings(transaction_timeout_s=20.0, **variables)
        self.application = application_id(self.settings.topic_prefix, self.stages)
        self.committed = SimulatedCommitted(
            self.cluster, self.settings.topic_prefix, self.application, spans=scenario.kind == "spans"
        )
        # Followed topics come last: the place of a topic decides which node leads it, which a seed must keep.
        followed = topics_of("score", self.settings.topics).followed
        for name in (*(each for each in self.committed.names if each not in followed), *followed):
            self.cluster.create_topic(name, PARTITIONS)
        self.workers: dict[str, SimulatedWorker] = {}
        self._disks: dict[str, Disk] = {}
        self.stumble: Callable[[str, str, Sequence[Any]], float | None] = lambda stage, method, records: None
        """Called with the names of a stage and of its method, and with the records, before the stage works; can raise.

        Returns the share of the work after which the stage raises; None: it does not raise."""
        self.replays = Replays(self.loop, self.settings, self.forget, self.tell)
        files = scenario.config, scenario.changed_config
        judged = JUDGED if scenario.certified else None
        self.pushes = ConfigPushes(self.cluster, self.settings.topics.configs, files, APPS, judged)
        self.settled: dict[int, int] = {}
        """By partition, the offset of `sessions` from which on the last pushed config counts."""
        self.upgraded: set[str] = set()
        """The names of the workers that start as a version with another format of rows."""
        self.poison: set[bytes] = set()
        """The values of records on which the stage assemble raises each time."""
        self.refused: list[Refused] = []
        self.forwarded = 0
        """Number of refused records that were sent to another partition than the home of their session."""
        """The records of people and agents outside the load that must become dead letters."""
        self.clock_errors_s: dict[str, float] = {}
        """Seconds by which the clocks of machines are ahead, also of the processes that start there later."""
        self.changed: set[str] = set()
        """The names of the workers that start with the changed config."""
        self.away: dict[str, float] = {}
        """By the name of a worker that starts again after a long time, when it has done so and has settled, by the loop."""
        self.letters_before_the_last_replay: int | None = None
        """Number of records in the topic of the dead letters before the replay that nothing disturbs."""

    # Workers

    def start(self, name: str) -> SimulatedWorker:
        """Starts a worker, or starts it again with the disk that it had; a living worker stays as it is.

        Two processes never share a disk: the state directory has a lock.
        """
        self.gone.discard(name)
        if name in self.workers and self.workers[name].process.alive:
            return self.workers[name]
        self.tell(f"{name} starts")
        instance = name.rstrip("'") if self.scenario.static_members else None
        settings = self.settings.model_copy(update={"state_dir": self._folder / name, "group_instance_id": instance})
        plan = self._plans[name in self.changed]
        formats = NEXT_FORMATS if name in self.upgraded else ROW_FORMATS
        worker = SimulatedWorker(self.loop, name, settings, plan, self.stages, lambda process: True, formats)
        worker.process.clock_offset_s = self.clock_errors_s.get(name, 0.0)
        seams.World.disks[worker.process] = self.disk(name)
        self.disk(name).gone = False
        worker.process.ended = partial(self._ended, worker)
        self.workers[name] = worker
        worker.start()
        return worker

    def disk(self, name: str) -> Disk:
        """Returns the disk of a worker."""
        if name not in self._disks:
            disk = self._disks[name] = Disk(random.Random(f"disk {name}"))
            disk.wrote = partial(self._write_slowly, name)
        return self._disks[name]

    def _ended(self, worker: SimulatedWorker) -> None:
        process = worker.process
        self.tell(f"{process.name} ends with code {process.exit_code}")
        self.forget(process)
        self.disk(process.name).crash()
        if self.restarts:
            self.after(self.rnd.uniform(0.2, 4.0), partial(self._restart, process.name))
        for scorer in [each for each in self.scorers.running if each.process is process]:
            self.scorers.running.remove(scorer)

    def _restart(self, name: str) -> None:
        if name not in self.gone and not self.workers[name].process.alive:
            self.start(name)

    def send_away(self, worker: SimulatedWorker, for_s: float, *, stops: bool) -> None:
        """Ends a worker, lets it start again later with the disk that it has now, and lets the cluster compact its logs.

        Args:
            worker: The worker.
            for_s: How long it is away, in seconds.
            stops: Whether it gets SIGTERM; otherwise it is killed.
        """
        name = worker.process.name
        settled_s = for_s + self.scenario.takeover_s + SETTLED_S
        self.away[name] = self.loop.time() + settled_s
        self.gone.add(name)
        self.disk(name).flush()
        if stops:
            worker.terminate()
        else:
            worker.process.end(-9)
        for number in range(1, int(for_s / COMPACTED_EVERY_S) + 1):
            self.after(number * COMPACTED_EVERY_S, self.compact)
        self.after(for_s, partial(self.start, name))
        self.after(settled_s, lambda: self.away.pop(name))

    def set_clock(self, name: str, error_s: float) -> None:
        """Sets the clock of a worker's machine, which the worker's process and later ones there have."""
        self.clock_errors_s[name] = error_s
        self.workers[name].process.clock_offset_s = error_s

    def calm(self) -> None:
        """Ends all faults that last: from now on everything works."""
        for node in [*self.cluster.down]:
            self.cluster.start_node(node)
        self.slow_down(1.0)
        if self.scenario.bytes_per_s:
            self.limit_bytes(self.cluster.nodes, self.scenario.bytes_per_s)
        self.cluster.throttles.clear()
        self.cluster.fetch_all()
        self.scorers.fails_to_start = self.scorers.twice = 0
        self.models.way = "answers"
        if self.upgraded:  # the others cannot read what these have written since they were alone
            self.upgraded |= self.workers.keys()
        for worker in [*self.workers.values()]:
            disk, process = self.disk(worker.process.name), worker.process
            disk.full, disk.fails_in, disk.ends_in = False, None, None
            if process.name in self.clock_errors_s:
                self.set_clock(process.name, 0.0)
            self.loop.resume(process)
            self.loop.unblock(process)
            if process.alive and self.upgraded and worker.formats is not NEXT_FORMATS:
                worker.terminate()

    def limit_bytes(self, nodes: Iterable[int], bytes_per_s: float) -> None:
        """Lets nodes take so many bytes of records in a second, and give `GIVES` times as many."""
        for node in nodes:
            self.cluster.takes_bytes_per_s[node] = bytes_per_s
            self.cluster.gives_bytes_per_s[node] = GIVES * bytes_per_s

    def slow_down(self, factor: float) -> None:
        """Lets messages, threads, scorings and writes to disks take so many times as long as usual."""
        self.network.slowness = self.loop.slowness = self.scorers.slowness = factor

    def _write_slowly(self, name: str) -> None:
        """Lets the event loop of a worker stand still while its disk writes, if everything is slow."""
        process = self.workers[name].process
        if self.network.slowness > 1 and process.alive and not process.blocked:
            process.blocked = True
            for_s = self.disk(name).rnd.expovariate(1 / WRITE_S) * self.network.slowness
            self.after(for_s, lambda: self.loop.unblock(process))

    def isolates(self) -> bool:
        """Returns whether a living worker looks for the record on which a stage has raised."""
        lanes = [
            lane
            for worker in self.workers.values()
            if worker.process.alive and worker.checkpoints is not None
            for lane in worker.checkpoints.lanes.values()
        ]
        return any(lane.suspects.isolating or lane.dead for lane in lanes)

    # Load

    def send(self, sendings: Sequence[Sending]) -> None:
        """Appends records to the topics, as agents do."""
        for topic, partition, key, value, headers, at in sendings:
            name = self.settings.topic_prefix + topic
            at_ms = int((self.now() if at is None else at) * 1000)
            place = name, _moved(partition, key, self.cluster.topics[name])
            self.cluster.append(place, batch_of([Sent(key, value, at_ms, headers)]))

    def send_hostile(self, rnd: random.Random) -> str:
        """Sends a hostile record; returns what it is."""
        draw = hostile.draw_otlp if self.scenario.kind == "spans" else hostile.draw
        found = draw(rnd, 1_000_000 + len(self.refused))
        self._send_refused(rnd, Refused(found.topic, b"hostile", found.value, found.reason))
        return found.what

    def send_poison(self, rnd: random.Random) -> None:
        """Sends a valid event on which the stage assemble raises each time."""
        value = hostile.poison(1_000_000 + len(self.refused))
        self.poison.add(value)
        self._send_refused(rnd, Refused("invocations", b"poison", value, "poison"))

    def _send_refused(self, rnd: random.Random, record: Refused) -> None:
        partition = rnd.randrange(PARTITIONS)
        self.refused.append(record)
        self.forwarded += partition != home_of_refused(partition, record)
        self.send([Sending(record.topic, partition, record.key, record.value)])

    # What nodes do to records over time

    def delete_consumed(self, share: float) -> int:
        """Deletes a share of the consumed records of each input; returns their number."""
        self.committed.read()
        offsets, before = self.cluster.group(self.application).offsets, self.kept()
        for place, offset in offsets.items():
            if (
                place[0] != self.settings.topics.sessions or self.scenario.kind != "judged"
            ):  # judged ones are read again
                log = self.cluster.logs[place]
                log.delete_before(log.begin + int((offset - log.begin) * share))
        return before - self.kept()

    def compact(self) -> int:
        """Compacts the changelog and the topic `configs`; returns how many records are gone."""
        self.committed.read()
        configs = {self.settings.topics.configs} if self._configs_are_read() else set()
        return sum(
            log.compact(int(self.now() * 1000))
            for (name, _), log in self.cluster.logs.items()
            if name.endswith("-changelog") or name in configs
        )

    def _configs_are_read(self) -> bool:
        """Returns whether all living workers, at least one, have read the topic `configs`, and its invalid records are dead letters.

        Kafka does not compact what was written in the last days: it is in the active segment.
        """
        place = self.settings.topics.configs, HOME
        living = [worker for worker in self.workers.values() if worker.process.alive]
        letters = sum(
            dict(row.headers).get("traceweir.topic") == place[0].encode() for row in self.committed.rows["dead-letters"]
        )
        end = self.cluster.logs[place].end
        return (
            bool(living)
            and letters == len(self.pushes.letters)
            and all(worker.configs is not None and worker.configs.position >= end for worker in living)
        )

    def settle(self) -> None:
        """Notes that the last pushed config counts for all sessions that are closed from now on."""
        name = self.settings.topics.sessions
        self.settled = {number: self.cluster.logs[name, number].end for number in range(PARTITIONS)}

    def kept(self) -> int:
        """Returns the number of offsets that the topics still hold."""
        return sum(log.end - log.begin for log in self.cluster.logs.values())


class SimulatedCommitted(CommittedRecords):
    """Reads the committed records of a simulated cluster from its logs."""

    def __init__(self, cluster: Cluster, prefix: str, application: str, *, spans: bool) -> None:
        topics = (*(SPAN_INPUTS if spans else ()), *INPUTS, *OUTPUTS, CONFIGS)
        names = {f"{prefix}{topic}": topic for topic in topics}
        super().__init__(names | {f"{application}-state-changelog": CHANGELOG}, spans=spans)
        self._cluster, self._application = cluster, application
        self._read_to: dict[tuple[str, int], int] = {}

    def read(self) -> int:
        """Reads what was committed since the last call; returns the number of records."""
        count = 0
        for (name, number), log in self._cluster.logs.items():
            topic = self.names.get(name)
            if topic is None:
                continue
            begin = self._read_to.get((name, number), log.begin)
            _, raw, _ = log.read(begin, 1 << 40, committed=True)
            aborted = [each for each in log.aborted if each.last >= begin]
            records = MemoryRecords(raw)
            while records.has_next():
                batch = records.next_batch()
                first = batch.base_offset
                if batch.is_control_batch or any(
                    each.producer == batch.producer_id and each.first <= first < each.last for each in aborted
                ):
                    continue
                for record in batch:
                    if record.offset >= begin:
                        headers = [(name, content) for name, content in record.headers]
                        row = Row(number, record.offset, record.key, record.value, headers, record.timestamp)
                        self.keep(topic, row)
                        count += topic != CHANGELOG
            self._read_to[name, number] = log.stable
        return count

    def offsets(self) -> dict[tuple[str, int], int]:
        """Returns the committed offsets of the group."""
        offsets = self._cluster.group(self._application).offsets
        return {(self.names[topic], number): offset for (topic, number), offset in offsets.items()}


def cluster_alone(seed: int) -> tuple[SimulatedLoop, Cluster]:
    """Returns a loop and a cluster without workers, whose nodes this Python process can reach."""
    loop = SimulatedLoop(random.Random(f"loop {seed}"))
    seams.World.loop = loop
    asyncio.set_event_loop(loop)
    cluster = Cluster(
        random.Random(f"cluster {seed}"),
        lambda seconds, what: loop.call_later(seconds, what, context=Context()),
        lambda: int((START_S + loop.time()) * 1000),
    )
    Network(loop, random.Random(f"network {seed}"), cluster).install()
    return loop, cluster


def _scale_limits() -> None:
    """Divides the limits in bytes of the product, so that a small load is as much for them as a backlog of 100 MB."""
    names = "FIRST_BYTES_PER_S", "FIRST_BYTES", "LEAST_BYTES", "MOST_BYTES"
    for module, name in (*((transaction_bound, each) for each in names), (partition_sessions, "CUT_BYTES")):
        seams.put(module, name, getattr(module, name) // BYTES_SCALE)


def _moved(partition: int, key: bytes | None, count: int) -> int:
    """Returns the partition of a key on a topic with added partitions: one that the same worker reads, as the ledger expects.

    A key moves to newer partitions only. If it moved back, its newest record could lie before an older one, on a partition
    that the workers have not noticed yet.
    """
    if key is not None:
        for number in reversed(range(partition + PARTITIONS, count, PARTITIONS)):
            if zlib.crc32(b"%d %s" % (number, key)) % 2:
                return number
    return partition


def _facts(
    settings: Settings,
    changelog: str,
    inputs: Sequence[str],
    others: Sequence[str] = (),
    *,
    writes: object = None,
    tombstones_s: float,
) -> LogFacts:
    return LogFacts({topic: f"simulated/{topic}" for topic in (changelog, *inputs, *others)}, "simulated", tombstones_s)


def _stumbling(world: World) -> type[Topology]:
    """Returns a topology whose stages ask the world before they work."""

    class Stumbling(Topology):
        def specs(self, stages: Sequence[StageName]) -> list[StageSpec]:
            process = process_of_context.get()
            upgraded = process is not None and world.workers[process.name].formats is NEXT_FORMATS
            found = [of_next_version(self.spec(stage)) if upgraded else self.spec(stage) for stage in stages]
            return [_stumbling_spec(world, spec) for spec in found]

    return Stumbling


def _stumbling_spec(world: World, spec: StageSpec) -> StageSpec:
    def new(partition: int, read: Read, changed: Callable[[], None]) -> Stage:
        stage = spec.new(partition, read, changed)
        for name in ("apply", "tick", "cut", "load"):
            setattr(stage, name, partial(_stumble_first, world, (spec.name, name), getattr(stage, name)))
        return stage

    return replace(spec, new=new)


def _stumble_first(world: World, where: tuple[str, str], work: Callable[..., Any], *args: Any) -> Any:
    applies = where[1] == "apply"
    share = world.stumble(*where, args[1] if applies else ())
    if share is None:
        return work(*args)
    if applies and (done := args[1][: math.ceil(len(args[1]) * share)]):
        work(args[0], done)
    elif share and not applies:
        work(*args)
    raise KeyError("simulated")
