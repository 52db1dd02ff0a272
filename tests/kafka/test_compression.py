"""Records in every codec of Kafka are read from every input topic, and written in the codec of the settings."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.record.memory_records import MemoryRecords
from confluent_kafka import Producer
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from tests.audit.committed import Committed
from tests.support.collect import agent_trace, log_request, request, trace_id
from tests.support.flow import TOPICS, assemble_only
from tests.support.workers import Fleet, Worker

from traceweir.schemas.candidate import Candidate
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import ALL_STAGES, application_id
from traceweir.streams.testing import event, trace
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

DEADLINE_S = 90
CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
FILLER = "plan a flight " * 100
"""Without it librdkafka sends a record as it is, because compression would not make it smaller."""


def read_until(condition: Callable[[], bool], committed: Committed, worker: Worker) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert not worker.ended, worker.log.read_text()
        assert time.monotonic() < deadline, worker.log.read_text()
        committed.read(0.1)


async def session(name: str) -> bytes:
    flow = assemble_only()
    flow.send(TOPICS.invocations, event("session.ended", name, extra=FILLER))
    await flow.finish()
    (record,) = flow.read(TOPICS.sessions)
    assert record.value is not None
    return record.value


def candidate(name: str) -> bytes:
    return Candidate(
        candidate_id=name,
        session_id=name,
        segment=0,
        revision=0,
        scope="travel@none",
        trace=ReasoningTrace.model_validate_json(json.dumps(trace(name, name, extra=FILLER))),
        required={},
        novelty_missing="no_embedder",
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
    ).wire()


def logs(number: int) -> bytes:
    return log_request(LogRecord(trace_id=trace_id(number), span_id=bytes(range(1, 9)), event_name=FILLER))


async def codecs_of(kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Returns the codecs of the batches with records in a topic."""
    found = set[int]()

    class Noting:
        def __init__(self, data: bytes) -> None:
            self._inner = MemoryRecords(data)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def next_batch(self) -> Any:
            batch = self._inner.next_batch()
            if not batch.is_control_batch:
                found.add(batch.attributes & 7)
            return batch

    with monkeypatch.context() as patched:
        patched.setattr(fetcher, "MemoryRecords", Noting)
        async with AIOKafkaConsumer(bootstrap_servers=kafka, auto_offset_reset="earliest") as consumer:
            places = [TopicPartition(topic, number) for number in range(4)]
            consumer.assign(places)
            ends = await consumer.end_offsets(places)
            while any([await consumer.position(place) < ends[place] for place in places]):
                await consumer.getmany(timeout_ms=1_000)
    return found


@pytest.mark.parametrize("codec", CODECS)
async def test_each_input_is_read_and_each_output_is_written_in_each_codec(
    codec: str, kafka: str, prefix: str, fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = {f"otlp_{kind}_topic": f"{prefix}otlp_{kind}" for kind in ("spans", "logs")}
    settings = Settings(kafka_bootstrap_servers=kafka, topic_prefix=prefix, **topics)  # type: ignore[arg-type]
    create_topics(settings, ALL_STAGES)
    variables = {f"TRACEWEIR_{name.upper()}": topic for name, topic in topics.items()} | {
        "TRACEWEIR_TRACE_GRACE_S": "1",
        "TRACEWEIR_KAFKA_COMPRESSION": codec,
        "TRACEWEIR_KAFKA_CLIENT_RACK": "a zone without a broker",
    }
    sent = {
        "invocations": [json.dumps(event("session.ended", "event", extra=FILLER)).encode()],
        "traces": [json.dumps(trace("t", "trace", extra=FILLER)).encode()],
        "sessions": [await session("session")],
        "candidates": [candidate("candidate")],
        "otlp_spans": [request(*agent_trace(1, session="span"))],
        "otlp_logs": [logs(1)],
        "references": [json.dumps({"reference_id": "r", "tool_uses": [], "extra": FILLER}).encode()],
    }
    producer = Producer({"bootstrap.servers": kafka, "compression.type": codec, "log_level": 0})
    for topic, values in sent.items():
        for value in values:
            producer.produce(f"{prefix}{topic}", value, b"key", partition=0)
    assert producer.flush(30) == 0
    for topic in sent:
        assert await codecs_of(kafka, f"{prefix}{topic}", monkeypatch) == {CODECS[codec]}, topic

    stages, application = ",".join(ALL_STAGES), application_id(prefix, ALL_STAGES)
    worker = fleet.start("worker", stages=stages, variables=variables)
    with Committed(kafka, prefix, application, spans=True) as committed:

        def is_done() -> bool:
            names = {each["session_id"] for each in committed.sessions()}
            decided = {
                row.document["trace_id"] for row in committed.rows["results"] if row.document["metric"] == "gate"
            }
            return names >= {"event", "trace", "session", "span"} and len(decided) >= 2

        read_until(is_done, committed, worker)
        assert "references: read 1" in worker.log.read_text()
        worker.terminate(DEADLINE_S)
        again = fleet.start("restored", stages=stages, variables=variables, state_dir=tmp_path / "new")
        again.until_ready()
        producer.produce(f"{prefix}invocations", json.dumps(event("session.ended", "again")).encode(), partition=0)
        producer.flush(30)
        read_until(lambda: "again" in {each["session_id"] for each in committed.sessions()}, committed, again)
        again.terminate(DEADLINE_S)

    assert committed.rows["dead-letters"] == []
    assert await codecs_of(kafka, f"{application}-state-changelog", monkeypatch) == {CODECS[codec]}
    assert await codecs_of(kafka, f"{prefix}results", monkeypatch) == {CODECS[codec]}
