"""One simulation: a load, drawn faults, rest, and the audit of what was committed."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.audit import claims
from tests.audit.committed import CHANGELOG
from tests.simulation import watch_round
from tests.simulation.faults.drawing import Faults
from tests.simulation.judgement import judged
from tests.simulation.scenario import Kind, Scenario, draw
from tests.simulation.watch_world import WatchWorld
from tests.simulation.world import World
from tests.support.ledger import PARTITIONS, Ledger
from tests.support.span_ledger import SpanLedger

from traceweir.streams.base.stages.watermark import MARKS_ROW

AT_REST_WITHIN_S = 240.0
"""Virtual time after the last fault within which everything must be scored."""
FOR_EACH_FURTHER_S = 140.0
"""Virtual time for each further worker without one of its tasks. A watchdog notices it after 120 s, the worker ends within
10 s and starts again; the rebalance then counts as progress of another one, whose watchdog begins again."""
SLOW_NODES_WITHIN_S = 600.0
"""Further virtual time if the nodes take few bytes a second: what a fenced worker has sent is in the way of the others."""
IN_EFFECT_WITHIN_S = 5.0
"""Virtual time within which a pushed config is in effect in all workers if nothing is disturbed."""


@dataclass
class Outcome:
    """What came of a simulation."""

    seed: int
    kind: Kind | None = None
    faults: dict[str, int] = field(default_factory=dict)
    """Number of faults by kind."""
    found: list[str] = field(default_factory=list)
    """What the audit, the progress or the bounds show; empty if the worker is right."""
    raised: list[str] = field(default_factory=list)
    """What the simulation itself, or the patch that puts a bug into the worker, has raised. It shows no bug."""
    uncalled: frozenset[str] = frozenset()
    """What the patch that puts a bug into the worker has replaced, and the worker has not called."""
    virtual_s: float = 0.0
    steps: int = 0
    digest: str = ""
    """A digest of all committed records, which is the same in every run of the seed."""
    story: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """All that is wrong, of the worker or of the simulation."""
        return [*self.raised, *self.found]

    @property
    def finds(self) -> bool:
        """Whether a finding shows a bug of the worker: one of a patch that is broken shows nothing."""
        return bool(self.found) and not self.raised


def play(
    seed: int,
    faults: int = 60,
    *,
    without: Collection[int] = (),
    prepare: Callable[[Any], object] = lambda world: None,
) -> Outcome:
    """Plays the simulation of a seed.

    Args:
        seed: Determines everything.
        faults: Number of faults to draw; some do not happen, because their moment does not come.
        without: The numbers of faults that are left out; everything else is drawn as with them.
        prepare: Called with the world before anything happens.
    """
    scenario = draw(seed)
    if scenario.kind == "alerts":
        return _play_watches(seed, scenario, faults, without, prepare)
    folder = Path(tempfile.mkdtemp(prefix="traceweir-simulation-"))
    try:
        world = World(seed, scenario, folder)
        prepare(world)
        load = scenario.load()
        played = Faults(world, seed, without)
        outcome = Outcome(seed, scenario.kind)
        rested = world.loop.run_until_complete(_run(world, load, played, faults))
        outcome.faults = dict(played.counts)
        outcome.virtual_s, outcome.steps, outcome.story = world.loop.time(), world.loop.steps, world.story
        if not rested:
            outcome.found.append(f"not at rest in time after the last fault: {_unfinished(world)}")
        else:
            outcome.found += _sentences(judged(world, load))
        outcome.digest = _digest([*world.committed.rows.items()])
        return outcome
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _play_watches(
    seed: int, scenario: Scenario, faults: int, without: Collection[int], prepare: Callable[[Any], object]
) -> Outcome:
    world = WatchWorld(seed, scenario)
    prepare(world)
    scores = watch_round.drawn_story(seed)
    played = Faults(world, seed, without)
    outcome = Outcome(seed, scenario.kind)
    late = world.loop.run_until_complete(watch_round.run(world, scores, played, faults))
    outcome.faults = dict(played.counts)
    outcome.virtual_s, outcome.steps, outcome.story = world.loop.time(), world.loop.steps, world.story
    if late is not None:
        outcome.found.append(late)
    else:
        outcome.found += _sentences(watch_round.judged(world, scores))
    topics = world.settings.topics
    outcome.digest = _digest([world.rows(name) for name in (topics.alerts, topics.alerts_state)])
    return outcome


def _sentences(found: claims.Faults) -> list[str]:
    return [
        f"{heading}: {name}: {line}"
        for heading, group in found.items()
        for name, lines in group.items()
        for line in lines
    ]


def _digest(rows: object) -> str:
    return hashlib.blake2b(repr(rows).encode(), digest_size=8).hexdigest()


async def _run(world: World, load: Ledger | SpanLedger, played: Faults, faults: int) -> bool:
    rnd = world.rnd
    for number in range(rnd.choice((1, 2, 2, 3))):
        world.start(f"w{number + 1}")
    await asyncio.sleep(world.scenario.takeover_s)
    world.send(load.records(world.scenario.backlog, world.now()))
    left, drawn = world.scenario.records, 0
    while left > 0 or drawn < faults:
        # Workers that are far from their nodes do nothing but take partitions over while faults follow fast.
        slower = 4 if world.scenario.distance_s and left == 0 else 1
        await asyncio.sleep(rnd.expovariate(1 / (world.scenario.pause_s * slower)))
        if left > 0:
            count = min(left, rnd.randint(1, 16))
            left -= count
            world.send(load.records(count, world.now()))
            world.committed.read()
            if isinstance(load, Ledger):
                load.warm = _is_warm(world)
        if drawn < faults:
            played.play(drawn)
            drawn += 1
    played.end()
    world.send(load.rest(world.now()))
    if not await _rests(world):
        return False
    if world.scenario.kind == "spans":
        return True
    if world.scenario.pushes:
        assert isinstance(load, Ledger)
        world.pushes.push_the_last(rnd)
        await asyncio.sleep(IN_EFFECT_WITHIN_S)
        world.settle()
        world.send(load.records(40, world.now()) + load.rest(world.now()))
        if not await _rests(world):
            return False
    world.letters_before_the_last_replay = len(world.committed.rows["dead-letters"])
    world.replays.start()  # nothing disturbs this one
    return await _rests(world)


async def _rests(world: World) -> bool:
    until = max([world.loop.time(), *world.away.values()]) + _within_s(world)
    while world.loop.time() < until:
        await asyncio.sleep(1.0)
        world.committed.read()
        at_rest = not world.away and world.committed.is_at_rest() and not world.committed.unread()
        if at_rest and not world.replays.running and not _waits_for_judges(world) and not _is_held_back(world):
            return True
    return False


def _within_s(world: World) -> float:
    """Returns the virtual time within which everything must be scored from now on."""
    without = sum(each.process.alive and each.process.has_lost_a_task for each in world.workers.values())
    # Workers that start one after the other take their partitions over again at each start.
    far_s = 8 * world.scenario.takeover_s if world.scenario.distance_s else 0.0
    slow_s = SLOW_NODES_WITHIN_S if world.scenario.bytes_per_s else 0.0
    return AT_REST_WITHIN_S + FOR_EACH_FURTHER_S * max(0, without - 1) + far_s + slow_s


def _is_held_back(world: World) -> bool:
    """Returns whether an open transaction, such as that of a failed replay, hides committed records."""
    return any(log.stable < log.end for log in world.cluster.logs.values())


def _waits_for_judges(world: World) -> bool:
    """Returns whether a session has a row that says that it waits for a judge."""
    rows = world.committed.last_rows(b"score/r")
    return any(rows.values())


def _is_warm(world: World) -> bool:
    """Returns whether every partition has a committed watermark, so that a record can be behind it."""
    marks = {
        row.partition: row.document["watermark"]
        for row in world.committed.rows[CHANGELOG]
        if row.key == b"assemble/" + MARKS_ROW
    }
    return len(marks) == PARTITIONS and min(marks.values()) > (world.now() - world.settings.guard_s) * 1000


def _unfinished(world: World) -> str:
    states = {
        name: worker.checkpoints.state() if worker.process.alive and worker.checkpoints else worker.process.exit_code
        for name, worker in world.workers.items()
    }
    consumed, waiting = world.committed.progress()
    behind = [f"{stage} has {consumed[stage]} of {waiting[stage]} records" for stage in waiting]
    return f"{', '.join(behind)}; {states}; unread {world.committed.unread()[:4]}"
