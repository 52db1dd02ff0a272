"""A record on which a stage raises costs no other record, and a worker goes on after it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.workers import Fleet, Worker

from traceweir.schemas.candidate import Candidate
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import STAGES, application_id
from traceweir.streams.testing import event, trace
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = pytest.mark.kafka

DEADLINE_S = 90


def read_until(condition: Callable[[], bool], committed: Committed, worker: Worker) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert not worker.ended, worker.log.read_text()
        assert time.monotonic() < deadline, worker.log.read_text()
        committed.read(0.1)


def decided_traces(committed: Committed) -> list[str]:
    """Returns the traces that the gate has decided on, one item per decision."""
    return [row.document["trace_id"] for row in committed.rows["results"] if row.document["metric"] == "gate"]


def candidate(number: int) -> bytes:
    return Candidate(
        candidate_id=f"c{number}",
        session_id=f"s{number}",
        segment=0,
        revision=0,
        scope="travel@none",
        trace=ReasoningTrace.model_validate_json(json.dumps(trace(number, f"s{number}"))),
        required={},
        novelty_missing="no_embedder",
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
    ).wire()


def test_twenty_candidates_are_decided_although_forged_candidates_are_among_them(
    kafka: str, prefix: str, fleet: Fleet
) -> None:
    good = [candidate(number) for number in range(20)]
    long_id = json.dumps("kp:trace:" + "x" * 70_000).encode()
    forged = [
        good[3].replace(b'"revision":0', b'"revision":%d' % 2**64),
        good[4].replace(b'"kp:trace:4"', long_id),
    ]
    create_topics(Settings(kafka_bootstrap_servers=kafka, topic_prefix=prefix), ["gate"])
    producer = Producer({"bootstrap.servers": kafka, "log_level": 0})
    for value in [*good[:10], *forged, *good[10:]]:
        producer.produce(f"{prefix}candidates", value, b"travel@none", 1)
    producer.flush(30)
    worker = fleet.start("gate", stages="gate")
    with Committed(kafka, prefix, application_id(prefix, ["gate"])) as committed:
        read_until(
            lambda: len(committed.rows["results"]) >= 40 and len(committed.rows["dead-letters"]) >= 2, committed, worker
        )
        worker.terminate(DEADLINE_S)
        committed.read(1.0)

    assert sorted(decided_traces(committed)) == sorted(f"kp:trace:{number}" for number in range(20))
    reasons = [dict(row.headers)["traceweir.reason"] for row in committed.rows["dead-letters"]]
    assert reasons == [b"unreadable_candidate", b"unreadable_candidate"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_raises_in_the_middle_of_a_batch_loses_and_doubles_nothing(
    stage: str, kafka: str, prefix: str, fleet: Fleet
) -> None:
    worker = fleet.start("worker", mortal=True)
    worker.until_ready()
    producer = Producer({"bootstrap.servers": kafka, "log_level": 0})
    names = [f"s{number}" for number in range(120)]
    with Committed(kafka, prefix, application_id(prefix, STAGES)) as committed:
        for number, name in enumerate(names):
            if number == 40:
                worker.let_stumble(stage)
            for topic, document in (("traces", trace(name, name)), ("invocations", event("session.ended", name))):
                producer.produce(f"{prefix}{topic}", json.dumps(document).encode(), name.encode())
            producer.flush(10)
            committed.read(0.01)
        read_until(lambda: len(decided_traces(committed)) >= len(names), committed, worker)
        worker.terminate(DEADLINE_S)
        while committed.read(1.0):
            pass

    assert worker.stumbles == 1
    assert committed.rows["dead-letters"] == []
    assert sorted(decided_traces(committed)) == sorted(f"kp:trace:{name}" for name in names)
    ids = Counter((row.document["result_id"], row.document["revision"]) for row in committed.rows["results"])
    assert set(ids.values()) == {1}
