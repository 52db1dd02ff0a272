"""Measures how long partitions are silent when workers die, join and leave, and how fast lost state is rebuilt.

Needs Apache Kafka.
"""

import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import orjson
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from benchmarks.workload import record
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import STAGES, Topics, application_id
from traceweir.streams.worker.kafka.topic_admin import create_topics

PARTITIONS = 4
EVERY_S = 0.03
"""Interval in seconds at which one session per partition is sent."""
WARM_S, TAIL_S = 6.0, 10.0
DOMAINS = 100
AHEAD = 5_000
"""Maximum number of sessions by which a worker can be behind while topics are filled."""


def run(servers: str, rounds: int = 3) -> None:
    """Prints every round and the medians."""
    for static in (True, False):
        found = [killed(servers, static=static) for _ in range(rounds)]
        for place, name in enumerate(("the longest silence of a partition", "until each decides a session sent since")):
            waits = [each[place] for each in found]
            member = "static" if static else "dynamic"
            print(
                f"MEDIAN killed and restarted, {member} member, {name}: {statistics.median(waits):.1f} s ({_range(waits)})"
            )
    silences = [rolled(servers) for _ in range(rounds)]
    print(
        "MEDIAN longest silence of a partition while static workers are replaced one by one: "
        f"{statistics.median(silences):.1f} s ({_range(silences)})"
    )
    found = [come_and_gone(servers) for _ in range(rounds)]
    for place, name in enumerate(("joins", "leaves by SIGTERM")):
        silences = [each[place] for each in found]
        print(
            f"MEDIAN longest silence of a partition as a second worker {name}: {statistics.median(silences):.1f} s ({_range(silences)})"
        )


def killed(servers: str, *, static: bool) -> tuple[float, float]:
    """Returns the longest time without a committed result after SIGKILL and an immediate restart, in seconds.

    Also returns the time in seconds until every partition has decided on a new session. This time is longer, because
    the watermark is held back after a time without a worker.
    """
    with Fleet(servers) as fleet:
        fleet.start("a", static=static)
        fleet.load(WARM_S)
        fleet.kill("a")
        at = fleet.mark()
        fleet.start("a", static=static)
        fleet.until_each_has_news(at)
        silence, news = fleet.longest, max(fleet.first.values()) - at
        print(
            f"  killed and restarted, {'static' if static else 'dynamic'} member: silent for {silence:.1f} s at most, new sessions "
            f"decided everywhere after {news:.1f} s"
        )
        return silence, news


def come_and_gone(servers: str) -> tuple[float, float]:
    """Returns the longest silence of any partition, in seconds, when a second worker joins and when it leaves."""
    with Fleet(servers) as fleet:
        fleet.start("a")
        fleet.load(WARM_S)
        fleet.mark()
        fleet.start("b")
        while b"took over partitions [" not in (fleet.folder / "b.log").read_bytes():
            fleet.load(0.1)
            fleet.check()
        fleet.load(TAIL_S)
        joined = fleet.longest
        fleet.mark()
        fleet.workers["b"].send_signal(signal.SIGTERM)
        fleet.load(TAIL_S)
        left = fleet.longest
        code = fleet.workers["b"].wait(30)
        print(
            f"  longest silence: {joined:.1f} s as a second worker joins, {left:.1f} s as it leaves (exit code {code})"
        )
        return joined, left


def rolled(servers: str, workers: int = 2) -> float:
    """Returns the longest silence of any partition, in seconds, while all workers are replaced one by one.

    The order is that of a StatefulSet: the last worker first, and the next one when the former is ready. Each session
    that was sent is decided once; otherwise the run fails.
    """
    with Fleet(servers) as fleet:
        names = [f"worker-{number}" for number in range(workers)]
        for name in names:
            fleet.start(name, static=True)
        fleet.load(WARM_S)
        fleet.mark()
        for name in reversed(names):
            fleet.workers[name].send_signal(signal.SIGTERM)
            while fleet.workers[name].poll() is None:
                fleet.load(0.05)
            code = fleet.workers[name].returncode
            (fleet.folder / f"{name}.log").write_text("")
            fleet.start(name, static=True)
            while b"took over partitions [" not in (fleet.folder / f"{name}.log").read_bytes():
                fleet.load(0.05)
                fleet.check()
            print(f"  {name} ended with {code} and is ready again; silence so far {fleet.longest:.1f} s")
        fleet.load(TAIL_S)
        fleet.until_decided()
        print(
            f"  longest silence {fleet.longest:.1f} s while {workers} workers were replaced; {fleet.read} sessions, each once"
        )
        return fleet.longest


def lost(servers: str, sessions: int = 100_000, vectors: int = 100_000) -> None:
    """Prints the time that a worker needs to rebuild a lost state directory from the changelog."""
    with Fleet(servers, gate={"cache_size": 2 * vectors // DOMAINS}, linger_s="0", gap_s="1000000") as fleet:
        fleet.start("a", TRACEWEIR_EMBEDDER="hashing")
        fleet.fill(sessions, vectors)
        fleet.workers["a"].send_signal(signal.SIGTERM)
        code = fleet.workers["a"].wait(60)
        kept = took_over(fleet, "a", code)
        print(f"  with its state directory: {kept}")
        shutil.rmtree(fleet.folder / "state-a")
        began = time.perf_counter()
        fleet.start("a", TRACEWEIR_EMBEDDER="hashing")
        print(f"  without it: {took_over(fleet, 'a')}; {time.perf_counter() - began:.1f} s from its start")


def took_over(fleet: "Fleet", name: str, code: int | None = None) -> str:
    """Returns the worker's log text about its last takeover; with the exit code of an ended worker, starts it first."""
    log = fleet.folder / f"{name}.log"
    if code is not None:
        log.write_text("")
        fleet.start(name, TRACEWEIR_EMBEDDER="hashing")
    deadline = time.monotonic() + 300
    while not (found := re.findall(r"took over partitions (.*)", log.read_text())):
        if time.monotonic() > deadline or fleet.workers[name].poll() is not None:
            raise RuntimeError(f"worker {name} took over no partition; its log:\n{log.read_text()}")
        time.sleep(0.01)
    if code is not None:
        fleet.workers[name].terminate()
        fleet.workers[name].wait(30)
        log.write_text("")
    return str(found[-1])


def _range(values: list[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


class Fleet:
    """Runs workers on their own topics under a steady load, and measures the silence of each partition."""

    every_s = EVERY_S
    """Interval in seconds at which one session per partition is sent."""
    decide_within_s = 120.0
    """Time limit for the decisions after the last session, in seconds."""

    def __init__(
        self, servers: str, *, gate: dict[str, object] | None = None, linger_s: str = "0.05", gap_s: str = "300"
    ) -> None:
        prefix = f"takeover{time.time_ns()}."
        create_topics(Settings(kafka_bootstrap_servers=servers, topic_prefix=prefix))
        self.topics, self._servers = Topics.of(prefix), servers
        self._application = application_id(prefix, STAGES)
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._environment = os.environ | {
            "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": servers,
            "TRACEWEIR_TOPIC_PREFIX": prefix,
            "TRACEWEIR_EMBEDDER": "none",
            "TRACEWEIR_CLOSE_LINGER_S": linger_s,
            "TRACEWEIR_IDLE_GAP_S": gap_s,
            "TRACEWEIR_WEB_PORT": "0",
        }
        self._config: Mapping[str, object] = {"criteria": {}, "gate": gate or {}}
        self._producer = Producer(
            {"bootstrap.servers": servers, "linger.ms": 2, "queue.buffering.max.messages": 500_000}
        )
        self._reader = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": prefix,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 20,
                "enable.auto.commit": False,
            }
        )
        self._reader.assign([TopicPartition(self.topics.results, number, 0) for number in range(PARTITIONS)])
        self._homes = self._names()
        self.first: dict[int, float] = {}
        self.longest = 0.0
        self._last: dict[int, float] = {}
        self._sent_at: dict[str, float] = {}
        self._since = 0.0
        self.read = 0

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="traceweir-takeover-")
        self.folder = Path(self._folder.name)
        (self.folder / "config.json").write_bytes(orjson.dumps(self._config))
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers.values():
            worker.kill()
            worker.wait()
        self._reader.close()
        self._folder.cleanup()

    def start(self, name: str, *, static: bool = False, **settings: str) -> None:
        """Starts a worker; the worker's name determines its state directory."""
        own = {"TRACEWEIR_STATE_DIR": str(self.folder / f"state-{name}")} | settings
        if static:
            own["TRACEWEIR_GROUP_INSTANCE_ID"] = name
        with (self.folder / f"{name}.log").open("ab") as log:
            self.workers[name] = subprocess.Popen(
                [sys.executable, "-m", "traceweir.streams.cli.main", "worker", "--config", self.folder / "config.json"],
                env=self._environment | own,
                stdout=log,
                stderr=log,
            )

    def kill(self, name: str) -> None:
        """Kills a worker with SIGKILL."""
        self.workers[name].kill()
        self.workers[name].wait()

    def _names(self) -> Iterator[list[str]]:
        """Yields lists of session ids, each list with one session for each home partition."""
        number = 0
        while True:
            found: dict[int, str] = {}
            while len(found) < PARTITIONS:
                number += 1
                found.setdefault(partition_of(b"s%d" % number, PARTITIONS), f"s{number}")
            yield [found[place] for place in range(PARTITIONS)]

    def _send(self, session_id: str, number: int, domain: str | None = None) -> None:
        is_trace, value = record(session_id, number, utc_now())
        if domain is not None:
            document = orjson.loads(value)
            document["metadata"]["task_domain"] = domain
            value = orjson.dumps(document)
        self._produce(self.topics.traces if is_trace else self.topics.invocations, session_id, value)

    def _produce(self, topic: str, session_id: str, value: bytes) -> None:
        key = session_id.encode()
        while True:
            try:
                self._producer.produce(topic, value, key, partition_of(key, PARTITIONS))
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _poll(self, timeout: float) -> None:
        messages = self._reader.consume(1_000, timeout)
        now = time.perf_counter()
        for message in messages:
            if message.error():
                continue
            self._note(message.value(), message.partition(), now)
            if b'"gate"' not in message.value():
                continue
            self.read += 1
            number = message.partition()
            if self._sent_at.pop(orjson.loads(message.value())["session_id"], 0.0) >= self._since:
                self.first.setdefault(number, now)
            self._silent(number, now)
            self._last[number] = now

    def _note(self, value: bytes, partition: int, now: float) -> None:
        """Gets each committed score."""

    def _silent(self, number: int, now: float) -> None:
        if number in self._last:
            self.longest = max(self.longest, now - max(self._last[number], self._since))

    def _step(self) -> None:
        for name in next(self._homes):
            self._sent_at[name] = time.perf_counter()
            self._send(name, 9)
            self._send(name, 10)
        self._producer.poll(0)
        until = time.perf_counter() + self.every_s
        while (left := until - time.perf_counter()) > 0:
            self._poll(left)

    def load(self, seconds: float) -> None:
        """Sends sessions and measures the silence of the partitions, after every partition has a first result."""
        while len(self._last) < PARTITIONS:
            self._step()
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            self._step()
        for number in range(PARTITIONS):
            self._silent(number, time.perf_counter())

    def mark(self) -> float:
        """Restarts the measurement of silence; returns the time of the restart."""
        self._since = time.perf_counter()
        self.first.clear()
        self.longest = 0.0
        return self._since

    def until_each_has_news(self, since: float) -> None:
        """Sends sessions until each partition has a result of a session that was sent after `since`.

        Raises:
            RuntimeError: A partition has no such result after 120 s.
        """
        while len(self.first) < PARTITIONS:
            self._step()
            if time.perf_counter() - since > 120:
                raise RuntimeError("a partition has no new result after 120 s; see the log of the worker")

    def fill(self, sessions: int, vectors: int) -> None:
        """Sends traces through the gate and opens sessions of three events each, as fast as the worker processes them."""
        for number in range(vectors):
            name = f"done-{number}"
            self._send(name, 9, f"domain-{number % DOMAINS}")
            self._send(name, 10)
            while number - self.read > AHEAD:
                self._producer.poll(0)
                self._poll(0.1)
                self.check()
        while self.read < vectors:
            self._poll(0.1)
            self.check()
        for number in range(sessions):
            for event in range(3):
                self._send(f"open-{number}", event)
            if number % AHEAD == AHEAD - 1:
                self.until_read()
        self.until_read()

    def until_read(self) -> None:
        """Waits until the worker has committed the offset of every event to its consumer group."""
        self._producer.flush(60)
        inputs = [TopicPartition(self.topics.invocations, number) for number in range(PARTITIONS)]
        admin = AdminClient({"bootstrap.servers": self._servers})
        while True:
            self._poll(0.1)
            self.check()
            asked = ConsumerGroupTopicPartitions(self._application, inputs)
            committed = admin.list_consumer_group_offsets([asked])[self._application].result().topic_partitions
            ends = admin.list_offsets({place: OffsetSpec.latest() for place in inputs})
            if all(place.offset >= ends[place].result().offset for place in committed):
                return

    def until_decided(self) -> None:
        """Waits until each session that was sent is decided.

        Raises:
            RuntimeError: a session has no decision after the time limit, or has several.
        """
        sent = self.read + len(self._sent_at)
        if left := self.undecided():
            raise RuntimeError(f"{left} sessions were never decided")
        if self.read != sent:
            raise RuntimeError(f"{sent} sessions have {self.read} decisions")

    def undecided(self) -> int:
        """Waits until each session that was sent is decided; returns how many are not after the time limit."""
        self._producer.flush(60)
        until = time.perf_counter() + self.decide_within_s
        while self._sent_at and time.perf_counter() < until:
            self._poll(0.1)
        return len(self._sent_at)

    def check(self) -> None:
        """Checks that every worker runs.

        Raises:
            RuntimeError: A worker has ended.
        """
        for name, worker in self.workers.items():
            if worker.poll() is not None:
                raise RuntimeError(f"worker {name} ended:\n{(self.folder / f'{name}.log').read_text()}")
