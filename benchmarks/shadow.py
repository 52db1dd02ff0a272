"""Measures the rate of a shadow against live scoring of the same sessions, in turns on one Apache Kafka.

Both run the stages score and gate from the first session to the last, with the same config. A rate is sessions per second
between the first and the last score on the topic, so that the start of a process does not count.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from benchmarks.throughput import loaded
from traceweir.streams.kafka.consumer_group import GroupOffsets
from traceweir.streams.kafka.topic_admin import KafkaUnreachableError, create_topics
from traceweir.streams.settings import Settings
from traceweir.streams.topics import StageName, Topics, application_id

CONFIG = '{"criteria": {"response_match_score": 0.5, "tool_trajectory_avg_score": 1.0}}'
LIVE: tuple[StageName, ...] = ("score", "gate")
_WITHIN_S = 3_600
_LAST = 20
"""Offsets at the end of a partition that are read for the time of its last score; some are ends of transactions."""


def run(servers: str, sessions: int = 15_000, rounds: int = 3) -> None:
    """Prints every round, and the median ratio of a shadow to live scoring. The first round is not counted."""
    ratios = []
    for turn in range(rounds + 1):
        live, shadow = one(servers, sessions)
        counted = "" if turn else " (not counted)"
        print(f"  {live:,.0f} sessions/s live, {shadow:,.0f} sessions/s as a shadow: {shadow / live:.2f}{counted}")
        if turn or not rounds:
            ratios.append(shadow / live)
    print(
        f"MEDIAN of a shadow to live scoring of {sessions:,} sessions: {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f})"
    )


def one(servers: str, sessions: int) -> tuple[float, float]:
    """Returns the rates of live scoring and of a shadow, in sessions per second, on new topics."""
    prefix, _ = loaded(servers, ["assemble"], sessions)
    settings = Settings(kafka_bootstrap_servers=servers, topic_prefix=prefix)
    create_topics(settings, LIVE)
    topics = Topics.of(prefix)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(CONFIG)
        environment = os.environ | {
            "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": servers,
            "TRACEWEIR_TOPIC_PREFIX": prefix,
            "TRACEWEIR_STATE_DIR": folder,
            "TRACEWEIR_EMBEDDER": "none",
            "TRACEWEIR_CLOSE_LINGER_S": "0.05",
            "TRACEWEIR_WEB_PORT": "0",
        }
        _until_read(settings, ["worker", "--stages", "assemble"], ("assemble",), topics.invocations, environment)
        scoring = ["worker", "--stages", ",".join(LIVE), "--config", str(config)]
        _until_read(settings, scoring, LIVE, topics.sessions, environment)
        command = ["shadow", "--name", "v2", "--config", str(config)]
        subprocess.run(_program(command), env=environment, check=True, capture_output=True, timeout=_WITHIN_S)
    found = [sessions / _seconds(settings, topic) for topic in (topics.results, topics.shadow_results("v2"))]
    return found[0], found[1]


def _program(command: list[str]) -> list[str]:
    return [sys.executable, "-m", "traceweir.streams.cli.entry", *command]


def _until_read(
    settings: Settings, command: list[str], stages: tuple[StageName, ...], topic: str, environment: Mapping[str, str]
) -> None:
    """Runs a worker until its group has read a topic to its end."""
    offsets = GroupOffsets(settings, application_id(settings.topic_prefix, stages), topic)
    worker = subprocess.Popen(_program(command), env=environment, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _WITHIN_S
        while not _is_read(settings, topic, offsets):
            if worker.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the worker {' '.join(command)} did not read {topic}: {worker.poll()}")
            time.sleep(0.5)
        time.sleep(3)  # for the close of the last sessions, and for the gate
    finally:
        worker.terminate()
        worker.wait(60)
        offsets.close()


def _is_read(settings: Settings, topic: str, offsets: GroupOffsets) -> bool:
    """Returns whether at most the end of a transaction is left in each partition."""
    try:
        committed = offsets.committed()
    except KafkaUnreachableError:  # a broker that has just started loads the offsets first
        return False
    with_ends = _consumer(settings)
    try:
        ends = [with_ends.get_watermark_offsets(TopicPartition(topic, n))[1] for n in range(settings.partitions)]
    finally:
        with_ends.close()
    return all(end - committed.get(number, 0) <= 1 for number, end in enumerate(ends))


def _seconds(settings: Settings, topic: str) -> float:
    """Returns the seconds between the first and the last record of a topic."""
    consumer = _consumer(settings)
    times: list[int] = []
    try:
        for number in range(settings.partitions):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number))
            for begin, end in ((low, low + 1), (max(low, high - _LAST), high)):
                consumer.assign([TopicPartition(topic, number, begin)])
                while (message := consumer.poll(5)) is not None and message.error() is None:
                    times.append(message.timestamp()[1])
                    if message.offset() + 1 >= end:
                        break
    finally:
        consumer.close()
    return (max(times) - min(times)) / 1000


def _consumer(settings: Settings) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": settings.kafka_bootstrap_servers,
            "group.id": "shadow-benchmark",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
