"""Workers read the partitions that an administrator adds to an input, each record once, and start with them again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from tests.support.short_sessions import closed
from tests.support.workers import Fleet

from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import STAGES, application_id
from traceweir.streams.tools.doctor.cluster import check_cluster
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.worker.kafka.topic_admin import check_topics, inspect_topics

pytestmark = pytest.mark.kafka

WITHIN_S = 90.0


def add_partitions(settings: Settings, topic: str, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": settings.kafka_bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, count)])[topic].result()
    deadline = time.monotonic() + WITHIN_S
    while len(admin.list_topics(timeout=60).topics[topic].partitions) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def send_to_all(settings: Settings, part: str, partitions: int) -> list[str]:
    """Sends sessions of one event, four to each partition; returns their ids."""
    topic = settings.topics.invocations
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers})
    names = [f"{part}-{number}" for number in range(4 * partitions)]
    for number, name in enumerate(names):
        event = {
            "type": "session.ended",
            "session_id": name,
            "occurred_at": utc_now().isoformat(),
            "expects": {"events": 1, "traces": 0},
        }
        producer.produce(topic, key=name, value=json.dumps(event), partition=number % partitions)
    assert producer.flush(30) == 0
    return names


def scored(settings: Settings, count: int) -> list[tuple[str, int, int]]:
    """Returns the result ids of all scores with their revisions and attempts, once as many sessions have scores."""
    consumer = Consumer(
        {
            "bootstrap.servers": settings.kafka_bootstrap_servers,
            "group.id": f"reader-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([settings.topics.results])
    found: list[dict[str, object]] = []
    deadline = time.monotonic() + WITHIN_S
    while len({each["session_id"] for each in found}) < count and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(json.loads(message.value() or b""))
    consumer.close()
    return [(str(each["result_id"]), int(str(each["revision"])), int(str(each["attempt"]))) for each in found]


def unread(settings: Settings, partitions: int) -> dict[int, int]:
    """Returns the unread offsets of the group by partition, once all are 0 or the time is over."""
    topic, group = settings.topics.invocations, application_id(settings.topic_prefix, STAGES)
    places = [TopicPartition(topic, number) for number in range(partitions)]
    consumer = Consumer({"bootstrap.servers": settings.kafka_bootstrap_servers, "group.id": group})
    deadline = time.monotonic() + WITHIN_S
    while True:
        ends = {place.partition: consumer.get_watermark_offsets(place)[1] for place in places}
        left = {place.partition: ends[place.partition] - max(0, place.offset) for place in consumer.committed(places)}
        if not any(left.values()) or time.monotonic() > deadline:
            consumer.close()
            return left
        time.sleep(0.2)


def topics_of(findings: Iterator[Finding]) -> Sequence[tuple[str, str]]:
    return [(found.state, found.text) for found in findings if found.check == "topics"]


def test_partitions_added_under_running_workers_are_read_also_after_a_restart(
    prefix: str, settings: Settings, fleet: Fleet
) -> None:
    topic = settings.topics.invocations
    workers = [fleet.start("a"), fleet.start("b")]
    before = send_to_all(settings, "before", settings.partitions)
    assert closed(settings.kafka_bootstrap_servers, prefix, before) == sorted(before)

    add_partitions(settings, topic, 7)
    running = send_to_all(settings, "running", 7)
    assert closed(settings.kafka_bootstrap_servers, prefix, running) == sorted(before + running)
    assert not any(worker.ended for worker in workers)

    for worker in workers:
        worker.terminate(30)
    add_partitions(settings, topic, 9)
    again = send_to_all(settings, "again", 9)
    workers = [fleet.start("a"), fleet.start("b")]
    everything = sorted(before + running + again)
    assert closed(settings.kafka_bootstrap_servers, prefix, again) == everything
    assert not any(unread(settings, 9).values())
    results = scored(settings, len(everything))
    assert len(results) == len(set(results))
    # A score that came twice would be there now: everything is read, and closed once.
    assert closed(settings.kafka_bootstrap_servers, prefix, again) == everything
    assert not any(worker.ended for worker in workers)


def test_partitions_added_while_a_static_member_restarts_are_read(
    prefix: str, settings: Settings, fleet: Fleet
) -> None:
    member = {"TRACEWEIR_GROUP_INSTANCE_ID": "a", "TRACEWEIR_SESSION_TIMEOUT_S": "20"}
    worker = fleet.start("a", variables=member)
    before = send_to_all(settings, "before", settings.partitions)
    assert closed(settings.kafka_bootstrap_servers, prefix, before) == sorted(before)

    worker.kill()
    add_partitions(settings, settings.topics.invocations, 6)
    after = send_to_all(settings, "after", 6)
    worker = fleet.start("a", variables=member)
    assert closed(settings.kafka_bootstrap_servers, prefix, after) == sorted(before + after), worker.log.read_text()
    assert not worker.ended


def test_an_input_with_more_partitions_is_in_order_and_named(settings: Settings) -> None:
    add_partitions(settings, settings.topics.traces, 6)
    add_partitions(settings, settings.topics.invocations, 8)
    assert check_topics(settings) == []
    traces, invocations = inspect_topics(settings).remarks
    assert "has 6 partitions, more than TRACEWEIR_PARTITIONS=4: workers read all of them; 6 is no multiple" in traces
    assert invocations.endswith("has 8 partitions, more than TRACEWEIR_PARTITIONS=4: workers read all of them")
    found = topics_of(check_cluster(settings, STAGES))
    assert ("ok", traces) in found
    assert not [text for state, text in found if state == "failure"]

    add_partitions(settings, settings.topics.sessions, 8)
    (problem,) = check_topics(settings)
    assert "has 8 partitions, expected 4" in problem
