"""A worker whose inputs were deleted and created again reads the new ones from their beginning, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.remade_topics import make_again
from tests.support.short_sessions import closed, send
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("count", [2, 9], ids=["the new log is shorter", "the new log is longer"])
def test_a_topic_that_was_made_again_while_no_worker_ran_is_read_from_its_beginning(
    count: int, kafka: str, prefix: str, settings: Settings, fleet: Fleet, tmp_path: Path
) -> None:
    before = [f"before-{number}" for number in range(6)]
    send(kafka, prefix, before)
    worker = fleet.start("w")
    assert closed(kafka, prefix, before) == before
    worker.terminate(30)

    make_again(settings, f"{prefix}invocations")
    after = [f"after-{number}" for number in range(count)]
    send(kafka, prefix, after)
    worker = fleet.start("w")
    assert closed(kafka, prefix, after) == sorted(before + after)
    assert "was deleted and created again" in worker.log.read_text()
    worker.terminate(30)

    more = ["more"]
    send(kafka, prefix, more)
    worker = fleet.start("w")
    assert closed(kafka, prefix, more) == sorted(before + after + more)
    assert "was deleted and created again" not in worker.log.read_bytes()[worker.since :].decode()


def test_a_topic_that_is_made_again_under_a_running_worker_is_read_from_its_beginning(
    kafka: str, prefix: str, settings: Settings, fleet: Fleet
) -> None:
    before = [f"before-{number}" for number in range(6)]
    send(kafka, prefix, before)
    worker = fleet.start("w")
    assert closed(kafka, prefix, before) == before

    make_again(settings, f"{prefix}invocations")
    after = [f"after-{number}" for number in range(9)]
    send(kafka, prefix, after)
    started = [worker]

    def supervise() -> None:
        # A rebalance between the deletion and the creation ends the worker, because it lacks an input.
        if started[-1].ended:
            started.append(fleet.start("w"))

    log = worker.log
    assert closed(kafka, prefix, after, meanwhile=supervise) == sorted(before + after), log.read_text()
    assert "was deleted and created again" in log.read_text()
    assert "Traceback" not in log.read_text()
