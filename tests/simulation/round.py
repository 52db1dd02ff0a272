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
from tests.audit.evidence import Evidence
from tests.simulation.faults import Faults
from tests.simulation.world import World
from tests.support.ledger import PARTITIONS, Ledger

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.stages.watermark import MARKS_ROW

CONFIG: dict[str, Any] = {
    "criteria": {"tool_trajectory_avg_score": 0.5},
    "gate": {"threshold": 0.65, "required": ["tool_trajectory_avg_score"], "cache_size": 120},
}
VARIABLES: dict[str, Any] = {
    "embedder": "hashing",
    "close_linger_s": 0.5,
    "idle_gap_s": 4,
    "grace_s": 240.0,
    "guard_s": 900.0,
    "session_timeout_s": 6.0,
    "heartbeat_interval_s": 1.5,
}
AT_REST_WITHIN_S = 240.0
"""Virtual time after the last fault within which everything must be scored."""


@dataclass
class Outcome:
    """What came of a simulation."""

    seed: int
    faults: dict[str, int] = field(default_factory=dict)
    """Number of faults by kind."""
    found: list[str] = field(default_factory=list)
    """What is wrong; empty if the worker is right."""
    virtual_s: float = 0.0
    steps: int = 0
    digest: str = ""
    """A digest of all committed records, which is the same in every run of the seed."""
    story: list[str] = field(default_factory=list)


def play(
    seed: int,
    faults: int = 30,
    *,
    without: Collection[int] = (),
    records: int = 150,
    prepare: Callable[[World], object] = lambda world: None,
) -> Outcome:
    """Plays the simulation of a seed.

    Args:
        seed: Determines everything.
        faults: Number of faults to draw; some do not happen, because their moment does not come.
        without: The numbers of faults that are left out; everything else is drawn as with them.
        records: Number of records of the load, without those that complete its sessions.
        prepare: Called with the world before anything happens.
    """
    folder = Path(tempfile.mkdtemp(prefix="traceweir-simulation-"))
    try:
        world = World(seed, read_plan(CONFIG), folder, VARIABLES)
        prepare(world)
        ledger = Ledger(seed, live=8, late=0.05, former=0.004, former_s=450.0, too_late_s=1500.0)
        played = Faults(world, seed, without)
        outcome = Outcome(seed)
        rested = world.loop.run_until_complete(_run(world, ledger, played, faults, records))
        outcome.faults = dict(played.counts)
        outcome.virtual_s, outcome.steps, outcome.story = world.loop.time(), world.loop.steps, world.story
        if not rested:
            outcome.found.append(f"not at rest {AT_REST_WITHIN_S:g} s after the last fault: {_unfinished(world)}")
        else:
            evidence = Evidence(ledger, world.committed, CONFIG)
            for heading, group in claims.faults(evidence, claims.EXACTLY_ONCE, claims.WITHIN_THE_GRACE).items():
                outcome.found += [f"{heading}: {name}: {line}" for name, lines in group.items() for line in lines]
        rows = repr([*world.committed.rows.items()]).encode()
        outcome.digest = hashlib.blake2b(rows, digest_size=8).hexdigest()
        return outcome
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _run(world: World, ledger: Ledger, played: Faults, faults: int, records: int) -> bool:
    rnd = world.rnd
    for number in range(rnd.choice((1, 2, 2, 3))):
        world.start(f"w{number + 1}")
    await asyncio.sleep(2.5)
    world.send(ledger.records(10, world.now()))
    left, drawn = records, 0
    while left > 0 or drawn < faults:
        await asyncio.sleep(rnd.expovariate(1 / 0.6))
        if left > 0:
            count = min(left, rnd.randint(1, 16))
            left -= count
            world.send(ledger.records(count, world.now()))
            world.committed.read()
            ledger.warm = _is_warm(world)
        if drawn < faults:
            played.play(drawn)
            drawn += 1
    played.end()
    world.send(ledger.rest(world.now()))
    until = world.loop.time() + AT_REST_WITHIN_S
    while world.loop.time() < until:
        await asyncio.sleep(1.0)
        world.committed.read()
        if world.committed.is_at_rest() and not world.committed.unread():
            return True
    return False


def _is_warm(world: World) -> bool:
    """Returns whether every partition has a committed watermark, so that a record can be too late for it."""
    marks = {
        row.partition: row.document["watermark"]
        for row in world.committed.rows[CHANGELOG]
        if row.key == b"assemble/" + MARKS_ROW
    }
    return len(marks) == PARTITIONS and min(marks.values()) > (world.now() - VARIABLES["guard_s"]) * 1000


def _unfinished(world: World) -> str:
    states = {
        name: worker.checkpoints.state() if worker.process.alive and worker.checkpoints else worker.process.exit_code
        for name, worker in world.workers.items()
    }
    consumed, waiting = world.committed.progress()
    behind = [f"{stage} has {consumed[stage]} of {waiting[stage]} records" for stage in waiting]
    return f"{', '.join(behind)}; {states}; unread {world.committed.unread()[:4]}"
