"""Topics that accept small batches only, from the start or suddenly: what does not fit is a dead letter, and work goes on."""

from __future__ import annotations

import json
import random
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from tests.audit.committed import Committed
from tests.support.short_sessions import closed, send
from tests.support.workers import Fleet, Worker

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.record_limits import SMALLEST_BATCH_BYTES
from traceweir.streams.base.topics import STAGES, application_id
from traceweir.streams.testing import event

pytestmark = pytest.mark.kafka

WITHIN_S = 120.0


def accept(settings: Settings, topic: str, batch_bytes: int = SMALLEST_BATCH_BYTES) -> None:
    """Lets a topic accept batches of at most this size."""
    change = ConfigEntry("max.message.bytes", str(batch_bytes), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    admin = AdminClient({"bootstrap.servers": settings.kafka_bootstrap_servers})
    admin.incremental_alter_configs([resource])[resource].result(30)


def send_session(settings: Settings, name: str, events: int, event_bytes: int, *, ends: bool = True) -> None:
    """Sends a session whose events compression makes smaller by a quarter at most."""
    rnd = random.Random(name)
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers})
    for number in range(events):
        kind = "session.ended" if ends and number == events - 1 else "model.called"
        ballast = b64encode(rnd.randbytes(event_bytes * 3 // 4)).decode()
        document = event(kind, name, event_id=f"{name}-{number}", ballast=ballast)
        producer.produce(settings.topics.invocations, key=name, value=json.dumps(document))
    assert producer.flush(30) == 0


def read_until(condition: Callable[[], bool], committed: Committed, worker: Worker) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert not worker.ended, worker.log.read_text()
        assert time.monotonic() < deadline, worker.log.read_text()
        committed.read(0.1)


def reasons(committed: Committed) -> Counter[str]:
    return Counter(dict(row.headers)["traceweir.reason"].decode() for row in committed.rows["dead-letters"])


def sessions(committed: Committed) -> set[str]:
    return {row.document["session_id"] for row in committed.rows["sessions"]}


def test_a_worker_fits_its_batches_and_dead_letters_to_topics_with_small_limits(
    kafka: str, prefix: str, settings: Settings, fleet: Fleet
) -> None:
    topics = settings.topics
    for topic in (topics.sessions, topics.results, topics.candidates, topics.strays, topics.dead_letters):
        accept(settings, topic)
    names = {f"s{number}" for number in range(60)}
    for name in sorted(names):
        send_session(settings, name, 1, 3_000)
    send_session(settings, "long", 30, 4_000)
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(topics.invocations, key="k", value=random.Random(1).randbytes(200_000))
    assert producer.flush(30) == 0
    worker = fleet.start("w")
    with Committed(kafka, prefix, application_id(prefix, STAGES)) as committed:
        read_until(
            lambda: names | {"long"} <= sessions(committed) and bool(committed.rows["dead-letters"]), committed, worker
        )

    assert reasons(committed) == {"too_large": 1}
    (letter,) = committed.rows["dead-letters"]
    assert dict(letter.headers)["traceweir.size"] == b"200000"
    assert "joins its group again" not in worker.log.read_text()
    worker.terminate(30)


def test_a_limit_that_is_lowered_under_a_running_worker_costs_the_records_that_do_not_fit_alone(
    kafka: str, prefix: str, settings: Settings, fleet: Fleet
) -> None:
    worker = fleet.start("w")
    send(kafka, prefix, ["before"])
    assert closed(kafka, prefix, ["before"]) == ["before"]

    accept(settings, settings.topics.sessions)
    send_session(settings, "large", 5, 30_000)
    names = {f"s{number}" for number in range(20)}
    send(kafka, prefix, names)
    with Committed(kafka, prefix, application_id(prefix, STAGES)) as committed:
        read_until(lambda: names <= sessions(committed) and len(committed.rows["dead-letters"]) >= 5, committed, worker)

    assert reasons(committed) == {"too_large": 5}
    log = worker.log.read_text()
    assert f"topic '{settings.topics.sessions}' refuses a batch of " in log
    assert "Traceback" not in log
    worker.terminate(30)


def test_a_worker_whose_changelog_accepts_too_little_ends_with_topic_and_option(
    kafka: str, prefix: str, settings: Settings, fleet: Fleet
) -> None:
    worker = fleet.start("w")
    send(kafka, prefix, ["before"])
    assert closed(kafka, prefix, ["before"]) == ["before"]
    changelog = f"{application_id(prefix, STAGES)}-state-changelog"

    accept(settings, changelog)
    send_session(settings, "large", 1, 120_000, ends=False)
    worker.process.wait(WITHIN_S)

    last = worker.log.read_text().splitlines()[-1]
    assert f"topic '{changelog}' has max.message.bytes={SMALLEST_BATCH_BYTES}" in last
    assert "--add-config max.message.bytes=1048588" in last
