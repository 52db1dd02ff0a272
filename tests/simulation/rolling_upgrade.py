"""Plays a rolling upgrade to the next format of rows, without other faults; prints what each step shows as JSON.

A worker of the present version has the partitions, one of the next version joins it, a further one of the present version
comes and goes, and then the present version leaves.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.simulation import seams

if __name__ == "__main__":
    # Not where the module is only imported: pytest imports all modules for their examples.
    seams.replace_clocks_and_uuids()

from tests.audit.committed import CHANGELOG  # the clocks must be replaced first
from tests.simulation.judgement import judged
from tests.simulation.scenario import draw, warm_up
from tests.simulation.world import World
from tests.support.ledger import Ledger
from tests.support.next_format import FORMER, NEXT

SEED = 5
REBALANCED_S = 15.0
"""Time after which a rebalance is over and what was sent before is scored, in seconds."""


async def play(world: World, load: Ledger) -> dict[str, Any]:
    """Returns what each step shows, by its name, and what is wrong with the scores."""
    shown: dict[str, Any] = {}

    async def step(name: str) -> None:
        await asyncio.sleep(REBALANCED_S)
        for _ in range(20):
            world.send(load.records(10, world.now()))
            await asyncio.sleep(1.0)
        shown[name] = _state(world)

    world.upgraded.add("next")
    world.start("present")
    await step("present version")
    world.start("next")
    await step("both versions")
    world.start("present-2")
    await step("one more of the present version")
    _leave(world, "present-2")
    await step("it has left")
    _leave(world, "present")
    await step("next version")
    world.send(load.rest(world.now()))
    while not world.committed.is_at_rest():
        await asyncio.sleep(1.0)
        world.committed.read()
    world.replays.start()
    await asyncio.sleep(REBALANCED_S)
    world.committed.read()
    return shown | {"wrong": judged(world, load)}


def _leave(world: World, name: str) -> None:
    world.gone.add(name)
    world.workers[name].terminate()


def _state(world: World) -> dict[str, Any]:
    """Returns the workers by how they are, the formats, and by the name of the renamed row how often it was written."""
    world.committed.read()
    rows = world.committed.rows[CHANGELOG]
    return {
        "workers": {
            name: sorted(worker.checkpoints.lanes) if worker.process.alive else f"exit {worker.process.exit_code}"
            for name, worker in world.workers.items()
        },
        "formats": sorted({int(row or 0) for row in world.committed.last_rows(b"checkpoint/format").values()}),
        "rows": {name.decode(): sum(row.key == b"score/" + name for row in rows) for name in (FORMER, NEXT)},
    }


def main() -> int:
    """Prints the steps; returns the exit code 0."""
    seams.replace_parts(SEED)
    with tempfile.TemporaryDirectory(prefix="traceweir-simulation-") as folder:
        warm_up(Path(folder))
        world = World(SEED, replace(draw(SEED), static_members=False), Path(folder) / "world")
        load = world.scenario.load()
        assert isinstance(load, Ledger)
        random.seed(SEED)
        world.restarts = False
        print(json.dumps(world.loop.run_until_complete(play(world, load)), default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
