"""The faults of a simulation: what they are, how often they are drawn, and what they do to the world."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from aiokafka.protocol.api import RequestStruct
from tests.simulation.cluster.network import Link
from tests.simulation.world import World

from traceweir.streams.topics import STAGES

RETRIABLE: dict[int, tuple[int, ...]] = {
    22: (14, 15, 51),
    24: (14, 15, 51),
    25: (14, 15, 51),
    26: (14, 15, 51),
    28: (14, 15),
    12: (15,),
    11: (14, 15),
    14: (14, 15),
}
"""Errors after which a client asks again, by the key of the request: the coordinator loads (14), is not available (15), or
ends another transaction (51)."""
NAMES = {0: "Produce", 22: "InitProducerId", 24: "AddPartitionsToTxn", 25: "AddOffsetsToTxn", 26: "EndTxn"}
NAMES |= {28: "TxnOffsetCommit", 1: "Fetch", 11: "JoinGroup", 14: "SyncGroup", 2: "ListOffsets", 9: "OffsetFetch"}
STEPS = tuple(NAMES)
"""The requests at which a process can die or a connection can break."""


class Ambush(NamedTuple):
    """Something that happens at one of the next messages."""

    key: int
    """The key of the request."""
    at_answer: bool
    """Whether it happens when the node answers; otherwise when the request is sent."""
    countdown: list[int]
    """How many such messages still pass."""
    strike: Callable[[Link], object]


class Faults:
    """Plays faults in a world.

    Args:
        world: The world.
        seed: Determines what is drawn.
        without: The numbers of faults that are not played. The others stay the same.
    """

    def __init__(self, world: World, seed: int, without: Collection[int] = ()) -> None:
        self._world, self._seed, self._without = world, seed, without
        self._rnd = random.Random(seed)
        self.counts: Counter[str] = Counter()
        """Number of faults that have happened, by kind."""
        self._ambushes: list[Ambush] = []
        self._keys: dict[int, int] = {}
        world.network.before_message = self._message
        world.cluster.refuse = self._refuses
        world.stumble = self._stumble
        self._refusals: list[tuple[int, int]] = []
        self._stumbles: list[tuple[str, str, list[int]]] = []
        self.over = False
        """Whether no fault happens any more."""

    # Drawing

    def play(self, number: int) -> None:
        """Draws the fault of a number and plays it."""
        if number in self._without:
            return
        self._rnd = random.Random(f"fault {self._seed} {number}")
        kinds, shares = zip(*_SHARES.items(), strict=True)
        (kind,) = self._rnd.choices(kinds, shares)
        getattr(self, f"_{kind}")()

    def end(self) -> None:
        """Ends all faults that last."""
        world = self._world
        self.over = True
        self._ambushes.clear()
        self._refusals.clear()
        self._stumbles.clear()
        for node in [*world.cluster.down]:
            world.cluster.start_node(node)
        world.network.slowness = 1.0
        for worker in world.workers.values():
            world.disk(worker.process.name).full = False
            if worker.process.frozen:
                world.loop.resume(worker.process)
        world.scorers.fails_to_start = 0

    def _note(self, kind: str, line: str) -> None:
        self.counts[kind] += 1
        self._world.tell(line)

    def _worker(self) -> Any:
        living = [each for each in self._world.workers.values() if each.process.alive]
        return self._rnd.choice(living) if living else None

    # Processes

    def _kill(self) -> None:
        worker = self._worker()
        if worker is not None:
            self._note("killed", f"{worker.process.name} is killed")
            worker.process.end(-9)

    def _kill_at(self) -> None:
        key, at_answer = self._rnd.choice(STEPS), self._rnd.random() < 0.5

        def strike(link: Link) -> None:
            if link.process is not None and link.process.alive:
                moment = "before the answer to" if at_answer else "with its request"
                self._note("killed at a step", f"{link.process.name} is killed {moment} {NAMES[key]}")
                link.process.end(-9)

        self._ambushes.append(Ambush(key, at_answer, [self._rnd.randint(0, 12)], strike))

    def _freeze(self) -> None:
        worker, world = self._worker(), self._world
        if worker is None or worker.process.frozen:
            return
        for_s = self._rnd.choice((0.3, 2.0, 7.0, 11.0)) * self._rnd.uniform(0.7, 1.3)
        self._note("frozen", f"{worker.process.name} is frozen for {for_s:.1f} s")
        worker.process.frozen = True
        world.after(for_s, lambda: world.loop.resume(worker.process) if worker.process.frozen else None)

    def _terminate(self) -> None:
        worker = self._worker()
        if worker is not None:
            self._note("terminated", f"{worker.process.name} gets SIGTERM")
            worker.terminate()

    def _scale(self) -> None:
        world = self._world
        name = f"w{len(world.workers) + 1}"
        if len(world.workers) < 4:
            self.counts["scaled"] += 1
            world.start(name)

    def _wipe(self) -> None:
        worker = self._worker()
        if worker is not None:
            self._note("state lost", f"{worker.process.name} is killed and loses its disk")
            worker.process.end(-9)
            self._world.disk(worker.process.name).wipe()

    def _fill_disk(self) -> None:
        worker, world = self._worker(), self._world
        if worker is not None:
            for_s, disk = self._rnd.uniform(1, 8), world.disk(worker.process.name)
            self._note("disk full", f"the disk of {worker.process.name} is full for {for_s:.1f} s")
            disk.full = True
            world.after(for_s, lambda: setattr(disk, "full", False))

    def _jump(self) -> None:
        worker = self._worker()
        if worker is not None:
            by_s = self._rnd.choice((-1, 1)) * self._rnd.uniform(0.5, 5)
            self._note("clock jumps", f"the clock of {worker.process.name} jumps by {by_s:.1f} s")
            worker.process.clock_offset_s += by_s

    def _cancel(self) -> None:
        worker = self._worker()
        tasks = self._world.loop.tasks_of(worker.process) if worker is not None else []
        if tasks:
            task = self._rnd.choice(tasks)
            name = getattr(task.get_coro(), "__qualname__", "?")
            self._note("task cancelled", f"the task {name} of {worker.process.name} is cancelled")
            task.cancel()

    # Nodes and network

    def _stop_node(self) -> None:
        cluster, world = self._world.cluster, self._world
        if len(cluster.down) >= len(cluster.nodes) - 1:
            return
        node = self._rnd.choice([each for each in cluster.nodes if each not in cluster.down])
        for_s = self._rnd.uniform(0.5, 8)
        self._note("node stopped", f"node {node} stops for {for_s:.1f} s")
        cluster.stop_node(node)
        world.network.break_links(node)
        world.after(for_s, lambda: cluster.start_node(node))

    def _move(self) -> None:
        self._note("leaders moved", "partitions get other leaders")
        self._world.cluster.move_leaders()

    def _coordinate(self) -> None:
        self._note("coordinators moved", "groups and transactions get other coordinators")
        self._world.cluster.move_coordinators()

    def _cut(self) -> None:
        worker, world = self._worker(), self._world
        if worker is None:
            return
        node, to_node = self._rnd.choice(world.cluster.nodes), self._rnd.random() < 0.5
        for_s = self._rnd.choice((0.2, 2.0, 8.0)) * self._rnd.uniform(0.5, 1.5)
        way = f"from {worker.process.name} to node {node}" if to_node else f"from node {node} to {worker.process.name}"
        self._note("network cut", f"nothing comes {way} for {for_s:.1f} s")
        world.network.cut(worker.process, node, to_node=to_node, for_s=for_s)

    def _break_at(self) -> None:
        key, at_answer = self._rnd.choice(STEPS), self._rnd.random() < 0.7

        def strike(link: Link) -> None:
            who = link.process.name if link.process is not None else "the world"
            moment = "before the answer to" if at_answer else "with the request"
            self._note("connection broken", f"the connection of {who} breaks {moment} {NAMES[key]}")
            link.break_off()

        self._ambushes.append(Ambush(key, at_answer, [self._rnd.randint(0, 12)], strike))

    def _refuse(self) -> None:
        key = self._rnd.choice([*RETRIABLE])
        self._refusals.append((key, self._rnd.choice(RETRIABLE[key])))

    def _slow(self) -> None:
        world = self._world
        factor, for_s = self._rnd.choice((5.0, 30.0, 200.0)), self._rnd.uniform(0.5, 4)
        self._note("network slow", f"messages take {factor:g} times as long for {for_s:.1f} s")
        world.network.slowness = factor
        world.after(for_s, lambda: setattr(world.network, "slowness", 1.0))

    # Scoring processes and stages

    def _kill_scorer(self) -> None:
        running = self._world.scorers.running
        if running:
            scorer = self._rnd.choice(running)
            self._note("scorer killed", f"the scoring process of {scorer.name} ends")
            scorer.kill_later()

    def _hang_scorer(self) -> None:
        running = self._world.scorers.running
        if running:
            scorer = self._rnd.choice(running)
            self._note("scorer frozen", f"the scoring process of {scorer.name} hangs")
            scorer.hang()

    def _fail_scorer_start(self) -> None:
        self._note("scorer does not start", "the next scoring process does not start")
        self._world.scorers.fails_to_start += 1

    def _raise(self) -> None:
        stage, method = self._rnd.choice(STAGES), self._rnd.choice(("apply", "apply", "apply", "cut", "tick", "load"))
        self._stumbles.append((stage, method, [self._rnd.randint(0, 20)]))

    # Hooks of the world

    def _message(self, link: Link, message: Any, to_node: bool) -> None:
        if self.over or link.process is None:
            return
        key = message.API_KEY
        for ambush in [*self._ambushes]:
            if ambush.key == key and ambush.at_answer != to_node:
                if ambush.countdown[0]:
                    ambush.countdown[0] -= 1
                else:
                    self._ambushes.remove(ambush)
                    ambush.strike(link)

    def _refuses(self, request: RequestStruct) -> int:
        for key, error in self._refusals:
            if key == request.API_KEY:
                self._refusals.remove((key, error))
                self._note("refused", f"{type(request).__name__} is answered with error {error}")
                return error
        return 0

    def _stumble(self, stage: str, method: str) -> None:
        if not self._stumbles or self._world.isolates():
            return  # a second exception on the same record would rightly make it a dead letter
        for each in self._stumbles:
            name, where, countdown = each
            if (name, where) == (stage, method):
                if countdown[0]:
                    countdown[0] -= 1
                    continue
                self._stumbles.remove(each)
                self._note("stage raises", f"the stage {stage} raises in {method}")
                raise KeyError("simulated")


_SHARES: dict[str, float] = {
    "kill": 1.0,
    "kill_at": 3.0,
    "freeze": 1.5,
    "terminate": 0.7,
    "scale": 0.4,
    "wipe": 0.5,
    "fill_disk": 0.5,
    "jump": 0.5,
    "cancel": 1.0,
    "stop_node": 1.0,
    "move": 1.0,
    "coordinate": 1.0,
    "cut": 1.5,
    "break_at": 3.0,
    "refuse": 2.0,
    "slow": 0.7,
    "kill_scorer": 0.7,
    "hang_scorer": 0.4,
    "fail_scorer_start": 0.2,
    "raise": 3.0,
}
