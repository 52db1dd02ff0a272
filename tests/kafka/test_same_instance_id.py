"""Of two workers with one `TRACEWEIR_GROUP_INSTANCE_ID`, exactly one stays; a successor takes the place of a dead one."""

from __future__ import annotations

import time

import pytest
from tests.support.workers import SESSION_TIMEOUT_S, START_WITHIN_S, Fleet, Worker

pytestmark = pytest.mark.kafka

VARIABLES = {"TRACEWEIR_GROUP_INSTANCE_ID": "worker-0"}
WORDS = "another worker with the same TRACEWEIR_GROUP_INSTANCE_ID ('worker-0')"
WAITS = "this worker waits up to"


LONG_S = 20.0
"""A session timeout, in seconds, within which another worker starts on a busy machine, too."""


def start(fleet: Fleet, name: str, session_timeout_s: float = SESSION_TIMEOUT_S) -> Worker:
    timeout = {"TRACEWEIR_SESSION_TIMEOUT_S": str(session_timeout_s)}
    return fleet.start(name, variables={**VARIABLES, **timeout})


def test_a_worker_whose_instance_id_a_living_worker_has_ends_and_the_living_one_stays(fleet: Fleet) -> None:
    first = start(fleet, "first")
    first.until_ready()
    second = start(fleet, "second")
    second.process.wait(START_WITHIN_S)
    assert second.process.returncode != 0
    assert WORDS in second.log.read_text()
    assert "Traceback" not in second.log.read_text()
    assert first.until_ready()["partitions"] == [0, 1, 2, 3]
    assert "joins its group again" not in first.log.read_text()


def test_of_two_workers_with_one_instance_id_that_start_together_exactly_one_stays(fleet: Fleet) -> None:
    workers = [start(fleet, "first"), start(fleet, "second")]
    deadline = time.monotonic() + START_WITHIN_S
    while not any(worker.ended for worker in workers):
        assert time.monotonic() < deadline, [worker.log.read_text() for worker in workers]
        time.sleep(0.1)
    (ended,) = [worker for worker in workers if worker.ended]
    (stays,) = [worker for worker in workers if worker is not ended]
    assert ended.process.returncode != 0
    assert WORDS in ended.log.read_text()
    assert "Traceback" not in ended.log.read_text()
    assert stays.until_ready()["partitions"] == [0, 1, 2, 3]
    again = start(fleet, ended.name)  # as its supervisor does
    again.process.wait(START_WITHIN_S)
    assert WORDS in again.log.read_text()[again.since :]
    assert not stays.ended


def test_a_killed_worker_takes_its_place_again_at_once_and_another_machine_when_kafka_has_expelled_it(
    fleet: Fleet,
) -> None:
    start(fleet, "first", LONG_S).until_ready()
    fleet.started[-1].kill()
    again = start(fleet, "first", LONG_S)
    again.until_ready()
    assert WAITS not in again.log.read_text()
    again.kill()
    other = start(fleet, "other", LONG_S)
    other.wait_for_log(WAITS)
    assert other.until_ready()["partitions"] == [0, 1, 2, 3]
