"""Spans on Apache Kafka become sessions and scores, each exactly once, although the worker is killed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.collect import agent_trace, offline, ordered, request, span, trace_id
from tests.support.late_spans import turns
from tests.support.workers import Fleet, Worker

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import ALL_STAGES, application_id
from traceweir.streams.worker.kafka.topic_admin import check_topics, create_topics

DEADLINE_S = 90
TRACES = 40


def read_until(condition: Callable[[], bool], committed: Committed, worker: Worker) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert not worker.ended, worker.log.read_text()
        assert time.monotonic() < deadline, worker.log.read_text()
        committed.read(0.1)


def prepared(kafka: str, prefix: str) -> tuple[Settings, dict[str, str]]:
    """Creates the topics of all stages; returns their settings and the variables of a worker."""
    settings = Settings(kafka_bootstrap_servers=kafka, topic_prefix=prefix, otlp_spans_topic=f"{prefix}otlp_spans")
    settings = settings.model_copy(update={"otlp_logs_topic": f"{prefix}otlp_logs"})
    create_topics(settings, ALL_STAGES)
    assert check_topics(settings, ALL_STAGES) == []
    return settings, {
        "TRACEWEIR_OTLP_SPANS_TOPIC": settings.otlp_spans_topic,
        "TRACEWEIR_OTLP_LOGS_TOPIC": settings.otlp_logs_topic,
    }


def produce(settings: Settings, requests: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
    for place, each in enumerate(requests):
        producer.produce(settings.otlp_spans_topic, each, partition=place % settings.partitions)
    producer.flush(30)


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_spans_are_scored_once_although_the_worker_is_killed(kafka: str, prefix: str, fleet: Fleet) -> None:
    settings, names = prepared(kafka, prefix)
    names |= {"TRACEWEIR_TRACE_GRACE_S": "1"}
    traces = [agent_trace(number, session=f"s{number}", tools=3) for number in range(TRACES)]
    stages = ",".join(ALL_STAGES)
    worker = fleet.start("worker", stages=stages, variables=names)
    worker.until_ready()
    with Committed(kafka, prefix, application_id(prefix, ALL_STAGES)) as committed:
        produce(settings, [request(*trace) for trace in traces[:10]])
        produce(settings, [request(*trace[:2]) for trace in traces[10:]])
        read_until(lambda: len(committed.rows["traces"]) >= 1, committed, worker)
        worker.kill()
        worker = fleet.start("worker", stages=stages, variables=names)
        produce(settings, [request(*trace) for trace in traces[10:]])  # each first half comes twice
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


def committed_scores(committed: Committed) -> set[tuple[str, int]]:
    """Returns the sessions that have scores, each with the revision."""
    return {(row.document["session_id"], row.document["revision"]) for row in committed.rows["results"]}


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_turns_move_from_their_trace_ids_to_the_sessions_that_late_spans_name(
    kafka: str, prefix: str, fleet: Fleet
) -> None:
    settings, names = prepared(kafka, prefix)
    names |= {"TRACEWEIR_TRACE_IDLE_S": "2", "TRACEWEIR_TRACE_GRACE_S": "1", "TRACEWEIR_GRACE_S": "300"}
    # On a busy machine a trace can be read more than half a second after the events of its session, which then closes
    # without it, and gets a revision more.
    names["TRACEWEIR_CLOSE_LINGER_S"] = "10"
    model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "output.value": "yes"}
    traces = [
        [span(number, 1, 0, more=model), span(number, 2, 0), span(number, 0, session=f"s{number}")]
        for number in range(TRACES)
    ]
    own = {trace_id(number).hex() for number in range(TRACES)}
    named = {f"s{number}" for number in range(TRACES)}
    stages = ",".join(ALL_STAGES)
    worker = fleet.start("worker", stages=stages, variables=names)
    worker.until_ready()
    with Committed(kafka, prefix, application_id(prefix, ALL_STAGES)) as committed:

        def sessions(revision: int) -> set[str]:
            found = [row.document for row in committed.rows["sessions"]]
            return {each["session_id"] for each in found if each["revision"] == revision}

        produce(settings, [request(*trace[:-1]) for trace in traces])
        read_until(lambda: sessions(0) == own, committed, worker)
        worker.kill()
        produce(settings, [request(trace[-1]) for trace in traces])  # the root names the session
        worker = fleet.start("worker", stages=stages, variables=names)
        worker.until_ready()
        read_until(lambda: sessions(0) == own | named and sessions(1) == own, committed, worker)
        scored = {(name, revision) for name in own for revision in (0, 1)} | {(name, 0) for name in named}
        read_until(lambda: scored <= committed_scores(committed), committed, worker)
        worker.terminate(DEADLINE_S)
        while committed.read(1.0):
            pass

    expected = turns(each for each in offline([request(*trace) for trace in traces]) if "event_id" in each)
    assert turns(row.document for row in committed.rows["invocations"]) == expected
    results = [row.document for row in committed.rows["results"]]
    ids = [(each["result_id"], each["revision"], each["attempt"]) for each in results]
    assert len(set(ids)) == len(ids)
    first, last = (
        {each["result_id"] for each in results if each["session_id"] in own and each["revision"] == revision}
        for revision in (0, 1)
    )
    assert first <= last
    assert {
        each["status"]
        for each in results
        if each["session_id"] in own and each["revision"] == 1 and each["metric"] != "gate"
    } == {"NOT_EVALUATED"}
    assert {each["session_id"] for each in results} == own | named
    assert [row.document for row in committed.rows["dead-letters"]] == []
