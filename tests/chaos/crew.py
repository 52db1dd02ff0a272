"""Runs the workers of a round, and injects faults into workers, scorers, disks and brokers."""

from __future__ import annotations

import heapq
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic

from tests.chaos.pusher import ConfigPusher
from tests.chaos.scenario import NETWORK, PUSHES, Drawn, Scenario
from tests.chaos.small_disk import SmallDisk
from tests.support.kafka_cluster import KafkaCluster
from tests.support.workers import Fleet, Worker

RESTART_S = 1.0
"""The shortest time between two starts of a worker, in seconds."""
TERMINATION_S = 30.0
"""An orderly stop that takes longer than this counts as a fault, in seconds."""
DOOMED_S = 5.0
"""How long after the load a worker can still reach the step at which it kills itself, in seconds."""
ZOMBIE_S = 4.0
"""How long a replaced worker can run after it was resumed, in seconds."""


@dataclass
class Post:
    """A slot for a worker; a new worker fills the slot when the worker ends."""

    name: str
    stages: str
    state_dir: Path | None = None
    worker: Worker | None = None
    started_at: float = 0.0
    doomed: bool = False


class Crew:
    """Keeps the workers of a scenario running, and injects its faults when they are due."""

    def __init__(
        self,
        fleet: Fleet,
        scenario: Scenario,
        cluster: KafkaCluster | None,
        disk: SmallDisk | None,
        pusher: ConfigPusher | None = None,
    ) -> None:
        self._fleet, self._scenario, self._cluster, self._disk, self._pusher = fleet, scenario, cluster, disk, pusher
        self.counters: Counter[str] = Counter()
        """Number of faults that happened, by kind."""
        self.ends: Counter[str] = Counter()
        """How workers ended that the harness had not ended."""
        self._passed_s = 0.0
        self._number = 0
        self._due: list[tuple[float, int, Callable[[], bool]]] = []
        self._posts: list[Post] = []
        self._lives: Counter[str] = Counter()
        self._leaving: list[tuple[Worker, float]] = []
        self._stopped: set[int] = set()
        self._set_networks(scenario.distance_s)
        self._scale(scenario.workers)
        for fault in scenario.faults:
            self._at(fault.at_s, lambda fault=fault: self._do(fault))  # type: ignore[misc]

    @property
    def load_s(self) -> float:
        """How long the load is."""
        return self._scenario.load_s

    @property
    def has_due_faults(self) -> bool:
        """Whether a fault is due, and no worker can have it yet."""
        return any(number > 0 for at_s, number, _ in self._due if at_s <= self._passed_s)

    def go_on(self, passed_s: float) -> None:
        """Injects the faults that are due after a time of load, and restarts workers that have ended."""
        self._passed_s = passed_s
        waiting = []
        while self._due and self._due[0][0] <= passed_s:
            item = heapq.heappop(self._due)
            if not item[2]():
                waiting.append(item)  # no worker can have this fault yet
        for item in waiting:
            heapq.heappush(self._due, item)
        self._see_off()
        leaving = [worker for worker, _ in self._leaving]
        for post in self._posts:
            if post.worker is None and any(worker.name == post.name for worker in leaving):
                continue  # its state directory is still in use
            if post.worker is None or post.worker.ended:
                self._note_end(post)
                if monotonic() - post.started_at >= RESTART_S:
                    self._start(post)

    def calm(self, passed_s: float) -> bool:
        """Returns whether no fault is in progress; faults that have not started are dropped."""
        self._due = [item for item in self._due if item[1] < 0]
        heapq.heapify(self._due)
        self.go_on(passed_s)
        doomed = [post for post in self._posts if post.doomed]
        if passed_s > self._scenario.load_s + DOOMED_S:
            for post in doomed:
                self._kill_early(post)
        serving = all(post.worker is not None and post.worker.serves for post in self._posts)
        pushing = self._pusher is not None and self._pusher.busy
        return not self._due and not self._leaving and not doomed and not pushing and serving

    def release(self) -> None:
        """Ends what lasts: the networks become fast, and frozen processes, which would never detect that their worker has
        ended, are killed."""
        self._set_networks(0.0)
        for pid in self._stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # The posts of workers

    def _start(self, post: Post) -> None:
        self._lives[post.name] += 1
        post.started_at, post.doomed = monotonic(), False
        post.worker = self._fleet.start(post.name, stages=post.stages, state_dir=post.state_dir, mortal=True)

    def _note_end(self, post: Post) -> None:
        if post.worker is None:
            return
        code = post.worker.process.returncode
        if post.doomed and code == -signal.SIGKILL:
            self.counters["killed at a step"] += 1
        else:
            self.ends[f"exit code {code}"] += 1
        post.worker, post.doomed = None, False

    def _scale(self, count: int) -> None:
        """Changes the number of workers, or of workers per stage if each stage has its own processes."""
        stages = self._scenario.stages if self._scenario.split else (",".join(self._scenario.stages),)
        split = self._scenario.split
        wanted = [(f"{stage if split else 'worker'}-{number}", stage) for number in range(count) for stage in stages]
        names = {name for name, _ in wanted}
        for post in [post for post in self._posts if post.name not in names]:
            self._posts.remove(post)
            if post.worker is not None and not post.worker.ended:
                self._terminate(post.worker)
        for name, stage in wanted:
            if all(post.name != name for post in self._posts):
                self._number += 1
                state_dir = self._disk.folder / name if self._disk and not self._posts else None
                post = Post(name, stage, state_dir)
                self._posts.append(post)
                self._start(post)

    # Faults. Each method returns whether the fault could be injected.

    def _at(self, at_s: float, what: Callable[[], bool]) -> None:
        self._number += 1
        heapq.heappush(self._due, (at_s, self._number, what))

    def _do(self, fault: Drawn) -> bool:
        if fault.kind == "scaled":
            self.counters[fault.kind] += 1
            self._scale(fault.workers)
            return True
        if fault.kind == "node killed":
            return self._kill_node(fault)
        if fault.kind in NETWORK:
            self._slow_the_network(fault)
            return True
        if fault.kind in PUSHES:
            assert self._pusher is not None
            self.counters[fault.kind] += 1
            if fault.kind == "config pushed":
                self._pusher.push()
            else:
                self._pusher.write_refused()
            return True
        within_reach = [post for post in self._posts if self._can(fault, post)]
        if not within_reach:
            return False
        post = within_reach[int(fault.pick * len(within_reach))]
        worker = post.worker
        assert worker is not None
        if fault.kind not in ("killed at a step", "stage raises"):  # these faults are counted when they come about
            self.counters[fault.kind] += 1
        match fault.kind:
            case "killed":
                worker.kill()
                post.worker = None
            case "killed at a step":
                assert fault.death is not None
                post.doomed = True
                worker.doom(*fault.death)
            case "stage raises":
                worker.let_stumble(fault.stage)
            case "state lost":
                worker.kill()
                shutil.rmtree(worker.state_dir, ignore_errors=True)
                post.worker = None
            case "terminated":
                self._terminate(worker)
                post.worker = None
            case "frozen":
                worker.freeze()
                self._later(fault.for_s, worker.thaw)
            case "frozen and replaced":
                worker.freeze()
                self._replace(post, worker, fault.for_s)
            case "disk full":
                assert self._disk is not None
                self._disk.fill()
                self._later(fault.for_s, self._disk.clear)
                # A running worker possibly writes nothing for that long, but a worker that starts must write.
                worker.kill()
                post.worker = None
            case _:
                for pid in worker.children():
                    self._stop(pid, signal.SIGKILL if fault.kind == "scorer killed" else signal.SIGSTOP)
        return True

    def _can(self, fault: Drawn, post: Post) -> bool:
        """Returns whether the fault is possible for the worker at a post; some faults need a worker that serves."""
        if post.worker is None or post.worker.ended or post.doomed:
            return False
        match fault.kind:
            case "disk full":
                return post.state_dir is not None and post.worker.serves
            case "scorer killed" | "scorer frozen":
                return "score" in post.stages.split(",") and post.worker.serves
            case "killed at a step":
                return post.worker.serves
            case "stage raises":
                return fault.stage in post.stages.split(",") and post.worker.serves
            case _:
                return True

    def _later(self, seconds: float, what: Callable[[], object]) -> None:
        """Schedules the end of a fault, also after the load."""
        self._number += 1
        heapq.heappush(self._due, (self._passed_s + seconds, -self._number, lambda: (what(), True)[1]))

    def _replace(self, post: Post, frozen: Worker, for_s: float) -> None:
        self._number += 1
        self._posts[self._posts.index(post)] = successor = Post(f"{post.name}-for-{self._number}", post.stages)
        self._start(successor)

        def thaw() -> None:
            frozen.thaw()
            self._later(ZOMBIE_S, lambda: self._terminate(frozen))

        self._later(for_s, thaw)

    def _terminate(self, worker: Worker) -> None:
        """Asks a worker to end; `_see_off` checks that the worker ends."""
        worker.process.terminate()
        self._leaving.append((worker, monotonic() + TERMINATION_S))

    def _see_off(self) -> None:
        for item in list(self._leaving):
            worker, deadline = item
            if worker.ended:
                self.ends[f"exit code {worker.process.returncode} after SIGTERM"] += 1
            elif monotonic() > deadline:
                worker.kill()
                self.ends[f"no end within {TERMINATION_S:g} s of SIGTERM"] += 1
            else:
                continue
            self._leaving.remove(item)

    def _kill_early(self, post: Post) -> None:
        if post.worker is not None and not post.worker.ended:
            post.worker.kill()
        post.worker, post.doomed = None, False
        self.counters["killed before its step"] += 1

    def _kill_node(self, fault: Drawn) -> bool:
        cluster = self._cluster
        if cluster is None or not cluster.serves():
            return False
        node = 1 + int(fault.pick * self._scenario.nodes)
        self.counters[fault.kind] += 1
        cluster.kill(node)
        self._later(fault.for_s, lambda: cluster.start(node))
        return True

    def _slow_the_network(self, fault: Drawn) -> None:
        assert self._cluster is not None
        name, slow, usual = "bytes_a_second", fault.bytes_a_second, 0.0
        if fault.kind == "distant broker":
            name, slow, usual = "delay_s", fault.delay_s, self._scenario.distance_s
        self.counters[fault.kind] += 1
        for network in self._cluster.networks:
            setattr(network, name, slow)
            self._later(fault.for_s, partial(setattr, network, name, usual))

    def _set_networks(self, delay_s: float) -> None:
        for network in self._cluster.networks if self._cluster is not None else ():
            network.delay_s, network.bytes_a_second = delay_s, 0.0

    def _stop(self, pid: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            self._stopped.add(pid)
