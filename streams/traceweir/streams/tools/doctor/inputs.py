"""Reads the latest records of the inputs, and says per producer what is missing in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from traceweir.schemas.text import printable
from traceweir.streams.base.clock import iso
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import UnreadableBatch
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.intake.otlp.decoding import decode_spans
from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.intake.spans import reader
from traceweir.streams.intake.spans.identity import app_of
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.pipeline.assemble.parse import InOtherForm, checked_value, read_event, read_trace
from traceweir.streams.pipeline.collect.requests import read_request
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader, HeldBack

RECORDS, BYTES = 2_000, 20_000_000
"""The latest records of a topic that are read, and the bytes after which no more are read."""
MAX_AHEAD_S = 5.0
"""How far a record can be ahead of this machine before it is named."""
MAX_PRODUCERS = 20
"""Producers of a topic that are named; further ones are counted together."""
UNNAMED = "a producer without a name"
OTHERS = "other producers"
OPEN_S, HANGING_S = 60.0, 900.0
"""Ages of an open transaction, in seconds, from which on it is a warning, and a failure.

The latter is the longest timeout that Kafka's brokers grant a transaction by default.
"""


class InputUnreadableError(Exception):
    """A topic cannot be read; the message states the reason."""


class Latest(NamedTuple):
    """The latest records of a topic."""

    records: list[Any]
    partitions: int
    """Number of partitions of the topic."""


@dataclass
class ObservedProducer:
    """What was seen of one producer on one topic."""

    records: int = 0
    """Records; on a topic of spans, traces."""
    unreadable: int = 0
    first_problem: str = ""
    keyed: int = 0
    """Records whose key is their session id."""
    elsewhere: int = 0
    """Of these, records that are not on the partition that Kafka's default partitioner chooses."""
    without_session: int = 0
    """Traces that name no session."""
    missing: Counter[str] = field(default_factory=Counter)
    """What the producer says to be missing, with the setting that turns it on, by the number of events."""

    def refuse(self, problem: str) -> None:
        """Notes a record that cannot be read."""
        self.unreadable += 1
        self.first_problem = self.first_problem or problem

    def refuse_batch(self, batch: UnreadableBatch) -> None:
        """Notes a batch that cannot be decompressed; it counts as one record."""
        self.records += 1
        self.refuse(f"unreadable_batch: partition {batch.partition}, {batch.problem}")


class Producers:
    """Collects what was seen by producer; the number of producers is bounded."""

    def __init__(self) -> None:
        self.seen: dict[str, ObservedProducer] = {}

    def of(self, name: object) -> ObservedProducer:
        """Returns what was seen of a producer so far."""
        shown = printable(name, 100) if isinstance(name, str) and name else UNNAMED
        if shown not in self.seen and len(self.seen) >= MAX_PRODUCERS:
            shown = OTHERS
        return self.seen.setdefault(shown, ObservedProducer())


async def check_inputs(settings: Settings, now_ms: int, minutes: float, *, spans: bool) -> AsyncIterator[Finding]:
    """Yields what is found in the inputs, topic by topic.

    Args:
        settings: Where Kafka is.
        now_ms: The time of this machine, in milliseconds since 1970.
        minutes: How far back records are read.
        spans: Whether the topic of spans is read, too.
    """
    topics = settings.topics
    kinds: list[tuple[str, Callable[[str, Settings, Latest], Iterator[Finding]]]] = [
        (topics.invocations, documents),
        (topics.traces, documents),
        *([(topics.otlp_spans, span_requests)] if spans else []),
    ]
    for topic, read in kinds:
        try:
            latest, held_back = await _latest(settings, topic, now_ms - int(minutes * 60_000))
        except InputUnreadableError as error:
            yield Finding("inputs", "failure", str(error))
            continue
        waiting = list(_waiting(topic, settings, held_back, now_ms))
        for finding in waiting:
            yield finding
        if not latest.records:
            if waiting:
                continue
            yield Finding("inputs", "not checked", f"{topic} has no record of the last minutes")
            continue
        ahead_s = (max(record.timestamp for record in latest.records) - now_ms) / 1000
        if ahead_s > MAX_AHEAD_S:
            yield Finding(
                "clock", "warning",
                f"the newest record of {topic} is dated {ahead_s:.0f} s ahead of this machine, so that sessions close too "
                "early or too late: let all machines take the time from one source (NTP)",
            )  # fmt: skip
        for finding in read(topic, settings, latest):
            yield finding


async def _latest(settings: Settings, topic: str, since_ms: int) -> tuple[Latest, dict[int, HeldBack]]:
    found: list[Any] = []
    async with BoundedReader(settings, topic, InputUnreadableError, batches=True) as source:
        held_back = await source.held_back()
        share = RECORDS // len(source.ends) + 1
        size = 0
        since = await source.begins_since(since_ms)
        begins = {number: max(at, source.ends[number] - share) for number, at in since.items()}
        async with aclosing(source.records(begins)) as records:
            async for record in records:
                found.append(record)
                size += len(record.value or b"")
                if size > BYTES:
                    break
        partitions = len(source.ends)
    return Latest([record for record in found if record.timestamp >= since_ms], partitions), held_back


def _waiting(topic: str, settings: Settings, held_back: Mapping[int, HeldBack], now_ms: int) -> Iterator[Finding]:
    tool = f"kafka-transactions.sh --bootstrap-server {settings.kafka_bootstrap_servers}"
    for partition, held in sorted(held_back.items()):
        age_s = OPEN_S if held.since_ms is None else (now_ms - held.since_ms) / 1000
        if age_s < OPEN_S:
            continue
        place = f"--topic {topic} --partition {partition}"
        yield Finding(
            "inputs", "failure" if age_s >= HANGING_S else "warning",
            f"{topic}, partition {partition}: no worker reads the offsets {held.begin} to {held.end - 1}, because a "
            f"transaction is open{_dated(held.since_ms)}. Its producer must end it. If the producer does not run any more, "
            f"`{tool} find-hanging {place}` tells whether the transaction hangs, and `{tool} abort {place} --start-offset "
            f"{held.begin}` ends it. Workers report such a time as traceweir_transactions_open_age_seconds",
        )  # fmt: skip


def _dated(first_ms: int | None) -> str:
    return "" if first_ms is None else f", whose first record is dated {iso(first_ms)}"


def documents(topic: str, settings: Settings, latest: Latest) -> Iterator[Finding]:
    """Yields what is found in events or reasoning traces."""
    read = read_trace if topic.endswith("traces") else read_event
    producers = Producers()
    for record in latest.records:
        if isinstance(record, UnreadableBatch):
            producers.of(None).refuse_batch(record)
            continue
        document = _object(record.value)
        seen = producers.of(document.get("app_name"))
        seen.records += 1
        if isinstance(missing := document.get("missing"), list):
            seen.missing.update(printable(each, 300) for each in missing if isinstance(each, str))
        try:
            session = read(record, checked_value(record, settings.segment_max_bytes))[0]
        except InOtherForm as other:
            session = other.key[0]
        except RecordRejected as why:
            seen.refuse(f"{why.reason}: {why.detail}")
            continue
        if record.key == session:
            seen.keyed += 1
            # A record can be older than the partitions that were added, and `traceweir emit` writes to none of them.
            usual = {partition_of(session, count) for count in (settings.partitions, latest.partitions)}
            seen.elsewhere += record.partition not in usual
    for name, seen in producers.seen.items():
        yield from _findings(topic, name, seen, "records")


def span_requests(topic: str, settings: Settings, latest: Latest) -> Iterator[Finding]:
    """Yields what is found in requests of spans; a trace counts if its outermost span is there."""
    producers = Producers()
    traces: dict[str, list[Span]] = {}
    for record in latest.records:
        if isinstance(record, UnreadableBatch):
            producers.of(None).refuse_batch(record)
            continue
        try:
            parts, problems, _ = read_request(record.value, record.headers, logs=False)
        except RecordRejected as why:
            parts = []
            problems = [why.detail]
        spans = [span for part in parts for span in _decoded(part.data, problems)]
        for problem in problems:
            producers.of(None).records += 1
            producers.of(None).refuse(problem)
        for span in spans:
            traces.setdefault(span.trace_id, []).append(span)
    for trace_id, spans in traces.items():
        seen = producers.of(app_of(spans))
        try:
            found = reader.read_trace(spans)
        except Exception as error:  # noqa: BLE001  # whatever the spans cause must not hide the other traces
            seen.records += 1
            seen.refuse(f"reading trace {trace_id} fails: {type(error).__name__}")
            continue
        if not (found.has_root and found.events):
            continue
        seen.records += 1
        seen.without_session += found.session_ids == (trace_id,)
        for event in found.events:
            seen.missing.update(printable(each, 300) for each in event.get("missing", ()))
    if not any(seen.records for seen in producers.seen.values()):
        yield Finding("inputs", "not checked", f"{topic} has no whole trace of an agent in the last minutes")
    for name, seen in producers.seen.items():
        # Otherwise none of its traces is whole.
        if seen.records:
            yield from _findings(topic, name, seen, "traces")


def _decoded(part: bytes, problems: list[str]) -> list[Span]:
    try:
        return decode_spans(part).spans
    except OtlpError as error:
        problems.append(str(error))
        return []


def _findings(topic: str, name: str, seen: ObservedProducer, unit: str) -> Iterator[Finding]:
    where = f"{topic}, {name}"
    before = 0
    if seen.unreadable:
        before = 1
        yield Finding(
            "inputs", "failure",
            f"{where}: {seen.unreadable} of {seen.records} {unit} cannot be read; the first: "
            f"{printable(seen.first_problem, 300)}. See `traceweir dlq list`",
        )  # fmt: skip
    if seen.elsewhere:
        before = 1
        yield Finding(
            "inputs", "warning",
            f"{where}: {seen.elsewhere} of {seen.keyed} records with the session id as key are not where Kafka's default "
            "partitioner puts them, so that each is sent once more: set `partitioner=murmur2_random` in librdkafka's clients",
        )  # fmt: skip
    if seen.without_session:
        before = 1
        yield Finding(
            "inputs", "warning",
            f"{where}: {seen.without_session} of {seen.records} traces name no session, so that each is a session of its "
            "own: set the attribute `session.id` or `gen_ai.conversation.id` on the agent's spans",
        )  # fmt: skip
    for sentence, number in seen.missing.most_common(5):
        before = 1
        yield Finding("inputs", "warning", f"{where}: {number} events say: {sentence}")
    if not before:
        yield Finding("inputs", "ok", f"{where}: {seen.records} {unit} of the last minutes can be read")


def _object(value: bytes | None) -> dict[str, Any]:
    try:
        found = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}
