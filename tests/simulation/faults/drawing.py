"""Draws faults and plays them in a world."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from aiokafka.protocol.api import RequestStruct
from tests.simulation.cluster.network import Link
from tests.simulation.faults import (  # noqa: F401  # they add theirs
    of_configs,
    of_inputs,
    of_processes,
    of_stages,
    of_the_cluster,
)
from tests.simulation.faults.registry import NEEDS, OF_WATCHES, ONLY, SHARES, Fault, Stumble
from tests.simulation.scenario import Scenario
from tests.simulation.watch_world import WatchWorld
from tests.simulation.world import World


class Ambush(NamedTuple):
    """Something that happens at one of the next messages."""

    key: int
    at_answer: bool
    of: Any
    countdown: list[int]
    strike: Callable[[Link], object]


class Faults:
    """Plays faults in a world.

    Args:
        world: The world.
        seed: Determines what is drawn.
        without: The numbers of faults that are not played. The others stay the same.
    """

    def __init__(self, world: World | WatchWorld, seed: int, without: Collection[int] = ()) -> None:
        # The faults of a world of watches use only what both kinds of worlds have.
        self.world: Any = world
        self._seed, self._without = seed, without
        self.rnd = random.Random(seed)
        self.counts: Counter[str] = Counter()
        """Number of faults that have happened, by kind."""
        self.refusals: list[tuple[int, int]] = []
        self.stumbles: list[Stumble] = []
        self.over = False
        """Whether no fault happens any more."""
        self._ambushes: list[Ambush] = []
        scenario = world.scenario
        self._shares = {work: share for work, share in SHARES.items() if _is_possible(work, scenario)}
        world.network.before_message = self._message
        world.cluster.refuse = self._refuses
        if isinstance(world, World):
            world.stumble = self._stumble
            world.scorers.answered_twice = lambda: self.note("scorer answers twice", "a scoring process answers twice")
            world.models.failed = lambda way: self.counts.update(["judge gives no verdict"])

    def play(self, number: int) -> None:
        """Draws the fault of a number and plays it."""
        if number in self._without:
            return
        self.rnd = random.Random(f"fault {self._seed} {number}")
        (work,) = self.rnd.choices([*self._shares], [*self._shares.values()])
        work(self)

    def end(self) -> None:
        """Ends all faults that last."""
        self.over = True
        self._ambushes.clear()
        self.refusals.clear()
        self.stumbles.clear()
        self.world.calm()

    def note(self, kind: str, line: str) -> None:
        """Counts a fault that has happened, and adds it to the story."""
        self.counts[kind] += 1
        self.world.tell(line)

    def worker(self) -> Any:
        """Draws a worker, or a watch, that is alive; returns None if there is none."""
        living = [each for each in self.world.workers.values() if each.process.alive]
        return self.rnd.choice(living) if living else None

    def wait_for(
        self, key: int, strike: Callable[[Link], object], *, at_answer: bool, within: int, of: Any = None
    ) -> None:
        """Lets something happen at one of the next messages."""
        self._ambushes.append(Ambush(key, at_answer, of, [self.rnd.randint(0, within)], strike))

    # Hooks of the world

    def _message(self, link: Link, message: Any, to_node: bool) -> None:
        if self.over or link.process is None or not self._ambushes:
            return
        key = message.API_KEY
        for ambush in [*self._ambushes]:
            if ambush.key == key and ambush.at_answer != to_node and ambush.of in (None, link.process):
                if ambush.countdown[0]:
                    ambush.countdown[0] -= 1
                else:
                    self._ambushes.remove(ambush)
                    ambush.strike(link)

    def _refuses(self, request: RequestStruct) -> int:
        for key, error in self.refusals:
            if key == request.API_KEY:
                self.refusals.remove((key, error))
                self.note("refused", f"{type(request).__name__} is answered with error {error}")
                return error
        return 0

    def _stumble(self, stage: str, method: str, records: Sequence[Any]) -> float | None:
        if self.world.poison and any(each.value in self.world.poison for each in records):
            raise ValueError("simulated poison")
        if not self.stumbles or self.world.isolates():
            return None  # a second exception on the same record would rightly make it a dead letter
        for each in self.stumbles:
            name, where, countdown, share = each
            if (name, where) == (stage, method):
                if countdown[0]:
                    countdown[0] -= 1
                    continue
                self.stumbles.remove(each)
                done = {0.0: "", 1.0: " after all its work"}.get(share, " after a part of its work")
                self.note("stage raises", f"the stage {stage} raises in {method}{done}")
                return share
        return None


def _is_possible(work: Fault, scenario: Scenario) -> bool:
    if scenario.kind == "alerts":
        return work in OF_WATCHES
    possible = scenario.kind in ONLY.get(work, (scenario.kind,))
    return possible and (work not in NEEDS or getattr(scenario, NEEDS[work]))
