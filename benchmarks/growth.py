"""Measures the time per event for long and for many sessions, and the memory of an open session, without a broker."""

import gc
import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rocksdict import Options, Rdict

from benchmarks.stages import topology_of_one_partition
from benchmarks.workload import record
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.stages.base import Stage
from traceweir.streams.base.topics import Topics

TOPICS = Topics.of()
BATCH = 2_000


class Record(NamedTuple):
    """The attributes of a record that the stage reads."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


def run() -> None:
    """Prints microseconds per event, and bytes per session."""
    for length in (10, 100, 1_000):
        took = min(cost(200_000 // length // 2, length) for _ in range(3))
        print(f"  sessions of {length:,} events: {took:.1f} us an event")
    for many in (100, 10_000, 100_000):
        took = min(_cost_among(many) for _ in range(3))
        print(f"  {many:,} sessions open, events for 100 of them: {took:.1f} us an event")
    for many in (100, 10_000, 100_000):
        took = min(cost(many, 5 if many > 1e4 else 10) for _ in range(2))
        print(f"  {many:,} sessions open, events for all of them: {took:.1f} us an event")
    for events in (5, 10):
        print(f"  {events} events in each of 100,000 open sessions: {_apart('open', str(events))}")
    print(f"  20,000 sessions of 10 events, a session: {_apart('closed')}")


def _apart(*arguments: str) -> str:
    """Returns the output of this module, run in its own process."""
    return subprocess.check_output([sys.executable, "-m", "benchmarks.growth", *arguments], text=True).strip()


def cost(sessions: int, length: int) -> float:
    """Returns microseconds of `apply` and `cut` per event, over sessions that stay open and get events in turn."""
    stage, rows = _stage()
    records = list(_records(sessions, length))
    gc.collect()
    began = time.perf_counter()
    _feed(stage, rows, records)
    return (time.perf_counter() - began) / len(records) * 1e6


def _cost_among(sessions: int) -> float:
    """Returns microseconds per event of 100 sessions while all other sessions stay open."""
    stage, rows = _stage()
    _feed(stage, rows, _records(sessions, 1))
    records = list(_records(100, 200))[100:]
    gc.collect()
    began = time.perf_counter()
    _feed(stage, rows, records)
    return (time.perf_counter() - began) / len(records) * 1e6


def _stage() -> tuple[Stage, dict[bytes, bytes]]:
    """Returns a stage that closes no session."""
    rows: dict[bytes, bytes] = {}
    topology = topology_of_one_partition()
    endless = replace(topology.closing, idle_gap_ms=10**9, max_events=10**6, max_bytes=10**9)
    spec = replace(topology, closing=endless).spec("assemble")
    stage = spec.new(0, rows.get, lambda: None)
    stage.tick(time.time(), dict.fromkeys(spec.inputs, 0.0))
    return stage, rows


def _records(sessions: int, length: int) -> Iterator[Record]:
    now = utc_now()
    offset, stamp = 0, int(now.timestamp() * 1000)
    for number in range(length):
        for session in range(sessions):
            name = f"session-{session}"
            value = record(name, 1 + number % 2, now)[1].replace(b'/%d"' % (1 + number % 2), b'/%d"' % number)
            yield Record(TOPICS.invocations, 0, offset, stamp, name.encode(), value)
            offset += 1


def _feed(stage: Stage, rows: MutableMapping[bytes, bytes] | None, records: list[Record] | Iterator[Record]) -> None:
    batch: list[Record] = []
    for item in records:
        batch.append(item)
        if len(batch) == BATCH:
            stage.apply(TOPICS.invocations, batch)
            batch = []
            if rows is None:
                stage.cut()
            else:
                _take(stage, rows)
    if batch:
        stage.apply(TOPICS.invocations, batch)
        stage.cut()


def _memory(events: int) -> str:
    stage, _ = _stage()
    _feed(stage, None, _records(1_000, 1))  # so that one-time allocations are not measured
    gc.collect()
    before = _resident()
    stage, _ = _stage()
    _feed(stage, None, _records(100_000, events))
    gc.collect()
    return f"{(_resident() - before) / 100_000:,.0f} bytes of resident memory a session"


def _closed() -> str:
    """Returns memory and table size of a session while it is open, can be reopened, has a guard, and afterwards."""
    count, told = 20_000, []
    with TemporaryDirectory() as folder:
        rows = Rdict(folder, Options(raw_mode=True))  # RocksDB's memory is outside Python's heap
        spec = topology_of_one_partition().spec("assemble")
        stage = spec.new(0, rows.get, lambda: None)
        now = time.time()
        stage.tick(now, dict.fromkeys(spec.inputs, 0.0))
        _feed(stage, rows, _records(1_000, 1))
        records = [*_records(count, 10)]
        gc.collect()
        tracemalloc.start()
        for passed, name in ((0, "open"), (400, "in the grace"), (1_300, "under guard"), (5_000, "forgotten")):
            if records:
                _feed(stage, rows, records)
                records.clear()
            stage.tick(now + passed, {})
            for _ in range(2):
                _take(stage, rows)
            gc.collect()
            size = sum(len(key) + len(row) for key, row in rows.items())
            told.append(f"{name} {tracemalloc.get_traced_memory()[0] / count:,.0f} and {size / count:,.0f}")
    return f"bytes of Python's memory and of the table: {'; '.join(told)}"


def _take(stage: Stage, rows: MutableMapping[bytes, bytes]) -> None:
    for key, value in stage.cut().rows:
        if value is not None:
            rows[key] = value
        elif key in rows:
            del rows[key]


def _resident() -> int:
    # Not ru_maxrss: that is inherited from the process that started this one.
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    print(_closed() if sys.argv[1] == "closed" else _memory(int(sys.argv[2])))
