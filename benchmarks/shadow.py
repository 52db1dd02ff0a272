"""Measures the rate of a shadow against live scoring of the same sessions, in turns on one Apache Kafka.

Both run the stages score and gate from the first session to the last, with the same config. A rate is sessions per second
between the first and the last score on the topic, so that the start of a process does not count.

`BENCH_SESSIONS=1000000 python -m benchmarks shadow` takes another number, and more than 100,000 once only. The sessions are
written closed and compressed, the outputs of a run are deleted when its rate is known, and memory does not grow with the
number except in the workers.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import orjson
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from benchmarks.workload import RECORDS_A_SESSION, record
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import StageName, application_id
from traceweir.streams.worker.kafka.client_options import IDEMPOTENT, confluent_options
from traceweir.streams.worker.kafka.consumer_group import GroupOffsets
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.topic_admin import create_topics, delete_topics, existing_topics

CONFIG = '{"criteria": {"response_match_score": 0.5, "tool_trajectory_avg_score": 1.0}}'
LIVE: tuple[StageName, ...] = ("score", "gate")
_SEVERAL_ROUNDS = 100_000
"""The largest number of sessions that are scored in several rounds."""
_WITHIN_S = 4 * 3_600
_LAST = 20
"""Offsets at the end of a partition that are read for the time of its last score; some are ends of transactions."""


def run(servers: str, sessions: int | None = None, rounds: int = 3) -> None:
    """Prints every round, and the median ratio of a shadow to live scoring. The first of several rounds is not counted."""
    sessions = sessions or int(os.environ.get("BENCH_SESSIONS", "15000"))
    rounds = rounds if sessions <= _SEVERAL_ROUNDS else 0
    ratios = []
    for turn in range(rounds + 1):
        live, shadow = one(servers, sessions)
        counted = "" if turn or not rounds else " (not counted)"
        print(f"  {live:,.0f} sessions/s live, {shadow:,.0f} sessions/s as a shadow: {shadow / live:.2f}{counted}")
        if turn or not rounds:
            ratios.append(shadow / live)
    print(
        f"MEDIAN of a shadow to live scoring of {sessions:,} sessions: {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f})"
    )


def one(servers: str, sessions: int) -> tuple[float, float]:
    """Returns the rates of live scoring and of a shadow, in sessions per second, on new topics."""
    settings = Settings(kafka_bootstrap_servers=servers, topic_prefix=f"bench{time.time_ns()}.")
    topics = settings.topics
    create_topics(settings, LIVE)
    began = time.monotonic()
    _write_sessions(settings, sessions)
    print(f"  {sessions:,} sessions are written after {time.monotonic() - began:.0f} s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(CONFIG)
        environment = os.environ | {
            "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": servers,
            "TRACEWEIR_TOPIC_PREFIX": settings.topic_prefix,
            "TRACEWEIR_STATE_DIR": folder,
            "TRACEWEIR_EMBEDDER": "none",
            "TRACEWEIR_CLOSE_LINGER_S": "0.05",
            "TRACEWEIR_WEB_PORT": "0",
        }
        scoring = ["worker", "--stages", ",".join(LIVE), "--config", str(config)]
        _until_read(settings, scoring, LIVE, topics.sessions, environment)
        live = sessions / _seconds(settings, topics.results)
        print(f"  live: {live:,.0f} sessions/s, {_peak_mb():.0f} MB in the largest process", flush=True)
        # Not `network`: Kafka deletes no records of a compacted topic.
        _empty(settings, [topics.results, topics.candidates])
        command = ["shadow", "--name", "v2", "--config", str(config)]
        with (Path(folder) / "shadow.log").open("wb") as log:
            subprocess.run(_program(command), env=environment, check=True, stdout=log, stderr=log, timeout=_WITHIN_S)
    shadow = sessions / _seconds(settings, topics.shadow_results("v2"))
    print(f"  shadow: {shadow:,.0f} sessions/s, {_peak_mb():.0f} MB in the largest process so far", flush=True)
    delete_topics(settings, [name for name in existing_topics(settings) if name.startswith(settings.topic_prefix)])
    return live, shadow


def _write_sessions(settings: Settings, sessions: int) -> None:
    """Writes closed sessions to the topic `sessions`, as the stage assemble would."""
    producer = Producer({**confluent_options(settings), **IDEMPOTENT, "linger.ms": 50, "compression.type": "gzip"})
    now = utc_now() - timedelta(seconds=60)
    at = now.isoformat()
    for number in range(sessions):
        name = f"session-{number}"
        records = [record(name, place, now) for place in range(RECORDS_A_SESSION)]
        document = {
            "session_id": name,
            "segment": 0,
            "revision": 0,
            "closed_because": "session.ended",
            "first_record_at": at,
            "last_record_at": at,
            "events": [orjson.loads(value) for is_trace, value in records if not is_trace],
            "traces": [orjson.loads(value) for is_trace, value in records if is_trace],
        }
        value, key = orjson.dumps(document), name.encode()
        while True:
            try:
                producer.produce(settings.topics.sessions, value, key, partition_of(key, settings.partitions))
                break
            except BufferError:
                producer.poll(0.1)
    if left := producer.flush(120):
        raise RuntimeError(f"{left} sessions could not be written")


def _empty(settings: Settings, topics: list[str]) -> None:
    """Deletes the records of topics, so that a long run needs the disk once."""
    admin = AdminClient(confluent_options(settings))
    places = [TopicPartition(name, number, OFFSET_END) for name in topics for number in range(settings.partitions)]
    for answer in admin.delete_records(places).values():
        answer.result()


def _peak_mb() -> float:
    """Returns the largest memory that a process which this one has started, or one of its children, has had."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def _program(command: list[str]) -> list[str]:
    return [sys.executable, "-m", "traceweir.streams.cli.entry", *command]


def _until_read(
    settings: Settings, command: list[str], stages: tuple[StageName, ...], topic: str, environment: Mapping[str, str]
) -> None:
    """Runs a worker until its group has read a topic to its end."""
    offsets = GroupOffsets(settings, application_id(settings.topic_prefix, stages), topic)
    log = Path(environment["TRACEWEIR_STATE_DIR"]) / "worker.log"
    with log.open("wb") as out:
        worker = subprocess.Popen(_program(command), env=environment, stderr=out)
    try:
        deadline = time.monotonic() + _WITHIN_S
        while not _is_read(settings, topic, offsets):
            if worker.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the worker did not read {topic}: {worker.poll()}\n{log.read_text()[-2_000:]}")
            time.sleep(0.5)
        time.sleep(3)  # for the gate
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
