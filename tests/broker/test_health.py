"""What a worker on the embedded broker says of itself, and how it ends when something of it stands still."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.workers import Fleet

from tracegate.streams.embedded import EmbeddedBroker
from tracegate.streams.watchdog import EXIT_HELD

pytestmark = pytest.mark.broker

STOPS_WITHIN_S = 60


@pytest.fixture
def fleet(embedded_broker: EmbeddedBroker, tmp_path: Path) -> Iterator[Fleet]:
    config = tmp_path / "config.json"
    config.write_text("{}")
    with Fleet(embedded_broker.bootstrap_servers, "tracegate.", tmp_path, config) as fleet:
        yield fleet


def test_a_worker_is_alive_before_it_is_ready_and_owns_every_partition_when_it_is(fleet: Fleet) -> None:
    worker = fleet.start("worker")
    status, state = worker.ask("/readyz")
    assert (status, state["ready"], state["partitions"]) == (503, False, [])
    assert worker.ask("/healthz") == (200, {"healthy": True, "problems": []})
    assert worker.until_ready() == {"ready": True, "phase": "ready", "partitions": [0, 1, 2, 3]}
    assert worker.terminate(STOPS_WITHIN_S) == 0


def test_two_workers_share_the_partitions_and_both_are_ready(fleet: Fleet) -> None:
    fleet.start("a").until_ready()
    fleet.start("b").until_ready()
    owned = [worker.until_ready()["partitions"] for worker in fleet.started]
    while sorted(number for numbers in owned for number in numbers) != [
        0,
        1,
        2,
        3,
    ]:  # the first is ready until it hears of the second
        owned = [worker.until_ready()["partitions"] for worker in fleet.started]
    assert all(owned)


def test_a_second_worker_on_a_taken_port_says_so_and_ends_with_1(fleet: Fleet) -> None:
    first = fleet.start("a")
    url = first.says("health: ").partition("health: http://127.0.0.1:")[2].partition("/")[0]
    second = fleet.start("b", TRACEGATE_WEB_PORT=url)
    assert second.process.wait(STOPS_WITHIN_S) == 1
    log = second.log.read_text()
    assert f"the worker's web port {url} on 127.0.0.1 cannot be had (Address already in use)" in log
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("stuck", "sentence"),
    [
        ("fetch", "partition 1: fetching tracegate.traces has stood still for more than 2 s"),
        ("checkpoint", "partition 0: the next checkpoint has stood still"),
        (
            "catch-up",
            "catching up (partition 0, partition 1, partition 2, partition 3) has stood still for more than 2 s",
        ),
    ],
)
def test_what_stands_still_ends_the_worker_and_is_named(stuck: str, sentence: str, fleet: Fleet) -> None:
    worker = fleet.start("worker", stuck=stuck)
    assert worker.process.wait(STOPS_WITHIN_S) not in (0, None)
    log = worker.log.read_text()
    assert f"giving up, the process ends: {sentence}" in log
    assert "Traceback" not in log


def test_what_holds_the_event_loop_ends_the_worker_too(fleet: Fleet) -> None:
    worker = fleet.start("worker", stuck="loop")
    assert worker.process.wait(STOPS_WITHIN_S) == EXIT_HELD
    assert "something has held the event loop for more than 2 s" in worker.log.read_text()
