"""Measures the CPU that `traceweir alerts run` needs for 10,000 streams at 5,000 scores/s, by part, and what it writes.

The scores come as batches of Kafka in memory, and the state is encoded into batches: without a broker, the figures are
those of the process alone. Streams have learnt a week, and have the longest history that they keep.
"""

from __future__ import annotations

import json
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from traceweir.schemas.alert_rule import AlertRule
from traceweir.schemas.score import Score
from traceweir.streams.base.process_setup import tune_gc
from traceweir.streams.base.statistics.watched_stream import DAY
from traceweir.streams.tools.alerts.alert_watch import AlertWatch
from traceweir.streams.tools.alerts.rule_stream import RuleStream
from traceweir.streams.tools.alerts.score_outline import read_score
from traceweir.streams.tools.alerts.state_rows import Head, LogPlace, stream_key
from traceweir.streams.tools.alerts.watched_scores import Minute, StreamName
from traceweir.streams.tools.alerts.write_pace import write_after_s

APPS = 1_000
METRICS = 10
SCORES_A_SECOND = 5_000
PARTITIONS = 12
MINUTES = 1
WARM_MINUTES = 3
"""Until as many minutes close as are read."""
BATCH = 500
"""Scores of a batch of Kafka, about as a checkpoint of a worker writes them."""
ROWS_OF_BATCH = 100
PASSING = 0.9
STEPS = 200
"""Minutes of history in front of the first: the blocks of a stream are as many as they become."""
PROTOTYPES = 20
"""Streams that are computed; the others are copies with numbers and names of their own."""
RULE = AlertRule(id="by-app", by=("app_name",))
BEGIN = int(datetime(2026, 11, 2, 12, tzinfo=UTC).timestamp()) // 60
PARTS = ("parse batches", "read fields", "take scores", "close minutes")


@dataclass
class Used:
    """CPU seconds by part, and what a write of the state has."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    scores: int = 0
    streams: int = 0
    write_after_s: float = 0.0
    """Seconds between two writes without alerts."""
    written: Counter[str] = field(default_factory=Counter)
    """Bytes of the rows of a write, by their kind."""

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Adds the CPU time of the block."""
        begun = time.process_time()
        yield
        self.seconds[name] += time.process_time() - begun


def stream_names(apps: int = APPS) -> list[StreamName]:
    """Returns the streams: each metric of each app."""
    return [
        StreamName(f"metric_{metric}", "session", (("app_name", f"app-{app}"),))
        for app in range(apps)
        for metric in range(METRICS)
    ]


def known_rows(names: Sequence[StreamName], random: np.random.Generator) -> dict[bytes, bytes]:
    """Returns a state in which all streams are watched, and have a long history."""
    prototypes = []
    for _ in range(PROTOTYPES):
        stream = RuleStream(1, RULE, names[0])
        for minute in range(BEGIN - 8 * DAY, BEGIN - DAY, 60):
            stream.step(_minute(minute, 180, random))
        for minute in range(BEGIN - STEPS, BEGIN):
            stream.step(_minute(minute, 30, random))
        prototypes.append(msgspec.msgpack.decode(stream.to_bytes()))
    rows = {}
    for number, name in enumerate(names, 1):
        row = [*prototypes[number % PROTOTYPES]]
        row[0] = (name.metric, name.level, name.slice)
        # The detector's state begins with the number of the stream.
        row[1] = struct.pack("<d", number) + row[1][8:]
        rows[stream_key(RULE.id, number)] = msgspec.msgpack.encode(row)
    return rows


def _minute(number: int, sessions: int, random: np.random.Generator) -> Minute:
    names = [f"session-{number}-{each}" for each in range(sessions)]
    suspects = {("1", "gpt-4o", "openai/judge", "1", "0123456789abcdef")}
    return Minute(number, names, (random.random(sessions) < PASSING).astype(float), suspects)


class Traffic:
    """The scores of each second, as batches of Kafka: those of a session follow each other in one partition."""

    def __init__(self, apps: int, random: np.random.Generator) -> None:
        self._apps = apps
        self._random = random
        self._session = 0
        self._offsets = [0] * PARTITIONS
        moment = datetime(2026, 11, 2, tzinfo=UTC)
        score = Score(
            app_name="APP", agent_name="support", agent_version="1", environment="production", model="gpt-4o",
            result_id="RESULT", revision=0, session_id="SESSION", segment=0, level="session", metric="METRIC", value=0.125,
            threshold=0.5, status="PASSED", judge="openai/judge",
            rationale="The answer names the booking, the date and the price, and does what the user has asked for.",
            details={"votes": [1.0, 1.0, 1.0]}, scorer_version="1", config_digest="0123456789abcdef", occurred_at=moment,
            evaluated_at=moment,
        )  # fmt: skip
        form = score.wire().decode().replace("%", "%%")
        for name in ("APP", "RESULT", "SESSION", "METRIC"):
            form = form.replace(f'"{name}"', f'"%({name})s"')
        form = form.replace("0.125", "%(VALUE)s").replace('"PASSED"', '"%(STATUS)s"')
        self._form = form.replace(json.loads(score.wire())["occurred_at"], "%(TIME)s")

    def second(self, at: datetime, scores: int) -> list[tuple[int, bytes]]:
        """Returns batches, each with its partition."""
        waiting: list[list[tuple[bytes, bytes]]] = [[] for _ in range(PARTITIONS)]
        time_text = f"{at:%Y-%m-%dT%H:%M:%S}.123456Z"
        for _ in range(scores // METRICS):
            self._session += 1
            session = f"0190c8f2-{self._session:012x}"
            app = f"app-{int(self._random.integers(self._apps))}"
            passed = self._random.random(METRICS) < PASSING
            for metric in range(METRICS):
                fields = {
                    "APP": app, "SESSION": session, "METRIC": f"metric_{metric}", "TIME": time_text,
                    "RESULT": f"bf05f4d5-47dc-5ff1-{metric:04x}-{self._session:012x}",
                    "VALUE": "1.0" if passed[metric] else "0.0", "STATUS": "PASSED" if passed[metric] else "FAILED",
                }  # fmt: skip
                waiting[self._session % PARTITIONS].append((session.encode(), (self._form % fields).encode()))
        batches = []
        for partition, records in enumerate(waiting):
            for begin in range(0, len(records), BATCH):
                piece = records[begin : begin + BATCH]
                batches.append((partition, encoded(piece, self._offsets[partition])))
                self._offsets[partition] += len(piece)
        return batches


def encoded(records: Sequence[tuple[bytes, bytes | None]], base: int = 0) -> bytes:
    """Returns records as a batch of Kafka, in which the first offset is 0 unless another is given."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=1,
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        batch_size=2**30,
    )
    for number, (key, value) in enumerate(records):
        builder.append(number, 1_700_000_000_000, key, value, [])
    found = bytearray(builder.build())
    struct.pack_into(">q", found, 0, base)
    return bytes(found)


def watched(minutes: int = MINUTES, apps: int = APPS, scores: int = SCORES_A_SECOND) -> Used:
    """Watches some minutes of traffic, and then writes the state once; returns what this has used.

    Args:
        minutes: Minutes that are measured, after `WARM_MINUTES`.
        apps: Each has `METRICS` streams.
        scores: Scores a second.
    """
    random = np.random.default_rng(1)
    rows = known_rows(stream_names(apps), random)
    head = Head(LogPlace(), {}, {RULE.id: RULE.model_dump_json()}, {}, BEGIN - 1, [], [])
    watch = AlertWatch()
    used = Used()
    with used.part("load"):
        watch.load({**rows, b"head": head.row()[1]})
    traffic = Traffic(apps, random)
    positions: dict[int, int] = {}
    for second in range((WARM_MINUTES + minutes) * 60):
        batches = traffic.second(datetime.fromtimestamp(BEGIN * 60, UTC) + timedelta(seconds=second), scores)
        measured = used if second >= WARM_MINUTES * 60 else Used()
        with measured.part("parse batches"):
            records = [(partition, record) for partition, batch in batches for record in _parsed(batch)]
        with measured.part("read fields"):
            outlines = [(partition, record.offset, read_score(record.value)) for partition, record in records]
        with measured.part("take scores"):
            for partition, offset, outline in outlines:
                if outline is not None:
                    watch.add(partition, offset, outline)
                positions[partition] = offset + 1
        with measured.part("close minutes"):
            watch.tick(float(second), ())
        measured.scores += len(records)
    used.streams = watch.changed_streams
    used.write_after_s = write_after_s(watch.changed_streams)
    with used.part("write"):
        cut = watch.cut(LogPlace(positions))
        for begin in range(0, len(cut.rows), ROWS_OF_BATCH):
            encoded(cut.rows[begin : begin + ROWS_OF_BATCH])
    for key, row in cut.rows:
        used.written[key.partition(b"/")[0].decode()] += len(key) + len(row or b"")
    return used


def _parsed(batch: bytes) -> Iterator[Any]:
    found = MemoryRecords(batch)
    while found.has_next():
        yield from found.next_batch()


def run(minutes: int = MINUTES) -> None:
    """Prints the CPU by part, and the bytes of the state that are written."""
    # As the process does.
    tune_gc()
    used = watched(minutes)
    print(f"{used.scores / minutes / 60:,.0f} scores/s of event time, {used.streams:,} streams")
    print(f"the state is loaded in {used.seconds['load']:.1f} s of CPU")
    print("\n| part | share of a core | microseconds a score |")
    print("|---|---|---|")
    shares = {part: used.seconds[part] / minutes / 60 for part in PARTS}
    shares["write the state"] = used.seconds["write"] / used.write_after_s
    shares["all"] = sum(shares.values())
    for part, share in shares.items():
        print(f"| {part} | {share:.3f} | {share * minutes * 60 / used.scores * 1e6:.1f} |")
    a_minute = used.written.total() / used.write_after_s * 60
    print(
        f"\na write every {used.write_after_s:.0f} s: {a_minute / 1e6:.1f} MB a minute; in a write, MB by kind of row:"
    )
    print(", ".join(f"{kind} {number / 1e6:.2f}" for kind, number in sorted(used.written.items())))
