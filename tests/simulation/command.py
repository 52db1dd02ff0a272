"""The command line of the simulation."""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import logging
import math
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from multiprocessing import SimpleQueue, get_context
from pathlib import Path
from typing import NoReturn

from tests.simulation import seams, seed_ledger
from tests.simulation.bugs import (  # noqa: F401  # they add their bugs
    of_alerts,
    of_certificates,
    of_checkpoints,
    of_clocks_and_bytes,
    of_collect,
    of_configs,
    of_replays_and_judges,
    of_stages,
)
from tests.simulation.bugs.registry import BUGS, NEEDED, OF_HIGHER_SEEDS, broken, install, uncalled
from tests.simulation.loop import process_of_context
from tests.simulation.round import Outcome, play
from tests.simulation.scenario import LOW_SEEDS, draw, warm_up

from traceweir.streams.worker.kafka import faust_adapter

FOUND = Path(__file__).parent / "bugs" / "found.json"
"""The first seed that finds each bug."""
FETCH_WAIT_MS = 200
"""A worker asks a broker again after this time. Idle questions take most of the time of a simulation."""
LONGEST_STORY = 40
"""Lines of a story without `--trace`."""
MOST_FINDINGS, LONGEST_LINE = 8, 240
SEARCHED = 120
"""Number of seeds that are searched for a bug that its seed does not show any more: from 1, or from 1001 on.

A third of them where few seeds can show it."""

Job = tuple[int, str, frozenset[int]]
"""A seed, the name of a bug or nothing, and the numbers of faults that are left out."""


def main() -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="play this seed only")
    parser.add_argument("--trace", action="store_true", help="print what happens")
    parser.add_argument("--log", action="store_true", help="print the logs of the workers")
    parser.add_argument("--from", type=int, dest="first", help="the first seed; by default it is drawn")
    parser.add_argument("--of-commit", action="store_true", help="draw the first seed from the content of the commit")
    parser.add_argument("--ledger", type=Path, nargs="?", const=seed_ledger.LEDGER, help="append the figures to a file")
    parser.add_argument("--total", action="store_true", help="print the sum of the ledger, and play nothing")
    parser.add_argument("--count", type=int, help="how many seeds to play; the code is 1 if the time is over before")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to play")
    parser.add_argument("--faults", type=int, default=60, help="faults to draw for each seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the faults to play; by default all")
    parser.add_argument("--bug", choices=sorted(BUGS), default="", help="put this bug into the worker")
    parser.add_argument(
        "--bugs", nargs="*", choices=sorted(BUGS), help="put each, or each of these, into the worker where it is found"
    )
    parser.add_argument(
        "--search", action="store_true", help="find the first seed for each bug, and write the file of them"
    )
    options = parser.parse_args()
    if options.total:
        print(seed_ledger.total(options.ledger or seed_ledger.LEDGER).text())
        return 0
    with tempfile.TemporaryDirectory(prefix="traceweir-simulation-") as folder:
        warm_up(Path(folder))
        gc.freeze()  # what was loaded so far is not copied into each process
        if options.seed is not None:
            return _one(options)
        if options.search:
            return _search_bugs(options)
        if options.bugs is not None:
            return _check_bugs(options)
        return _many(options)


def played(job: Job, faults: int) -> Outcome:
    """Plays a seed in this Python process, which can play only one."""
    seed, bug, without = job
    seams.replace_parts(seed)
    seams.put(faust_adapter, "FETCH_WAIT_MS", FETCH_WAIT_MS)
    outcome = play(seed, faults, without=without, prepare=partial(install, bug) if bug else lambda world: None)
    outcome.raised += broken()
    outcome.uncalled = uncalled()
    return outcome


def _placed(record: logging.LogRecord) -> bool:
    """Adds the virtual time and the simulated process to a line of the log."""
    process = process_of_context.get()
    record.at = seams.seconds()
    record.who = process.name if process is not None else "world"
    return True


def _one(options: argparse.Namespace) -> int:
    left_out = set(range(options.faults)).difference(options.only) if options.only is not None else ()
    job: Job = options.seed, options.bug, frozenset(left_out)
    if options.log:
        logging.basicConfig(level=logging.INFO, format="%(at)9.3f s %(who)s %(name)s: %(message)s")
        logging.getLogger().handlers[0].addFilter(_placed)
        outcome = played(job, options.faults)
    else:
        ((_, outcome),) = _outcomes([job], options)
    if outcome.wrong and not options.trace:
        job, outcome = _shrunk(job, outcome, options)
        only = " ".join(str(number) for number in range(options.faults) if number not in job[2])
        print(f"the same with fewer faults: --seed {options.seed} --faults {options.faults} --only {only}")
    if options.trace or outcome.wrong:
        print(*(outcome.story if options.trace else outcome.story[:LONGEST_STORY]), sep="\n")
    print(
        f"seed {outcome.seed}: {sum(outcome.faults.values())} faults in {outcome.virtual_s:.0f} s, digest {outcome.digest}"
    )
    for line in outcome.wrong[:MOST_FINDINGS]:
        print(f"WRONG: {line[:LONGEST_LINE]}")
    if len(outcome.wrong) > MOST_FINDINGS:
        print(f"and {len(outcome.wrong) - MOST_FINDINGS} more")
    return bool(outcome.wrong)


def _shrunk(job: Job, outcome: Outcome, options: argparse.Namespace) -> tuple[Job, Outcome]:
    """Leaves faults out while the simulation still goes wrong, first many at once and then single ones.

    Ends after `--seconds`, with what was left out until then.
    """
    seed, bug, without = job
    size, until = options.faults // 2, seams.real_monotonic() + options.seconds
    while size and seams.real_monotonic() < until:
        begins = range(0, options.faults, size)
        tries = [(seed, bug, without | set(range(begin, begin + size))) for begin in begins]
        for found, shorter in _outcomes([each for each in tries if each[2] != without], options):
            if shorter.wrong and len(found[2]) > len(without):
                without, outcome = found[2], shorter
                break
        else:
            size //= 2
    return (seed, bug, without), outcome


def _check_bugs(options: argparse.Namespace) -> int:
    seeds: dict[str, int] = json.loads(FOUND.read_text())
    jobs = [(seed, bug, frozenset[int]()) for bug, seed in seeds.items() if not options.bugs or bug in options.bugs]
    found = {bug: outcome for (_, bug, _), outcome in _outcomes(jobs, options)}
    for bug, outcome in found.items():
        _print_broken(bug, outcome)
    missed = [bug for bug, outcome in found.items() if not outcome.finds]
    for bug in [*missed]:  # a change of the worker changes what happens at a seed
        if _first_seed(bug, options) is not None:
            missed.remove(bug)
    print(f"{len(found)} bugs played, not found: {', '.join(missed) or 'none'}")
    unknown = sorted(set(options.bugs or BUGS) - seeds.keys())
    if unknown:
        print(f"not played, because no seed is known: {', '.join(unknown)}; search one with --search")
    return bool(missed or (options.bugs and unknown))


def _search_bugs(options: argparse.Namespace) -> int:
    """Searches seeds for each bug that the file does not have, or that its seed does not show any more."""
    seeds: dict[str, int] = json.loads(FOUND.read_text())
    jobs = [(seed, bug, frozenset[int]()) for bug, seed in seeds.items() if bug in BUGS]
    still = {}
    for (seed, bug, _), outcome in _outcomes(jobs, options):
        _print_broken(bug, outcome)
        print(f"{bug}: seed {seed} {'finds' if outcome.finds else 'does not find'} it", flush=True)
        if outcome.finds:
            still[bug] = seed
    for bug in sorted(BUGS.keys() - still.keys()):
        first = _first_seed(bug, options)
        print(f"{bug}: seed {first}", flush=True)
        if first is not None:
            still[bug] = first
        FOUND.write_text(json.dumps(dict(sorted(still.items())), indent=2) + "\n")
    return bool(BUGS.keys() - still.keys())


def _first_seed(bug: str, options: argparse.Namespace) -> int | None:
    """Returns the first searched seed that shows a bug and is right without it; None if none of `SEARCHED` does."""
    first = LOW_SEEDS + 1 if bug in OF_HIGHER_SEEDS else 1
    seeds: Iterable[int] = range(first, first + SEARCHED)
    if (holds := NEEDED.get(bug)) is not None:
        seeds = itertools.islice((seed for seed in itertools.count(first) if holds(draw(seed))), SEARCHED // 3)
    jobs = [(seed, bug, frozenset[int]()) for seed in seeds]
    never: frozenset[str] | None = None
    for (seed, *_), outcome in _outcomes(jobs, options):
        never = outcome.uncalled if never is None else never & outcome.uncalled
        _print_broken(bug, outcome)
        if outcome.raised and outcome.found:  # a broken patch stops the worker at each seed
            return None
        if outcome.finds:
            ((_, without),) = _outcomes([(seed, "", frozenset())], options)
            if not without.wrong:
                return seed
    for part in sorted(never or ()):
        print(
            f"{bug}: BROKEN: at {len(jobs)} seeds the worker has not called {part}, which the patch replaces",
            flush=True,
        )
    return None


def _print_broken(bug: str, outcome: Outcome) -> None:
    for line in outcome.raised:
        print(f"{bug}: BROKEN at seed {outcome.seed}: {line[:LONGEST_LINE]}", flush=True)


def _many(options: argparse.Namespace) -> int:
    began, cpu_began = seams.real_monotonic(), _cpu_s()
    first = time.time_ns() // 1_000 % 1_000_000_000
    if options.of_commit:
        first = seed_ledger.seed_of_tree()
    if options.first is not None:
        first = options.first
    print(f"seeds from {first}")
    entry = seed_ledger.Entry(seed_ledger.commit(), first, drawn=options.faults)
    faults, kinds = Counter[str](), Counter[str]()
    jobs = ((seed, options.bug, frozenset[int]()) for seed in itertools.islice(itertools.count(first), options.count))
    for (seed, *_), outcome in _outcomes(jobs, options):
        entry.seeds += 1
        faults.update(outcome.faults)
        kinds.update([outcome.kind or "failed"])
        entry.simulated_s += outcome.virtual_s
        if outcome.wrong:
            entry.wrong.append(seed)
            print(f"WRONG: seed {seed}: {outcome.wrong[0][:LONGEST_LINE]}")
            print(f"  python -m tests.simulation --seed {seed} --faults {options.faults}", flush=True)
    entry.faults, entry.kinds = dict(faults.most_common()), dict(kinds)
    entry.took_s = round(seams.real_monotonic() - began, 1)
    entry.cpu_s = round(_cpu_s() - cpu_began, 1)
    entry.simulated_s = round(entry.simulated_s)
    print(entry.text())
    if options.ledger is not None:
        seed_ledger.append(entry, options.ledger)
    if options.count is not None and entry.seeds < options.count:
        print(f"only {entry.seeds} of {options.count} seeds were played: give more --seconds")
        return 1
    return bool(entry.wrong)


def _cpu_s() -> float:
    """Returns the CPU time of this process and of its children that have ended, in seconds."""
    return sum(os.times()[:4])


def _outcomes(jobs: Iterable[Job], options: argparse.Namespace) -> Iterator[tuple[Job, Outcome]]:
    """Plays jobs, several at a time and each in a process of its own, until the time is over."""
    until = (
        math.inf
        if options.bugs is not None or options.search or options.seed is not None
        else seams.real_monotonic() + options.seconds
    )
    todo = iter(jobs)
    results: SimpleQueue[tuple[Job, Outcome]] = get_context("fork").SimpleQueue()
    running: dict[Job, int] = {}
    logging.disable(logging.CRITICAL)
    try:
        while True:
            free = options.jobs - len(running) if seams.real_monotonic() < until else 0
            for job in itertools.islice(todo, free):
                running[job] = _fork(job, options.faults, results)
            if not running:
                return
            job, outcome = results.get()
            os.waitpid(running.pop(job), 0)
            yield job, outcome
    finally:
        for child in running.values():  # the caller needs no further outcome
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _fork(job: Job, faults: int, results: SimpleQueue[tuple[Job, Outcome]]) -> int:
    child = os.fork()
    if not child:
        _play_and_exit(job, faults, results)
    return child


def _play_and_exit(job: Job, faults: int, results: SimpleQueue[tuple[Job, Outcome]]) -> NoReturn:
    try:
        outcome = played(job, faults)
    except BaseException as error:  # noqa: BLE001  # the process that waits must get an outcome
        outcome = Outcome(job[0], raised=[f"the simulation raised {error!r}", *broken()])
    results.put((job, outcome))
    seams.real_exit(0)
