"""The health pages of a worker on the embedded broker, and how the worker ends when one of its duties is stuck."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.stuck_worker import GO
from tests.support.workers import Fleet

from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.runtime.watchdog import EXIT_HELD

pytestmark = pytest.mark.broker

STOPS_WITHIN_S = 60
NUMBERS = [0, 1, 2, 3]


@pytest.fixture
def fleet(embedded_broker: EmbeddedBroker, tmp_path: Path) -> Iterator[Fleet]:
    config = tmp_path / "config.json"
    config.write_text("{}")
    with Fleet(embedded_broker.bootstrap_servers, "traceweir.", tmp_path, config) as fleet:
        yield fleet


def test_a_worker_is_healthy_before_it_is_ready_and_owns_every_partition_when_ready(fleet: Fleet) -> None:
    worker = fleet.start("worker")
    status, state = worker.ask("/readyz")
    assert (status, state["ready"], state["partitions"]) == (503, False, [])
    assert worker.ask("/healthz") == (200, {"healthy": True, "problems": []})
    assert worker.until_ready() == {"ready": True, "phase": "ready", "partitions": NUMBERS}
    worker.wait_for_log("waiting for records on traceweir.traces, traceweir.invocations, traceweir.strays, ")
    worker.terminate(STOPS_WITHIN_S)


def test_two_workers_share_the_partitions_and_both_are_ready(fleet: Fleet) -> None:
    fleet.start("a").until_ready()
    fleet.start("b").until_ready()
    until_shared(fleet)


def test_a_worker_rejoins_its_group_after_an_error_of_the_group(fleet: Fleet, tmp_path: Path) -> None:
    go = tmp_path / "go"
    first = fleet.start("a")
    first.until_ready()
    second = fleet.start("b", stuck="sync", variables={GO: str(go)})
    while len(first.until_ready()["partitions"]) == len(NUMBERS):
        time.sleep(0.02)
    go.touch()  # The embedded broker answers a follower whose SyncGroup follows the leader's with an error.
    second.wait_for_log(
        "the consumer group answered with an error, and the worker joins it again: KafkaError: InvalidRequestError()"
    )
    until_shared(fleet)
    assert "Traceback" not in second.log.read_text()


def test_workers_that_are_stopped_during_a_rebalance_end_in_order(fleet: Fleet) -> None:
    debug = {"PYTHONASYNCIODEBUG": "1"}  # an event loop then refuses a call from the thread of another event loop
    first = fleet.start("a", variables=debug)
    first.until_ready()
    second = fleet.start("b", variables=debug)
    while first.ask("/readyz")[0] == 200:
        assert not second.ended, second.log.read_text()
        time.sleep(0.02)
    first.process.terminate()
    second.terminate(STOPS_WITHIN_S)
    first.wait_for_end(STOPS_WITHIN_S)
    assert "Non-thread-safe" not in first.log.read_text() + second.log.read_text()


def until_shared(fleet: Fleet) -> None:
    """Waits until every partition has one owner; the first worker has all partitions until the second joins."""
    owned: list[list[int]] = []
    while sorted(number for numbers in owned for number in numbers) != NUMBERS or not all(owned):
        owned = [worker.until_ready()["partitions"] for worker in fleet.started]


def test_a_worker_on_a_taken_port_reports_the_port_and_exits_with_1(fleet: Fleet) -> None:
    first = fleet.start("a")
    url = first.wait_for_log("health: ").partition("health: http://127.0.0.1:")[2].partition("/")[0]
    second = fleet.start("b", variables={"TRACEWEIR_WEB_PORT": url})
    assert second.process.wait(STOPS_WITHIN_S) == 1
    log = second.log.read_text()
    assert f"the web port {url} on 127.0.0.1 cannot be bound (Address already in use)" in log
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("stuck", "sentence"),
    [
        ("fetch", "partition 1: fetching traceweir.traces has made no progress for more than 2 s"),
        (
            "catch-up",
            "catching up (partition 0, partition 1, partition 2, partition 3) has made no progress for more than 2 s",
        ),
    ],
)
def test_a_stuck_duty_ends_the_worker_and_is_named_in_the_log(stuck: str, sentence: str, fleet: Fleet) -> None:
    worker = fleet.start("worker", stuck=stuck)
    assert worker.process.wait(STOPS_WITHIN_S) not in (0, None)
    log = worker.log.read_text()
    assert f"the process ends after a failure: {sentence}" in log
    assert "Traceback" not in log


def test_a_worker_whose_search_for_its_group_failed_ends_at_once(fleet: Fleet) -> None:
    worker = fleet.start("worker", stuck="coordination")
    assert worker.process.wait(STOPS_WITHIN_S) == 1
    assert (
        "the process ends after a failure: the task of Kafka's client that coordinates the consumer group has ended "
        "(AssertionError: Did we not perform bootstrap?)"
    ) in worker.log.read_text()


def test_a_worker_joins_its_group_although_the_first_answers_name_no_broker(fleet: Fleet) -> None:
    worker = fleet.start("worker", stuck="unlisted")
    assert worker.until_ready()["partitions"] == NUMBERS
    assert "Traceback" not in worker.log.read_text()
    worker.terminate(STOPS_WITHIN_S)


def test_a_stuck_checkpoint_ends_the_worker_and_is_named_in_the_log(
    fleet: Fleet, embedded_broker: EmbeddedBroker
) -> None:
    worker = fleet.start("worker", stuck="checkpoint")
    worker.until_ready()
    producer = Producer({"bootstrap.servers": embedded_broker.bootstrap_servers, "log_level": 0})
    producer.produce(
        "traceweir.traces", b"no JSON", b"session", 0
    )  # It becomes a dead letter, which a checkpoint has to send.
    producer.flush(10)
    assert worker.process.wait(STOPS_WITHIN_S) not in (0, None)
    log = worker.log.read_text()
    assert (
        "the process ends after a failure: partition 0: the next checkpoint has made no progress for more than 2 s"
        in log
    )
    assert "Traceback" not in log


def test_a_blocked_event_loop_ends_the_worker(fleet: Fleet) -> None:
    worker = fleet.start("worker", stuck="loop")
    assert worker.process.wait(STOPS_WITHIN_S) == EXIT_HELD
    assert "the event loop was blocked for more than 2 s" in worker.log.read_text()


@pytest.mark.slow
def test_a_worker_whose_broker_has_ended_is_neither_healthy_nor_ready_before_it_ends(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    with EmbeddedBroker() as broker, Fleet(broker.bootstrap_servers, "traceweir.", tmp_path, config) as fleet:
        worker = fleet.start("worker")
        worker.until_ready()
        broker.__exit__(None, None, None)
        while worker.ask("/healthz")[0] == 200:
            time.sleep(0.02)
        status, state = worker.ask("/readyz")
        assert (status, state["ready"]) == (503, False)
        (problem,) = state["problems"]
        assert problem.startswith("no Kafka broker has answered for more than")
        assert not worker.ended
