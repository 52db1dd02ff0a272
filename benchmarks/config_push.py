"""Measures how soon a pushed config is in effect on four workers under load, and whether a push makes a partition silent.

Needs Apache Kafka. The configs are pushed with the command, `traceweir config push`, whose process shares the machine.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict

import orjson
from pydantic import JsonValue

from benchmarks.takeover import PARTITIONS, WARM_S, Fleet
from traceweir.scorers.evaluation.plan import read_plan

WORKERS = 4
PUSHES, EVERY_S = 8, 4.0


def config_of(number: int) -> dict[str, JsonValue]:
    """Returns the config of a push, each another one; that of the file has the number -1."""
    return {"criteria": {"tool_trajectory_avg_score": (50 + number) / 100}}


def run(servers: str, rounds: int = 3) -> None:
    """Prints every round, and the medians and ranges over the rounds."""
    found = [one(servers) for _ in range(rounds)]
    names = (
        "from the command's return to the first score by the new config, median over pushes and partitions",
        "the same, longest",
        "from the command's return to the last session that was sent and has the former config, longest",
        "longest silence of a partition while configs are pushed",
        "longest silence of a partition while the command runs as often with --dry-run",
    )
    for place, name in enumerate(names):
        values = [each[place] for each in found]
        print(f"MEDIAN {name}: {statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})")


def one(servers: str) -> tuple[float, float, float, float, float]:
    """Plays a round; returns the figures that `run` prints, in seconds.

    Raises:
        RuntimeError: a session is lost, has a score twice, or has scores of two configs.
    """
    with PushedFleet(servers) as fleet:
        for number in range(WORKERS):
            fleet.start(f"worker-{number}")
        fleet.until_all_work()
        fleet.load(WARM_S)
        fleet.mark()
        for number in range(PUSHES):
            fleet.command(number, "--dry-run")
            fleet.load(EVERY_S)
        quiet_s = fleet.longest
        fleet.mark()
        for number in range(PUSHES):
            fleet.push(number)
            fleet.load(EVERY_S)
        longest_s = fleet.longest
        fleet.until_decided()
        fleet.load_nothing(2.0)
        sessions = fleet.checked()
        waits = [wait for each in fleet.waits for wait in each.values()]
        figures = statistics.median(waits), max(waits), max(fleet.late), longest_s, quiet_s
        median, longest, late, silent, quiet = figures
        print(
            f"  {PUSHES} pushes: in effect after {median:.2f} s, {longest:.2f} s at most; the former config for {late:.2f} s "
            f"at most; silence {silent:.2f} s at most, {quiet:.2f} s with --dry-run; {sessions:,} sessions, each scored once "
            f"by one config; load of the machine {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        return figures


class PushedFleet(Fleet):
    """Workers under a steady load, with pushes of configs."""

    def __init__(self, servers: str) -> None:
        super().__init__(servers)
        self._config = config_of(-1)
        self.waits: list[dict[int, float]] = []
        """By push, the time until the first score by its config in each partition, in seconds."""
        self.late: list[float] = []
        """By push, the time until the last session was sent that has the former config, in seconds."""
        self._digest, self._pushed_at = read_plan(config_of(-1)).digest, float("inf")
        self._former: set[str] = set()
        self._sent: dict[str, float] = {}
        self._scores: dict[str, Counter[tuple[str, int, int]]] = defaultdict(Counter)
        self._digests: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))

    def until_all_work(self) -> None:
        """Waits until each worker has a partition."""
        logs = [self.folder / f"{name}.log" for name in self.workers]
        until = time.perf_counter() + 120
        while sum(b"took over partitions [" in log.read_bytes() for log in logs) < WORKERS:
            if time.perf_counter() > until:
                raise RuntimeError("a worker has no partition after 120 s")
            self.load(0.2)
            self.check()

    def push(self, number: int) -> None:
        """Pushes a config with the command; the load goes on meanwhile."""
        config = self.command(number)
        self._former.add(self._digest)
        self._digest, self._pushed_at = read_plan(config).digest, time.perf_counter()
        self.waits.append({})
        self.late.append(0.0)

    def command(self, number: int, *options: str) -> dict[str, JsonValue]:
        """Runs the command that pushes a config under load; returns the config."""
        config = config_of(number)
        file = self.folder / f"pushed-{number}.json"
        file.write_text(json.dumps(config))
        command = [sys.executable, "-m", "traceweir.streams.cli.main", "config", "push", str(file), *options]
        ended = subprocess.Popen(command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while ended.poll() is None:
            self._step()
        if ended.returncode:
            raise RuntimeError(f"the push ended with {ended.returncode}: {ended.communicate()[1].decode()}")
        return config

    def load_nothing(self, seconds: float) -> None:
        """Reads on, to see scores that come twice."""
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            self._poll(0.1)

    def checked(self) -> int:
        """Returns the number of sessions, each of which has each score of a revision once, and all of them by one config.

        Raises:
            RuntimeError: one has not.
        """
        ids = {name: {score[0] for score in each} for name, each in self._scores.items()}
        (usual, _), *_ = Counter(map(len, ids.values())).most_common()
        for name in self._sent:
            scores, digests = self._scores[name], self._digests[name]
            mixed = any(len(each) > 1 for each in digests.values())
            if len(ids.get(name, ())) != usual or max(scores.values()) > 1 or mixed:
                raise RuntimeError(f"session {name} has the scores {dict(scores)} by the configs {digests}")
        if len(ids) != len(self._sent):
            raise RuntimeError(f"{len(self._sent)} sessions were sent, and {len(ids)} have scores")
        if missing := [number for number, each in enumerate(self.waits) if len(each) < PARTITIONS]:
            raise RuntimeError(f"the pushes {missing} were not in effect on all partitions within {EVERY_S:g} s")
        return len(self._sent)

    def _send(self, session_id: str, number: int, domain: str | None = None) -> None:
        self._sent[session_id] = time.perf_counter()
        super()._send(session_id, number, domain)

    def _note(self, value: bytes, partition: int, now: float) -> None:
        score = orjson.loads(value)
        name, digest = score["session_id"], score["config_digest"]
        self._scores[name][score["result_id"], score["revision"], score["attempt"]] += 1
        self._digests[name][score["revision"]].add(digest)
        after_s = self._sent[name] - self._pushed_at
        if after_s < 0:
            return
        if digest == self._digest:
            self.waits[-1].setdefault(partition, now - self._pushed_at)
        elif digest in self._former:  # and not by the next config, whose command has not returned yet
            self.late[-1] = max(self.late[-1], after_s)
