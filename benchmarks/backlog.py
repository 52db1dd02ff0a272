"""Measures how workers share a backlog, and what many partitions cost one worker. Needs Apache Kafka.

The workers of a case take their partitions over, and are stopped (SIGSTOP) while the load is written. Then they go on at the
same moment. So no start of a process counts, and all begin with the same backlog.
"""

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import orjson
import psutil
from confluent_kafka import Consumer, TopicPartition

from benchmarks.workload import CONFIG, RECORDS_A_SESSION, fill
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import Topics
from traceweir.streams.worker.kafka.topic_admin import create_topics

SESSIONS = 20_000
CASES = ((1, 8), (2, 8), (4, 8), (8, 8), (1, 64))
"""Numbers of workers and of partitions."""
READY_WITHIN_S, DONE_WITHIN_S = 120.0, 300.0
_TOOK_OVER = re.compile(r"took over partitions \[([\d, ]*)\]")


class Shared(NamedTuple):
    """What a case has shown."""

    cpu_us: float
    """Microseconds of CPU for each record: of all workers and their scoring processes."""
    broker_us: float
    """The same of the broker."""
    seconds: float
    """Time from the first moment of the workers to the last decision."""
    first_done: float
    """The share of this time after which the first worker had scored all sessions of its partitions."""


def run(servers: str, broker: int | None, sessions: int = SESSIONS, rounds: int = 3) -> None:
    """Prints each round, and the medians beside those of one worker with eight partitions.

    Args:
        servers: The address of the cluster.
        broker: The process of the broker.
        sessions: Number of sessions of a case.
        rounds: How often all cases are played, in turn.
    """
    found: dict[tuple[int, int], list[Shared]] = defaultdict(list)
    for _ in range(rounds):
        for case in CASES:
            shared = one(servers, broker, sessions, *case)
            found[case].append(shared)
            print(
                f"  {case[0]} workers, {case[1]} partitions: {shared.cpu_us:.1f} us CPU a record, broker {shared.broker_us:.1f}; "
                f"{shared.seconds:.1f} s, the first worker was done after {shared.first_done:.0%} of it",
                flush=True,
            )
    for case, each in found.items():
        ratios = [now.cpu_us / first.cpu_us for now, first in zip(each, found[CASES[0]], strict=True)]
        print(
            f"MEDIAN {case[0]} workers, {case[1]} partitions: {statistics.median(ratios):.2f} of the CPU of one worker "
            f"({min(ratios):.2f} to {max(ratios):.2f}); {statistics.median([one.cpu_us for one in each]):.1f} us a record"
        )


def one(servers: str, broker: int | None, sessions: int, workers: int, partitions: int) -> Shared:
    """Plays one case, with its own topics.

    Raises:
        RuntimeError: a worker ends, or the time limit is over.
    """
    prefix = f"backlog{time.time_ns()}."
    topics = Topics.of(prefix)
    create_topics(Settings(kafka_bootstrap_servers=servers, topic_prefix=prefix, partitions=partitions))
    with tempfile.TemporaryDirectory(prefix="traceweir-backlog-") as name:
        folder = Path(name)
        (folder / "config.json").write_bytes(orjson.dumps(CONFIG))
        running = [_start(servers, prefix, partitions, folder, number) for number in range(workers)]
        try:
            owners = _owners(folder, running, partitions)
            for worker in running:
                worker.send_signal(signal.SIGSTOP)
            records = fill(servers, topics, sessions, partitions=partitions)
            before = sum(map(_cpu_s, running)), _cpu_of(broker)
            began = time.perf_counter()
            for worker in running:
                worker.send_signal(signal.SIGCONT)
            scored, ended = _until_decided(servers, topics.results, partitions, sessions, running)
            after = sum(map(_cpu_s, running)), _cpu_of(broker)
        finally:
            for worker in running:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
                worker.wait()
    done: dict[int, float] = defaultdict(float)
    for partition, at in scored.items():
        done[owners[partition]] = max(done[owners[partition]], at - began)
    seconds = ended - began
    assert records == sessions * RECORDS_A_SESSION
    return Shared(
        (after[0] - before[0]) / records * 1e6,
        (after[1] - before[1]) / records * 1e6,
        seconds,
        min(done.values()) / max(done.values()),
    )


def _start(servers: str, prefix: str, partitions: int, folder: Path, number: int) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": servers,
        "TRACEWEIR_TOPIC_PREFIX": prefix,
        "TRACEWEIR_PARTITIONS": str(partitions),
        "TRACEWEIR_STATE_DIR": str(folder / f"state-{number}"),
        "TRACEWEIR_EMBEDDER": "none",
        "TRACEWEIR_CLOSE_LINGER_S": "0.05",
        "TRACEWEIR_SCORING_PROCESSES": "1",
        "TRACEWEIR_WEB_PORT": "0",
        # So that a stopped worker stays a member.
        "TRACEWEIR_SESSION_TIMEOUT_S": "300",
    }
    with (folder / f"{number}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "traceweir.streams.cli.main", "worker", "--config", folder / "config.json"],
            env=environment,
            stdout=log,
            stderr=log,
        )


def _owners(folder: Path, running: list[subprocess.Popen[bytes]], partitions: int) -> dict[int, int]:
    """Returns the number of the worker of each partition, when each worker has its share."""
    until = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < until:
        _check(running)
        owners: dict[int, int] = {}
        for number in range(len(running)):
            if found := _TOOK_OVER.findall((folder / f"{number}.log").read_text()):
                owners |= dict.fromkeys(map(int, filter(None, found[-1].split(", "))), number)
        shares = [sum(owner == number for owner in owners.values()) for number in range(len(running))]
        if len(owners) == partitions and max(shares) - min(shares) <= 1:
            return owners
        time.sleep(0.2)
    raise RuntimeError(f"the workers did not share the {partitions} partitions within {READY_WITHIN_S:.0f} s")


def _until_decided(
    servers: str, results: str, partitions: int, sessions: int, running: list[subprocess.Popen[bytes]]
) -> tuple[dict[int, float], float]:
    """Reads scores until each session is decided; returns when each partition had its last score, and the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "backlog",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(results, number, 0) for number in range(partitions)])
    scored: dict[int, float] = {}
    left, until = sessions, time.monotonic() + DONE_WITHIN_S
    while left:
        _check(running)
        if time.monotonic() > until:
            raise RuntimeError(f"{left} of {sessions} sessions were not decided within {DONE_WITHIN_S:.0f} s")
        for message in consumer.consume(10_000, 0.2):
            value = message.value()
            if message.error() is not None or value is None:
                continue
            if b'"metric":"gate"' in value:
                left -= 1
            else:
                scored[message.partition()] = time.perf_counter()
    consumer.close()
    return scored, time.perf_counter()


def _check(running: list[subprocess.Popen[bytes]]) -> None:
    for worker in running:
        if worker.poll() is not None:
            raise RuntimeError(f"a worker ended with {worker.returncode}")


def _cpu_s(worker: subprocess.Popen[bytes]) -> float:
    """Returns the CPU of a worker and its children, in seconds."""
    process = psutil.Process(worker.pid)
    return _cpu_of(worker.pid) + sum(_cpu_of(child.pid) for child in process.children(recursive=True))


def _cpu_of(pid: int | None) -> float:
    if pid is not None:
        with suppress(psutil.NoSuchProcess):
            times = psutil.Process(pid).cpu_times()
            return float(times.user + times.system)
    return 0.0
