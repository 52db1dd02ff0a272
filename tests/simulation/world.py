"""A simulated world: a cluster with Traceweir's topics, workers, a load, and what was committed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from tests.audit.committed import CHANGELOG, INPUTS, OUTPUTS, CommittedRecords, Row
from tests.simulation import seams
from tests.simulation.cluster.broker import Cluster
from tests.simulation.cluster.network import Network
from tests.simulation.disk import Disk
from tests.simulation.loop import START_S, SimulatedLoop
from tests.simulation.scorer import ScorerFaults, SimulatedScoringProcess
from tests.simulation.worker import SimulatedWorker
from tests.support.ledger import PARTITIONS, Sending

from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams import app as worker_app
from traceweir.streams.scoring.supervisor import ScoringSupervisor
from traceweir.streams.settings import Settings
from traceweir.streams.stages.base import Read, Stage, StageSpec
from traceweir.streams.topics import STAGES, StageName, application_id
from traceweir.streams.topology import Topology


class World:
    """Everything that a simulation consists of.

    Args:
        seed: Determines what happens.
        plan: The metrics, and the conditions of the gate.
        folder: An empty folder, for the files beside RocksDB.
        variables: Settings by the names of their fields.
    """

    def __init__(self, seed: int, plan: Plan, folder: Path, variables: Mapping[str, Any]) -> None:
        self.rnd = random.Random(f"world {seed}")
        self.loop = SimulatedLoop(random.Random(f"loop {seed}"))
        seams.World.loop = self.loop
        asyncio.set_event_loop(self.loop)
        self.cluster = Cluster(random.Random(f"cluster {seed}"), self.after, lambda: int(self.now() * 1000))
        self.network = Network(self.loop, random.Random(f"network {seed}"), self.cluster)
        self.network.install()
        self.scorers = SimulatedScoringProcess.faults = ScorerFaults(random.Random(f"scorers {seed}"))
        start: Any = SimulatedScoringProcess
        seams.put(worker_app, "ScoringSupervisor", partial(ScoringSupervisor, start=start))
        seams.put(worker_app, "topic_id", lambda settings, topic: f"simulated/{topic}")
        seams.put(worker_app, "Topology", _stumbling(self))
        self._plan, self._folder = plan, folder
        servers = ",".join(f"node{node}:9092" for node in self.cluster.nodes)
        self._variables: dict[str, Any] = {"kafka_bootstrap_servers": servers, "partitions": PARTITIONS, **variables}
        self.settings = Settings(**self._variables)
        self.application = application_id(self.settings.topic_prefix, STAGES)
        self.committed = SimulatedCommitted(self.cluster, self.settings.topic_prefix, self.application)
        for name in (*self.committed.names, self.settings.topics.references):
            self.cluster.create_topic(name, PARTITIONS)
        self.workers: dict[str, SimulatedWorker] = {}
        self._disks: dict[str, Disk] = {}
        self.stumble: Callable[[str, str], object] = lambda stage, method: None
        """Called with the names of a stage and of its method before the stage works; can raise."""
        self.restarts = True
        """Whether workers that end start again."""
        self.story: list[str] = []
        """What has happened, one line each."""

    def now(self) -> float:
        """Returns the time of the world in seconds since 1970."""
        return START_S + self.loop.time()

    def after(self, seconds: float, what: Callable[[], object]) -> asyncio.TimerHandle:
        """Calls a function later, outside all processes."""
        return self.loop.call_later(seconds, what, context=Context())

    def tell(self, line: str) -> None:
        """Adds a line to the story."""
        self.story.append(f"{self.loop.time():9.3f} s  {line}")

    # Workers

    def start(self, name: str) -> SimulatedWorker:
        """Starts a worker, or starts it again with the disk that it had."""
        self.tell(f"{name} starts")
        settings = Settings(**{**self._variables, "state_dir": self._folder / name})
        worker = SimulatedWorker(self.loop, name, settings, self._plan, STAGES, lambda process: True)
        seams.World.disks[worker.process] = self.disk(name)
        worker.process.ended = partial(self._ended, worker)
        self.workers[name] = worker
        worker.start()
        return worker

    def disk(self, name: str) -> Disk:
        """Returns the disk of a worker."""
        return self._disks.setdefault(name, Disk(random.Random(f"disk {name}")))

    def _ended(self, worker: SimulatedWorker) -> None:
        process = worker.process
        self.tell(f"{process.name} ends with code {process.exit_code}")
        for link in [link for link in self.network.links if link.process is process]:
            link.broken = True
        self.network.forget(process)
        self.disk(process.name).crash()
        if self.restarts:
            self.after(self.rnd.uniform(0.2, 4.0), partial(self.start, process.name))
        for scorer in [each for each in self.scorers.running if each.process is process]:
            self.scorers.running.remove(scorer)

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
        prefix = self.settings.topic_prefix
        for topic, partition, key, value, headers, at in sendings:
            builder = DefaultRecordBatchBuilder(
                magic=2,
                compression_type=0,
                is_transactional=0,
                producer_id=-1,
                producer_epoch=-1,
                base_sequence=-1,
                batch_size=2_000_000,
            )
            builder.append(0, int((self.now() if at is None else at) * 1000), key, value, headers)
            self.cluster.logs[prefix + topic, partition].append(bytes(builder.build()))
        self.cluster.look_again()


class SimulatedCommitted(CommittedRecords):
    """Reads the committed records of a simulated cluster from its logs."""

    def __init__(self, cluster: Cluster, prefix: str, application: str) -> None:
        super().__init__(
            {f"{prefix}{topic}": topic for topic in (*INPUTS, *OUTPUTS)} | {f"{application}-state-changelog": CHANGELOG}
        )
        self._cluster, self._application = cluster, application
        self._read_to: dict[tuple[str, int], int] = {}

    def read(self) -> int:
        """Reads what was committed since the last call; returns the number of records."""
        count = 0
        for (name, number), log in self._cluster.logs.items():
            topic = self.names.get(name)
            if topic is None:
                continue
            begin = self._read_to.get((name, number), 0)
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


def _stumbling(world: World) -> type[Topology]:
    """Returns a topology whose stages ask the world before they work."""

    class Stumbling(Topology):
        def specs(self, stages: Sequence[StageName]) -> list[StageSpec]:
            return [_stumbling_spec(world, self.spec(stage)) for stage in stages]

    return Stumbling


def _stumbling_spec(world: World, spec: StageSpec) -> StageSpec:
    def new(partition: int, read: Read, changed: Callable[[], None]) -> Stage:
        stage = spec.new(partition, read, changed)
        for name in ("apply", "tick", "cut", "load"):
            setattr(stage, name, partial(_stumble_first, world, (spec.name, name), getattr(stage, name)))
        return stage

    return replace(spec, new=new)


def _stumble_first(world: World, where: tuple[str, str], work: Callable[..., Any], *args: Any) -> Any:
    world.stumble(*where)
    return work(*args)
