"""What all simulated worlds have: a loop in virtual time, a cluster, a network, and a story."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextvars import Context
from typing import Any

from tests.simulation import seams
from tests.simulation.cluster.broker import Cluster
from tests.simulation.cluster.network import Network
from tests.simulation.loop import START_S, Process, SimulatedLoop


class ClusterWorld:
    """A cluster that simulated processes use.

    Args:
        seed: Determines what happens.
    """

    def __init__(self, seed: int) -> None:
        self.rnd = random.Random(f"world {seed}")
        self.loop = SimulatedLoop(random.Random(f"loop {seed}"))
        seams.World.loop = self.loop
        asyncio.set_event_loop(self.loop)
        self.cluster = Cluster(random.Random(f"cluster {seed}"), self.after, lambda: int(self.now() * 1000))
        self.network = Network(self.loop, random.Random(f"network {seed}"), self.cluster)
        self.network.install()
        self.servers = ",".join(f"node{node}:9092" for node in self.cluster.nodes)
        self.workers: dict[str, Any] = {}
        """The living and the ended processes, by name."""
        self.gone: set[str] = set()
        """The names of the processes that do not start again."""
        self.restarts = True
        """Whether processes that end start again."""
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

    def forget(self, process: Process) -> None:
        """Breaks the connections of a process that has ended."""
        for link in [link for link in self.network.links if link.process is process]:
            link.broken = True
        self.network.forget(process)

    def end(self, worker: Any) -> None:
        """Kills a process, which does not start again."""
        self.gone.add(worker.process.name)
        self.workers[worker.process.name].process.end(-9)
