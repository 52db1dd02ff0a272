"""Spans on Apache Kafka become sessions and scores, each exactly once, although the worker is killed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.collect import agent_trace, offline, ordered, request
from tests.support.workers import Fleet, Worker

from traceweir.streams.kafka.topic_admin import check_topics, create_topics
from traceweir.streams.settings import Settings
from traceweir.streams.topics import ALL_STAGES, application_id

DEADLINE_S = 90
TRACES = 40


def read_until(condition: Callable[[], bool], committed: Committed, worker: Worker) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert not worker.ended, worker.log.read_text()
        assert time.monotonic() < deadline, worker.log.read_text()
        committed.read(0.1)


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_spans_are_scored_once_although_the_worker_is_killed(kafka: str, prefix: str, fleet: Fleet) -> None:
    settings = Settings(kafka_bootstrap_servers=kafka, topic_prefix=prefix, otlp_spans_topic=f"{prefix}otlp_spans")
    settings = settings.model_copy(update={"otlp_logs_topic": f"{prefix}otlp_logs"})
    create_topics(settings, ALL_STAGES)
    assert check_topics(settings, ALL_STAGES) == []
    names = {
        "TRACEWEIR_OTLP_SPANS_TOPIC": settings.otlp_spans_topic,
        "TRACEWEIR_OTLP_LOGS_TOPIC": settings.otlp_logs_topic,
        "TRACEWEIR_TRACE_GRACE_S": "1",
    }
    traces = [agent_trace(number, session=f"s{number}", tools=3) for number in range(TRACES)]
    producer = Producer({"bootstrap.servers": kafka, "log_level": 0})

    def send(requests: list[bytes]) -> None:
        for place, each in enumerate(requests):
            producer.produce(settings.otlp_spans_topic, each, partition=place % settings.partitions)
        producer.flush(30)

    stages = ",".join(ALL_STAGES)
    worker = fleet.start("worker", stages=stages, variables=names)
    worker.until_ready()
    with Committed(kafka, prefix, application_id(prefix, ALL_STAGES)) as committed:
        send([request(*trace) for trace in traces[:10]])
        send([request(*trace[:2]) for trace in traces[10:]])
        read_until(lambda: len(committed.rows["traces"]) >= 1, committed, worker)
        worker.kill()
        worker = fleet.start("worker", stages=stages, variables=names)
        send([request(*trace) for trace in traces[10:]])  # each first half comes twice
        worker.until_ready()
        read_until(lambda: len(committed.rows["sessions"]) >= TRACES, committed, worker)
        worker.terminate(DEADLINE_S)
        while committed.read(1.0):
            pass

    found = [*committed.rows["invocations"], *committed.rows["traces"]]
    assert ordered(row.document for row in found) == offline([request(*trace) for trace in traces])
    sessions = [row.document for row in committed.rows["sessions"]]
    assert sorted(each["session_id"] for each in sessions) == sorted(f"s{number}" for number in range(TRACES))
    assert [row.document for row in committed.rows["dead-letters"]] == []
