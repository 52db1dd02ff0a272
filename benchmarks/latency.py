"""Measures the time from a session's last event to its scores, as read with `read_committed`, under a steady load.

The settings have no linger, or the default linger with sessions whose end says how many records they have (`expects`).
The timestamps of the records divide the time of the criteria into three parts: until the checkpoint with the closed
session is written, until that with its scores is written, and until the reader has them.
"""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.workload import RECORDS_A_SESSION, produce, record
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import Topics
from traceweir.streams.worker.kafka.topic_admin import create_topics


class Parts(NamedTuple):
    """The parts of the time from a session's last event to its scores, in seconds."""

    until_the_closed_session_is_written: float
    until_its_scores_are_written: float
    until_they_are_read: float


def run(servers: str, rate: float, rounds: int = 3) -> None:
    """Prints p50 and p99 of every round in milliseconds, and the medians. The first round also warms up the broker."""
    for expects in (False, True):
        found = [one(servers, rate, expects=expects) for _ in range(rounds)]
        for metric in found[0]:
            p50, p99 = (statistics.median(each[metric][place] for each in found) for place in (0, 1))
            print(
                f"MEDIAN {'default linger, expects' if expects else 'no linger'}, {metric}: p50 {p50:.0f} ms, p99 {p99:.0f} ms"
            )


def one(
    servers: str,
    rate: float,
    seconds: float = 20.0,
    open_at_a_time: int = 2_000,
    *,
    transactions: bool = True,
    expects: bool = False,
) -> dict[str, tuple[float, float]]:
    """Prints and returns p50 and p99 in milliseconds; sessions of the first five seconds are not counted."""
    prefix = f"latency{time.time_ns()}."
    settings, topics = Settings(kafka_bootstrap_servers=servers, topic_prefix=prefix), Topics.of(prefix)
    create_topics(settings)
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": servers,
            "TRACEWEIR_TOPIC_PREFIX": prefix,
            "TRACEWEIR_STATE_DIR": folder,
            "TRACEWEIR_EMBEDDER": "none",
            "TRACEWEIR_DELIVERY": "exactly_once" if transactions else "at_least_once",
            **({} if expects else {"TRACEWEIR_CLOSE_LINGER_S": "0"}),
        }
        command = [sys.executable, "-m", "benchmarks.timed_worker", "assemble,score,gate", "1000000000", "1000000000"]
        worker = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            waits, parts = _measure(servers, topics, rate, seconds, open_at_a_time, expects)
        finally:
            worker.kill()
            worker.wait()
    found = {}
    for metric, values in waits.items():
        cuts = statistics.quantiles(values, n=100)
        found[metric] = cuts[49] * 1e3, cuts[98] * 1e3
        print(
            f"  {rate:,.0f} records/s, {metric}: p50 {cuts[49] * 1e3:.0f} ms, p99 {cuts[98] * 1e3:.0f} ms ({len(values)} sessions)"
        )
    for place, name in enumerate(Parts._fields):
        cuts = statistics.quantiles([each[place] for each in parts], n=100)
        print(f"    {name.replace('_', ' ')}: p50 {cuts[49] * 1e3:.0f} ms, p99 {cuts[98] * 1e3:.0f} ms")
    return found


def _measure(
    servers: str, topics: Topics, rate: float, seconds: float, open_at_a_time: int, expects: bool
) -> tuple[dict[str, list[float]], list[Parts]]:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5})
    reader = _reader(servers, topics.results)
    waits: dict[str, list[float]] = {"criteria": [], "decision": []}
    ended: dict[str, float] = {}
    scored: dict[str, tuple[float, float]] = {}  # by session: when its scores were written, and when they were read

    def poll(timeout: float, since: float) -> int:
        messages = reader.consume(1_000, timeout)
        now = time.time()
        for message in messages:
            if message.error():
                continue
            score = orjson.loads(message.value())
            last = ended.get(score["session_id"])
            if last is None or last < since:
                continue
            if score["metric"] == "gate":
                waits["decision"].append(now - last)
            elif score["metric"] == "response_match_score" and score["level"] == "session":
                waits["criteria"].append(now - last)
                scored[score["session_id"]] = message.timestamp()[1] / 1e3, now
        return len(messages)

    rnd = random.Random(1)
    firsts = [rnd.randrange(3) for _ in range(open_at_a_time)]  # the first sessions begin with a later record
    live, begun = [[index, first] for index, first in enumerate(firsts)], open_at_a_time
    # The scores of a first session show that the worker is ready.
    for number in range(RECORDS_A_SESSION):
        is_trace, value = record("first", number, utc_now())
        produce(producer, topics, "first", is_trace, value, 4)
    producer.flush()
    deadline = time.time() + 60
    while not poll(0.2, 0):
        if time.time() > deadline:
            raise RuntimeError("the worker scored nothing within 60 s")
    start, sent = time.time(), 0
    while time.time() - start < seconds:
        while sent < (time.time() - start) * rate:
            place = rnd.randrange(open_at_a_time)
            session = live[place]
            session_id, number = f"latency-{session[0]}", session[1]
            is_trace, value = record(session_id, number, utc_now())
            if expects and number == RECORDS_A_SESSION - 1:
                left_out = firsts[session[0]] if session[0] < open_at_a_time else 0
                counts = {"events": RECORDS_A_SESSION - 1 - left_out, "traces": 1}
                value = orjson.dumps({**orjson.loads(value), "expects": counts})
            produce(producer, topics, session_id, is_trace, value, 4)
            if number == RECORDS_A_SESSION - 1:
                ended[session_id] = time.time()
                live[place] = [begun, 0]
                begun += 1
            else:
                session[1] += 1
            sent += 1
        producer.poll(0)
        poll(0.005, start + 5)
    quiet = time.time() + 3
    while time.time() < quiet:
        poll(0.05, start + 5)
    reader.close()
    parts = [
        Parts(closed - ended[session_id], written - closed, read - written)
        for session_id, closed in _written(servers, topics.sessions).items()
        if session_id in scored
        for written, read in (scored[session_id],)
    ]
    return waits, parts


def _reader(servers: str, topic: str) -> Consumer:
    reader = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": topic,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 20,
            "auto.offset.reset": "earliest",
        }
    )
    reader.assign([TopicPartition(topic, number, 0) for number in range(4)])
    return reader


def _written(servers: str, topic: str) -> dict[str, float]:
    """Returns when the first record of each key was written, in seconds since 1970."""
    reader, found = _reader(servers, topic), dict[str, float]()
    while messages := reader.consume(10_000, 2.0):
        for message in messages:
            if not message.error():
                found.setdefault(message.key().decode(), message.timestamp()[1] / 1e3)
    reader.close()
    return found
