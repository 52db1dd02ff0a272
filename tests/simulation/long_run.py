"""Plays days of a worker with a light load, and prints as JSON what grows: tables, lists, objects of each class, rows and tasks.

Each hour has sessions of all kinds, a rebalance every few hours, and then rest. `--leak` puts a leak into the worker.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from gc import collect  # before the simulation replaces it
from pathlib import Path
from typing import Any

from tests.simulation import seams

if __name__ == "__main__":
    # Not where the module is only imported: pytest imports all modules for their examples.
    seams.replace_clocks_and_uuids()

from tests.simulation.scenario import Scenario, draw, warm_up  # the clocks must be replaced first
from tests.simulation.world import World
from tests.support.ledger import Ledger
from tests.support.object_sizes import grown, module_roots, sizes

from traceweir.streams.pipeline.gate.stage import GateStage

SEED = 5
HOUR_S = 3_600.0
GRID_S, QUIET_GRID_S = 20.0, 120.0
"""How far apart the periodic work of the worker is while records come and while none comes, in seconds. The settings have it
once a second and more often."""
RECORDS = 60
"""Number of records in an hour."""
BURST_S = 300.0
"""The part of an hour in which records are sent, in seconds."""
REBALANCED_EVERY = 8
"""Number of hours from one rebalance to the next: another worker comes, and goes."""
LEAST_HOURS = 6
"""With fewer hours there is no early or no late one."""
FIRST_TIMES = 5
"""Items by which a place can grow in two days: counters get a name when what they count happens for the first time."""
VECTORS = 15
"""Number of vectors of a novelty scope."""
BOUNDS = {"partition_max_closed_sessions": 20, "session_timeout_s": 300.0, "heartbeat_interval_s": 60.0}
"""Settings with which what is bounded is full within the first hours."""


def sample(world: World) -> Counter[str]:
    """Returns the sizes of everything that the worker `w1` and the modules of the product hold."""
    collect()
    worker = world.workers["w1"]
    roots: dict[str, object] = {
        "app": worker.app,
        "checkpoints": worker.checkpoints,
        "scoring": worker.scoring,
        "configs": worker.configs,
        **module_roots("traceweir."),
    }
    counts = sizes(roots, leaves_out=_is_simulated)
    counts["tasks"] = len(world.loop.tasks_of(worker.process))
    counts["timers"] = len(world.loop.timers())
    for number in worker.checkpoints.lanes:
        for key in worker.checkpoints._table.rows(number):
            counts[f"rows {_kind_of(key)}"] += 1
    return counts


def _is_simulated(found: object) -> bool:
    return type(found).__module__.startswith(("tests.", "asyncio."))


def _kind_of(key: bytes) -> str:
    return key[:10].decode("ascii", "replace")


async def play(world: World, load: Ledger, hours: int, wanted: Collection[int]) -> dict[int, Counter[str]]:
    """Plays hours, and returns the sizes at rest at the end of those that are wanted."""
    notes: dict[int, Counter[str]] = {}
    world.start("w1")
    await asyncio.sleep(30.0)
    for hour in range(1, hours + 1):
        ends_at = hour * HOUR_S
        world.loop.grid_s = GRID_S
        left = RECORDS
        while left > 0:
            count = min(left, world.rnd.randint(1, 16))
            left -= count
            world.send(load.records(count, world.now()))
            await asyncio.sleep(BURST_S * count / RECORDS)
        world.send(load.rest(world.now()))
        if hour % REBALANCED_EVERY == 0:
            world.start("w2")
            await asyncio.sleep(300.0)
            world.gone.add("w2")
            world.workers["w2"].terminate()
        world.compact()
        world.delete_consumed(1.0)
        world.loop.grid_s = QUIET_GRID_S
        await asyncio.sleep(ends_at - world.loop.time())
        if hour in wanted:
            notes[hour] = sample(world)
    return notes


def _bounded(scenario: Scenario) -> Scenario:
    """Returns a scenario whose bounds are reached within the first hours."""
    config = {**scenario.config, "gate": {**scenario.config["gate"], "cache_size": VECTORS}}
    variables = {**scenario.variables, **BOUNDS}
    return replace(scenario, static_members=False, config=config, variables=variables)


def leak() -> None:
    """Lets the gate keep something of each call: in a list without a name of its own, in a variable of a function."""
    kept: list[bytes] = []
    apply = GateStage.apply

    def apply_and_keep(self: Any, topic: str, records: Any) -> None:
        kept.append(b"candidate")
        apply(self, topic, records)

    seams.put(GateStage, "apply", apply_and_keep)


def main(words: list[str]) -> int:
    """Prints what grows; returns the exit code 0."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=int, default=72)
    parser.add_argument("--leak", action="store_true")
    parser.add_argument("--sizes", action="store_true", help="print all sizes of three hours")
    options = parser.parse_args(words)
    if options.hours < LEAST_HOURS:
        parser.error(f"--hours must be at least {LEAST_HOURS}")
    seams.replace_parts(SEED)
    third = options.hours // 3
    early, late = range(2, third + 1, 2), range(2 * third + 2, options.hours + 1, 4)
    if options.leak:
        leak()
    with tempfile.TemporaryDirectory(prefix="traceweir-simulation-") as folder:
        warm_up(Path(folder))
        world = World(SEED, _bounded(draw(SEED)), Path(folder) / "world")
        load = world.scenario.load()
        assert isinstance(load, Ledger)
        random.seed(SEED)
        notes = world.loop.run_until_complete(play(world, load, options.hours, {*early, *late}))
    shown: Mapping[str, Any] = {
        "hours": options.hours,
        "grown": grown([notes[hour] for hour in early], [notes[hour] for hour in late], FIRST_TIMES),
        "places": len(notes[late[-1]]),
        "sessions": len(load.events),
        "losses": world.workers["w1"].checkpoints._losses,
    }
    print(json.dumps(shown, indent=1))
    if options.sizes:
        hours = early[-1], late[0], late[-1]
        for place in sorted(notes[late[-1]], key=lambda place: -notes[late[-1]][place])[:80]:
            print([notes[hour][place] for hour in hours], place)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
