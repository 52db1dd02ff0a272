"""A worker that is asked to stop takes a last checkpoint and leaves its group; if that hangs, it exits at once."""

from __future__ import annotations

import json
import signal
import time

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient
from tests.audit.committed import Committed
from tests.support.workers import Fleet, Worker

from traceweir.streams.base.topics import STAGES, application_id
from traceweir.streams.testing import event
from traceweir.streams.worker.faust_worker import EXIT_HARD

pytestmark = pytest.mark.kafka

DEADLINE_S = 60
INPUTS = ("traces", "invocations", "strays", "sessions", "candidates")


def test_a_worker_under_load_takes_a_last_checkpoint_and_leaves_its_group_after_sigterm(
    kafka: str, prefix: str, fleet: Fleet
) -> None:
    application = application_id(prefix, STAGES)
    worker = fleet.start("worker")
    worker.until_ready()
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 1})
    with Committed(kafka, prefix, application) as committed:
        number, deadline = 0, time.monotonic() + DEADLINE_S
        while len(committed.rows["sessions"]) < 20 or number % 400:  # Records are in flight at the end of the loop.
            number += 1
            name = f"session {number}"
            document = event("session.ended", name, number % 7)
            producer.produce(f"{prefix}invocations", json.dumps(document).encode(), name.encode(), number % 4)
            if number % 20 == 0:
                producer.flush(10)
                committed.read(0.01)
            assert time.monotonic() < deadline, worker.log.read_text()
        worker.terminate(DEADLINE_S)
        while committed.read(1.0):
            pass

    admin = AdminClient({"bootstrap.servers": kafka, "log_level": 0})
    group = admin.describe_consumer_groups([application])[application].result()
    assert list(group.members) == []
    answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(application)])[application].result()
    offsets = {(place.topic, place.partition): place.offset for place in answer.topic_partitions if place.offset >= 0}
    rows = {
        (topic, row.partition): offset
        for row in committed.rows["changelog"]
        if row.key == b"checkpoint/offsets"
        for topic, offset in row.document.items()
    }
    # Before the last checkpoint, offsets are committed to the group only once a second.
    assert rows
    assert offsets == rows


@pytest.mark.parametrize("again", [None, signal.SIGTERM, signal.SIGINT])
def test_a_worker_stops_during_a_rebalance_with_a_frozen_member(again: signal.Signals | None, fleet: Fleet) -> None:
    # The group waits longer for the frozen member than the worker is allowed to take for its end.
    patient = {"TRACEWEIR_SESSION_TIMEOUT_S": "40"}
    worker, frozen = fleet.start("a", variables=patient), fleet.start("b", variables=patient)
    until_shared(worker, frozen)
    frozen.freeze()
    fleet.start("c", variables=patient)
    deadline = time.monotonic() + DEADLINE_S
    while worker.ask("/readyz")[1]["phase"] != "joining":
        assert time.monotonic() < deadline
        time.sleep(0.02)

    worker.process.send_signal(again or signal.SIGTERM)
    worker.until_stopping()  # Two signals at once would be delivered as one.
    while again and "received another stop signal" not in worker.log.read_text():
        # uvloop drops a signal that arrives between the end of the main task and the start of the stop task.
        worker.process.send_signal(again)
        time.sleep(0.02)
        assert time.monotonic() < deadline, worker.log.read_text()

    assert worker.process.wait(30) in (0, EXIT_HARD)  # Without the bound the end would take the group's 40 s.
    log = worker.log.read_text()
    assert ("exits at once, which is as safe as a kill" in log) == (worker.process.returncode == EXIT_HARD)
    assert "Traceback" not in log


def until_shared(*workers: Worker) -> None:
    """Waits until each worker has partitions."""
    deadline = time.monotonic() + DEADLINE_S
    while not all(worker.until_ready()["partitions"] for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_worker_joins_its_group_although_the_first_answers_name_no_broker(fleet: Fleet) -> None:
    worker = fleet.start("worker", stuck="unlisted")
    assert worker.until_ready()["partitions"] == [0, 1, 2, 3]
    assert "Traceback" not in worker.log.read_text()
    worker.terminate(DEADLINE_S)
