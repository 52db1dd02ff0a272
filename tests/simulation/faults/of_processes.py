"""Faults of workers: how they end, stand still and start again, and what happens to their disks and clocks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.simulation import scorer
from tests.simulation.cluster.network import Link
from tests.simulation.faults.registry import Acts, fault
from tests.simulation.scenario import DELETE_RETENTION_S

from traceweir.scorers.evaluation import runner

_SCORERS = str(Path(runner.__file__).parents[1])
NAMES = {0: "Produce", 22: "InitProducerId", 24: "AddPartitionsToTxn", 25: "AddOffsetsToTxn", 26: "EndTxn"}
NAMES |= {28: "TxnOffsetCommit", 1: "Fetch", 11: "JoinGroup", 14: "SyncGroup", 2: "ListOffsets", 9: "OffsetFetch"}
"""The requests at which a process can die or a connection can break, by their keys."""
OF_TRANSACTIONS = (0, 22, 24, 25, 26, 28)
MOST_WORKERS = 4
WRONG_BY_S = (3_600.0, 43_200.0)
"""By how much a wrong clock is ahead or behind, in seconds."""
WRONG_FOR_S = (3.0, 20.0, None, None)
"""For how long a clock is wrong, in seconds; None: until the last fault. A worker compares its clock each minute."""


@fault(1.0, of_watches=True)
def kill(f: Acts) -> None:
    """A worker ends at once."""
    worker = f.worker()
    if worker is not None:
        f.note("killed", f"{worker.process.name} is killed")
        worker.process.end(-9)


@fault(3.0, of_watches=True)
def kill_at_a_step(f: Acts) -> None:
    """A process ends when it sends a request, or just before it gets an answer."""
    key, at_answer = f.rnd.choice([*NAMES]), f.rnd.random() < 0.5

    def strike(link: Link) -> None:
        if link.process is not None and link.process.alive:
            moment = "before the answer to" if at_answer else "with its request"
            f.note("killed at a step", f"{link.process.name} is killed {moment} {NAMES[key]}")
            link.process.end(-9)

    f.wait_for(key, strike, at_answer=at_answer, within=12)


@fault(0.7)
def kill_at_a_write(f: Acts) -> None:
    """A worker ends just before it writes to its disk."""
    worker, world = f.worker(), f.world
    if worker is None:
        return
    name = worker.process.name

    def end() -> bool:
        process = world.workers[name].process
        if process.alive:
            f.note("killed at a write", f"{name} is killed before a write to its disk")
            process.end(-9)
        return not process.alive

    disk = world.disk(name)
    disk.ends_in, disk.end = f.rnd.randint(0, 6), end


@fault(1.5, of_watches=True)
def freeze(f: Acts) -> None:
    """A worker stands still with all its threads, as after SIGSTOP."""
    worker, world = f.worker(), f.world
    if worker is None or worker.process.frozen:
        return
    for_s = f.rnd.choice((0.3, 2.0, 7.0, 11.0, 25.0)) * f.rnd.uniform(0.7, 1.3)  # its transaction times out after 20 s
    f.note("frozen", f"{worker.process.name} is frozen for {for_s:.1f} s")
    worker.process.frozen = True
    world.after(for_s, lambda: world.loop.resume(worker.process))


@fault(4.0, only=("alerts",), of_watches=True)
def freeze_at_a_step(f: Acts) -> None:
    """A process stands still when it sends a request of a transaction, or just before it gets the answer."""
    key, at_answer, world = f.rnd.choice(OF_TRANSACTIONS), f.rnd.random() < 0.5, f.world
    for_s = f.rnd.choice((7.0, 11.0, 25.0)) * f.rnd.uniform(0.9, 1.3)

    def strike(link: Link) -> None:
        process = link.process
        if process is not None and process.alive and not process.frozen:
            moment = "before the answer to" if at_answer else "with its request"
            f.note("frozen at a step", f"{process.name} is frozen {moment} {NAMES[key]} for {for_s:.1f} s")
            process.frozen = True
            world.after(for_s, lambda: world.loop.resume(process))

    f.wait_for(key, strike, at_answer=at_answer, within=6)


@fault(1.0, of_watches=True)
def block(f: Acts) -> None:
    """Code of a worker computes: its event loop stands still, and the thread of its consumer goes on."""
    worker, world = f.worker(), f.world
    if worker is None or worker.process.blocked:
        return
    for_s = f.rnd.choice((0.5, 3.0, 8.0)) * f.rnd.uniform(0.7, 1.3)
    f.note("event loop blocked", f"the event loop of {worker.process.name} is blocked for {for_s:.1f} s")
    worker.process.blocked = True
    world.after(for_s, lambda: world.loop.unblock(worker.process))


@fault(0.7, of_watches=True)
def terminate(f: Acts) -> None:
    """A worker gets SIGTERM."""
    worker = f.worker()
    if worker is not None:
        f.note("terminated", f"{worker.process.name} gets SIGTERM")
        worker.terminate()


@fault(0.4, of_watches=True)
def scale(f: Acts) -> None:
    """Another worker starts."""
    name = f"w{len(f.world.workers) + 1}"
    if len(f.world.workers) < MOST_WORKERS:
        f.note("scaled", f"{name} is a new worker")
        f.world.start(name)


@fault(0.7, of_watches=True)
def twin(f: Acts) -> None:
    """A second process of a worker runs for some seconds, as when an orchestrator replaces a node that it cannot reach."""
    worker, world = f.worker(), f.world
    if worker is None or worker.process.name.endswith("'"):
        return
    for_s = f.rnd.choice((2.0, 8.0, 15.0)) * f.rnd.uniform(0.7, 1.3)
    f.note("two generations at once", f"{worker.process.name} runs twice for {for_s:.1f} s")
    second = world.start(f"{worker.process.name}'")
    world.after(for_s, lambda: world.end(second))


@fault(1.0, of_watches=True)
def rebalance_again(f: Acts) -> None:
    """While the group rebalances, another worker joins or leaves it."""
    key, at_answer = f.rnd.choice((11, 14)), f.rnd.random() < 0.5
    joins = f.rnd.random() < 0.4 and len(f.world.workers) < MOST_WORKERS

    def strike(link: Link) -> None:
        others = [each for each in f.world.workers.values() if each.process.alive and each.process is not link.process]
        who = link.process.name if link.process is not None else "?"
        if joins:
            name = f"w{len(f.world.workers) + 1}"
            f.note("rebalance in a rebalance", f"{name} joins while {who} sends {NAMES[key]}")
            f.world.start(name)
        elif others:
            other = f.rnd.choice(others)
            f.note("rebalance in a rebalance", f"{other.process.name} gets SIGTERM while {who} sends {NAMES[key]}")
            other.terminate()

    f.wait_for(key, strike, at_answer=at_answer, within=3)


@fault(0.6, only=("records", "judged"))
def change_config(f: Acts) -> None:
    """A worker starts again with another config, which it gives up the next time."""
    worker = f.worker()
    if worker is not None:
        f.note("config changed", f"{worker.process.name} is stopped to start with another config")
        f.world.changed ^= {worker.process.name}
        worker.terminate()


@fault(0.3)
def upgrade(f: Acts) -> None:
    """A worker starts again as a version with another format of rows, which the others cannot read; all agree on one."""
    worker = f.worker()
    if worker is not None and worker.process.name not in f.world.upgraded:
        f.note("version changed", f"{worker.process.name} is stopped to start in another version")
        f.world.upgraded.add(worker.process.name)
        worker.terminate()


@fault(4.0, needs="away")
def be_away(f: Acts) -> None:
    """A worker is away for longer than tombstones stay, and comes back with its old disk; others own its partitions."""
    worker, world = f.worker(), f.world
    if worker is None or world.away or worker.process.name.endswith("'"):
        return
    if all(each is worker or not each.process.alive for each in world.workers.values()):
        world.start(f"w{len(world.workers) + 1}")
    # A session's rows are deleted after the guard, and their tombstones at the second of two compactions that far apart.
    for_s = world.settings.guard_s + DELETE_RETENTION_S + f.rnd.uniform(50, 80)
    f.note("away with its disk", f"{worker.process.name} is away for {for_s:.1f} s, and its disk stays as it is")
    world.send_away(worker, for_s, stops=f.rnd.random() < 0.5)


@fault(0.5)
def lose_state(f: Acts) -> None:
    """A worker ends and loses its disk."""
    worker = f.worker()
    if worker is not None:
        f.note("state lost", f"{worker.process.name} is killed and loses its disk")
        worker.process.end(-9)
        f.world.disk(worker.process.name).wipe()


@fault(0.5)
def fill_disk(f: Acts) -> None:
    """The disk of a worker is full for some seconds."""
    worker = f.worker()
    if worker is not None:
        for_s, disk = f.rnd.uniform(1, 8), f.world.disk(worker.process.name)
        f.note("disk full", f"the disk of {worker.process.name} is full for {for_s:.1f} s")
        disk.full = True
        f.world.after(for_s, lambda: setattr(disk, "full", False))


@fault(1.0)
def fail_a_write(f: Acts) -> None:
    """One of the next writes of a worker fails, because the disk is full at that moment."""
    worker = f.worker()
    if worker is not None:
        name, disk = worker.process.name, f.world.disk(worker.process.name)
        disk.fails_in = f.rnd.randint(0, 10)
        disk.failed = lambda: f.note("disk full at a write", f"a write of {name} fails")


@fault(0.5, of_watches=True)
def jump(f: Acts) -> None:
    """The clock of a worker jumps."""
    worker = f.worker()
    if worker is not None:
        by_s = f.rnd.choice((-1, 1)) * f.rnd.uniform(0.5, 5)
        f.note("clock jumps", f"the clock of {worker.process.name} jumps by {by_s:.1f} s")
        worker.process.clock_offset_s += by_s


@fault(2.0, needs="wrong_clocks")
def set_clock_wrong(f: Acts) -> None:
    """The clock of a machine is wrong by hours: for seconds, or until the last fault or until another fault sets it."""
    worker, world = f.worker(), f.world
    if worker is not None:
        name = worker.process.name
        error_s, for_s = f.rnd.choice((-1, 1)) * f.rnd.uniform(*WRONG_BY_S), f.rnd.choice(WRONG_FOR_S)
        until = "until the last fault" if for_s is None else f"for {for_s:g} s"
        f.note("clock wrong by hours", f"the clock of {name} is set wrong by {error_s / 3600:.1f} h {until}")
        world.set_clock(name, error_s)
        if for_s is not None:
            world.after(for_s, lambda: world.set_clock(name, 0.0))


@fault(1.0)
def cancel(f: Acts) -> None:
    """A task of a worker is cancelled, also one of Faust or aiokafka."""
    worker = f.worker()
    tasks = f.world.loop.tasks_of(worker.process) if worker is not None else []
    tasks = [task for task in tasks if not _measures(task)]
    if worker is not None and tasks:
        task = f.rnd.choice(tasks)
        name = getattr(task.get_coro(), "__qualname__", "?")
        f.note("task cancelled", f"the task {name} of {worker.process.name} is cancelled")
        worker.process.has_lost_a_task = True
        task.cancel()


def _measures(task: asyncio.Task[Any]) -> bool:
    """Returns whether a task belongs to the scoring process, which is a process of its own: nothing there cancels it."""
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and (code.co_filename.startswith(_SCORERS) or code.co_filename == scorer.__file__)
