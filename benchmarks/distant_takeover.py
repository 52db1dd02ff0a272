"""Measures whether workers far from their broker stay in their group while one of them rebuilds a lost state directory.

Needs Apache Kafka, and starts it itself, behind a network that delays each byte and limits the bytes a second.
`BENCH_RUNS` is the number of runs for each size of the group, `BENCH_WORKERS` names the sizes, and `BENCH_LOGS` is a
folder for the logs of the workers.
"""

import base64
import os
import random
import re
import shutil
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
from confluent_kafka.admin import AdminClient
from tests.support.kafka import kafka_home
from tests.support.kafka_cluster import KafkaCluster

from benchmarks.takeover import PARTITIONS, Fleet
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.statistics.rate_intervals import rate_interval

RUNS, WORKERS = 3, "2,4"
DELAY_S = 0.5
"""Time that each byte is under way in each direction, in seconds."""
BYTES_A_SECOND = 1_000_000
"""What a connection gets from the broker."""
CATCH_UP_S = 30
"""Time in which a connection gets the state of one worker, in seconds."""
EVENT_BYTES, EVENTS_A_SESSION = 10_000, 50
WARM_S, TAIL_S = 10.0, 10.0
LIMIT_S = 240.0
"""Time limit of each step, in seconds."""
NOT_A_MEMBER = (
    "member_id was not recognized",
    "generation id is not",
    "UnknownMemberId",
    "IllegalGeneration",
    "Heartbeat session expired",
    "the partitions are dropped",
    "the process ends after a failure",
)
"""What a worker logs after its group has expelled it, or after Kafka has ended its transaction."""
_TOOK_OVER = re.compile(r"took over partitions \[.*\] in (\d+) ms: \d+ rows, (\S+) MB in")


@dataclass(frozen=True)
class Run:
    """What one run found."""

    workers: int
    lines: Sequence[str]
    """Lines of the logs since the loss by which a worker is no member any more."""
    replaced: int
    """Members that the group does not know any more after the run, without the worker that ended."""
    failures: int
    """Workers whose processes had ended by themselves."""
    sessions: int
    not_once: int
    """Sessions without a decision, or with several."""
    silence_s: float
    """Longest time between two committed decisions of a partition."""
    takeover_s: float
    """Longest takeover after the loss, with its catch-up."""
    caught_up_mb: float
    """What this takeover read."""
    stopped: int
    """Takeovers that another rebalance stopped."""

    @property
    def expelled(self) -> bool:
        """Whether a worker was expelled, or ended."""
        return bool(self.lines) or self.replaced > 0 or self.failures > 0


def run() -> None:
    """Prints every run, and a row for each size of the group."""
    home = kafka_home() or sys.exit(
        "KAFKA_HOME must name an unpacked Apache Kafka: KAFKA_HOME=... python -m benchmarks"
    )
    sizes = [int(size) for size in os.environ.get("BENCH_WORKERS", WORKERS).split(",")]
    found: list[Run] = []
    # Kafka's default, in place of that of the tests
    with KafkaCluster(home, distant=True, options={"group.initial.rebalance.delay.ms": 3000}) as cluster:
        for number in range(int(os.environ.get("BENCH_RUNS", RUNS))):
            found.extend(one(cluster, workers, killed=number % 2 == 0) for workers in sizes)
    for workers in sizes:
        print(summary([each for each in found if each.workers == workers]))


def summary(runs: Sequence[Run]) -> str:
    """Returns the figures of the runs with one size of the group."""
    expelled = sum(each.expelled for each in runs)
    low, high = rate_interval(expelled, len(runs))
    not_once, sessions = sum(each.not_once for each in runs), sum(each.sessions for each in runs)
    times = {
        "silence": [each.silence_s for each in runs],
        "takeover with its catch-up": [each.takeover_s for each in runs],
        "silence less this takeover": [each.silence_s - each.takeover_s for each in runs],
    }
    listed = "; ".join(
        f"{name} {statistics.median(each):.1f} s, at most {max(each):.1f} s" for name, each in times.items()
    )
    return (
        f"MEDIAN {runs[0].workers} workers, {len(runs)} runs: a member expelled in {expelled} ({low:.0%} to {high:.0%}); "
        f"{not_once} of {sessions:,} sessions not decided once; {listed}"
    )


def one(cluster: KafkaCluster, workers: int, *, killed: bool) -> Run:
    """Plays a run: a worker ends, and another one without a state directory takes its place at once.

    Args:
        cluster: The cluster.
        workers: The number of workers.
        killed: Whether the worker ends by SIGKILL, as when its machine is lost; otherwise by SIGTERM.
    """
    network = cluster.networks[0]
    network.delay_s = network.bytes_a_second_back = 0.0
    with DistantFleet(cluster) as fleet:
        names = [f"worker-{number}" for number in range(workers)]
        for name in names:
            fleet.start(name)
        fleet.until_all_work(names)
        fleet.open_sessions(workers * BYTES_A_SECOND * CATCH_UP_S)
        network.delay_s, network.bytes_a_second_back = DELAY_S, BYTES_A_SECOND
        fleet.load(WARM_S)
        before = {name: len(fleet.log(name)) for name in names}
        members = fleet.members()
        fleet.mark()
        at = time.perf_counter()
        code = fleet.end(names[-1], killed=killed)
        shutil.rmtree(fleet.folder / f"state-{names[-1]}")
        fleet.start("successor")
        fleet.until_all_work(["successor"])
        fleet.load(TAIL_S)
        lost = fleet.undecided()
        silence_s = fleet.longest
        kept = len(members & fleet.members())
        took_s = time.perf_counter() - at
        network.delay_s = network.bytes_a_second_back = 0.0
        failures = sum(worker.poll() is not None for worker in fleet.workers.values())
        fleet.end_all()
        logs = {name: fleet.log(name) for name in [*names, "successor"]}
        since = since_loss(logs, before)
        takeover_s, caught_up_mb = max((int(ms) / 1000, float(mb)) for ms, mb in _TOOK_OVER.findall(since))
        found = Run(
            workers=workers,
            lines=[line for line in since.splitlines() if any(each in line for each in NOT_A_MEMBER)],
            replaced=workers - 1 - kept,
            failures=failures,
            sessions=len(fleet.decisions),
            not_once=lost + fleet.decided_twice(),
            silence_s=silence_s,
            takeover_s=takeover_s,
            caught_up_mb=caught_up_mb,
            stopped=since.count("stopped taking over"),
        )
        print(
            f"  {workers} workers, one {'killed' if killed else f'ended by SIGTERM with {code}'}: silence {silence_s:.1f} s, "
            f"longest takeover {takeover_s:.1f} s with {caught_up_mb:.1f} MB, {found.stopped} takeovers stopped by a "
            f"rebalance, {found.replaced} members replaced, {failures} failures, {found.not_once} of {found.sessions:,} sessions not "
            f"decided once, all decided {took_s:.0f} s after the loss; load of the machine {os.getloadavg()[0]:.1f}",
            *found.lines,
            sep="\n    ",
            flush=True,
        )
        if folder := os.environ.get("BENCH_LOGS"):
            for name, log in logs.items():
                Path(folder, f"{time.time():.0f}-{workers}-{name}.log").write_text(log)
        return found


def since_loss(logs: Mapping[str, str], before: Mapping[str, int]) -> str:
    """Returns what all workers have logged since one of them was lost.

    Args:
        logs: The log of each worker.
        before: Number of characters of each log at the loss; a worker that started later has none.
    """
    return "\n".join(log[before.get(name, 0) :] for name, log in logs.items())


class DistantFleet(Fleet):
    """Workers far from the broker with the default settings; the load and its reader are near."""

    every_s = 0.25
    decide_within_s = LIMIT_S

    def __init__(self, cluster: KafkaCluster) -> None:
        super().__init__(
            cluster.bootstrap_servers,
            linger_s=str(Settings.model_fields["close_linger_s"].default),
            gap_s=str(Settings.model_fields["idle_gap_s"].default),
        )
        self._environment["TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"] = cluster.distant_servers
        self.decisions: Counter[str] = Counter()
        """Number of decisions by session."""
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    def log(self, name: str) -> str:
        """Returns what a worker has logged."""
        return (self.folder / f"{name}.log").read_text()

    def _note(self, value: bytes, partition: int, now: float) -> None:
        if b'"gate"' in value:
            self.decisions[orjson.loads(value)["session_id"]] += 1

    def members(self) -> set[str]:
        """Returns the ids of the members that the group has now; a member that was expelled comes back with another id."""
        described = self._admin.describe_consumer_groups([self._application])[self._application].result()
        return {member.member_id for member in described.members}

    def until_all_work(self, names: Sequence[str]) -> None:
        """Sends sessions until each of these workers has a partition.

        Raises:
            RuntimeError: one has none after the time limit.
        """
        until = time.perf_counter() + LIMIT_S
        while not all("took over partitions [" in self.log(name) for name in names):
            if time.perf_counter() > until:
                raise RuntimeError("\n".join(self.log(name) for name in names))
            self._step()

    def open_sessions(self, total: int) -> None:
        """Opens sessions with this many bytes in all, and waits until the workers have committed them."""
        drawn = random.Random(1)
        for _ in range(total // EVENT_BYTES // EVENTS_A_SESSION // PARTITIONS):
            for session_id in next(self._homes):
                for number in range(EVENTS_A_SESSION):
                    text = base64.b64encode(drawn.randbytes(EVENT_BYTES * 3 // 4)).decode()
                    event = {
                        "type": "tool.called",
                        "event_id": f"{session_id}/{number}",
                        "session_id": session_id,
                        "invocation_id": f"{session_id}-1",
                        "call_id": f"c{number}",
                        "app_name": "benchmark",
                        "name": "lookup_order",
                        "args": {"text": text},
                        "occurred_at": utc_now().isoformat(),
                    }
                    self._produce(self.topics.invocations, session_id, orjson.dumps(event))
        self.until_read()

    def end(self, name: str, *, killed: bool) -> int:
        """Ends a worker, and sends sessions meanwhile; returns the exit code."""
        worker = self.workers.pop(name)
        worker.send_signal(signal.SIGKILL if killed else signal.SIGTERM)
        while worker.poll() is None:
            self._step()
        return worker.returncode

    def end_all(self) -> None:
        """Ends all workers by SIGTERM, and waits for them."""
        for worker in self.workers.values():
            worker.send_signal(signal.SIGTERM)
        for worker in self.workers.values():
            worker.wait(60)

    def decided_twice(self) -> int:
        """Returns how many sessions have several decisions, when all workers have ended."""
        self._poll(1.0)
        return sum(count > 1 for count in self.decisions.values())
