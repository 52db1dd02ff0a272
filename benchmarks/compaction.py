"""Measures the size of a changelog and its catch-up after an hour of load, as topics were and are created.

Needs Apache Kafka. The hour passes in virtual time: the stages of a worker process it in memory, with a checkpoint of
each partition every second, and their rows are written with the timestamps of that hour. Kafka closes segments by
these timestamps, so both topics have the segments of an hour; the cleaner has only the minutes of the run.
"""

import asyncio
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rocksdict import Options, Rdict, WriteBatch

from benchmarks.workload import RECORDS_A_SESSION, record
from traceweir.scorers.hashing_embedder import HashingEmbedder
from traceweir.streams.base.stages.base import Cut, Output
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.tools.testing.builders import START_S
from traceweir.streams.tools.testing.flow import Flow
from traceweir.streams.tools.testing.memory import Message
from traceweir.streams.worker.kafka.topic_options import options_at_creation
from traceweir.streams.worker.runtime.changelog_restore import FETCH_BYTES
from traceweir.streams.worker.runtime.delivery import PlainSends

PARTITIONS = 4
RATE = 50
"""Records per second."""
SESSION_S = 60
"""Seconds from the first record of a session to its last one."""
MINUTES = 60
QUIET_S = 45.0
"""Seconds without a change after which the cleaner counts as done; it looks for work every 15 s."""
KINDS: Mapping[str, Mapping[str, str]] = {
    "only cleanup.policy": {"cleanup.policy": "compact"},
    "as created now": options_at_creation("compact", None, 1),
}


class _Recorded(Flow):
    """Keeps the rows of the checkpoints."""

    recorded: list[Output]
    began: float

    def commit(self, cut: Cut, partition: int = 0) -> list[Message]:
        timestamp = int((self.began + self.now - START_S) * 1000)
        self.recorded += [Output("", partition, key, value, (), timestamp) for key, value in cut.rows]
        return super().commit(cut, partition)


def run(servers: str, logs: Path, rounds: int = 3) -> None:
    """Prints the size of both changelogs over the hour, their segments, and the time to read them into RocksDB.

    Args:
        servers: The address of the cluster.
        logs: The folder with the broker's logs.
        rounds: How often both changelogs are read.
    """
    asyncio.run(_run(servers, logs, rounds))


async def _run(servers: str, logs: Path, rounds: int) -> None:
    topics = {name: f"compaction{time.time_ns()}-{place}" for place, name in enumerate(KINDS)}
    new = [NewTopic(topic, PARTITIONS, 1, config=dict(KINDS[name])) for name, topic in topics.items()]
    client = AdminClient({"bootstrap.servers": servers})
    for made in client.create_topics(new).values():
        made.result()
    delivery = PlainSends({"bootstrap_servers": servers.split(",")})
    await delivery.start()
    flow = _Recorded(embedder=HashingEmbedder(), partitions=PARTITIONS)
    flow.recorded, flow.began = [], time.time() - MINUTES * 60
    written = 0
    for second in range(MINUTES * 60):
        _send(flow, second)
        flow.pass_time(1)
        await flow.settle()
        written += sum(len(row.key or b"") + len(row.value or b"") for row in flow.recorded)
        both = [row._replace(topic=topic) for topic in topics.values() for row in flow.recorded]
        flow.recorded = []
        await delivery.send({}, both, {})
        if second % 600 == 599:
            state = sum(
                len(key) + len(row) for place in range(PARTITIONS) for key, row in flow.rows(b"", place).items()
            )
            sizes = {name: _size(logs, topic) for name, topic in topics.items()}
            print(
                f"  after {second // 60 + 1} minutes: {written / 1e6:.0f} MB of rows written, {state / 1e6:.1f} MB of state; "
                f"in Kafka {_listed(sizes)}",
                flush=True,
            )
    await delivery.stop()
    await _until_cleaned(logs, topics)
    sizes = {name: _size(logs, topic) for name, topic in topics.items()}
    print(f"  when the cleaner has no more work: {_listed(sizes)}")
    before, now = sizes.values()
    print(f"RATIO of the sizes: {before[0] / now[0]:.1f}")
    found: dict[str, list[float]] = {name: [] for name in topics}
    rows: dict[str, int] = {}
    for _ in range(rounds):
        for name, topic in topics.items():
            took, rows[name] = await _read(servers, topic)
            found[name].append(took)
    for name, times in found.items():
        print(f"  {rows[name]:,} rows read into RocksDB, {name}: {', '.join(f'{each:.2f}' for each in times)} s")
    ratios = [old / young for old, young in zip(*found.values(), strict=True)]
    print(f"MEDIAN ratio of the catch-up: {statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})")


def _send(flow: Flow, second: int) -> None:
    """Sends the records of a second: the next record of each session whose turn it is."""
    step = SESSION_S / (RECORDS_A_SESSION - 1)
    per_second = RATE / RECORDS_A_SESSION
    oldest = max(0, int((second - SESSION_S - 1) * per_second))
    for session in range(oldest, int((second + 1) * per_second)):
        began = session / per_second
        for number in range(RECORDS_A_SESSION):
            if second <= began + number * step < second + 1:
                name = f"session-{session}"
                is_trace, value = record(name, number, flow.clock())
                topic = flow.topics.traces if is_trace else flow.topics.invocations
                flow.send(topic, value, name.encode(), partition=partition_of(name.encode(), PARTITIONS))


def _size(logs: Path, topic: str) -> tuple[int, int]:
    """Returns the bytes and the number of the segments of a topic."""
    files = [file.stat().st_size for file in logs.glob(f"{topic}-*/*.log")]
    return sum(files), len(files)


def _listed(sizes: Mapping[str, tuple[int, int]]) -> str:
    return ", ".join(f"{name} {size / 1e6:.0f} MB in {count} segments" for name, (size, count) in sizes.items())


async def _until_cleaned(logs: Path, topics: Mapping[str, str]) -> None:
    known, since = None, time.monotonic()
    while time.monotonic() - since < QUIET_S:
        await asyncio.sleep(1)
        sizes = [_size(logs, topic) for topic in topics.values()]
        if sizes != known:
            known, since = sizes, time.monotonic()


async def _read(servers: str, topic: str) -> tuple[float, int]:
    """Reads a whole topic into RocksDB, as a worker without state does; returns the seconds and the number of rows."""
    with TemporaryDirectory() as folder:
        tables = [Rdict(f"{folder}/{number}", Options(raw_mode=True)) for number in range(PARTITIONS)]
        consumer = AIOKafkaConsumer(
            bootstrap_servers=servers.split(","),
            enable_auto_commit=False,
            isolation_level="read_committed",
            max_partition_fetch_bytes=FETCH_BYTES,
            fetch_max_wait_ms=20,
        )
        await consumer.start()
        try:
            places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            consumer.assign(places)
            ends = await consumer.end_offsets(places)
            for place, offset in (await consumer.beginning_offsets(places)).items():
                consumer.seek(place, offset)
            began = time.perf_counter()
            count = 0
            todo = set(places)
            while todo:
                for place, records in (await consumer.getmany(*todo, timeout_ms=20)).items():
                    batch = WriteBatch(raw_mode=True)
                    for each in records:
                        if each.value is None:
                            batch.delete(each.key)
                        else:
                            batch.put(each.key, each.value)
                    tables[place.partition].write(batch)
                    count += len(records)
                todo = {place for place in todo if await consumer.position(place) < ends[place]}
            return time.perf_counter() - began, count
        finally:
            await consumer.stop()
            for table in tables:
                table.close()
