"""A worker's state directory can outlive the broker of its rows; old rows must not affect work on a new broker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.audit.committed import Committed
from tests.support.workers import Fleet, Worker

from traceweir.streams.testing import event, trace
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.runtime.changelog_restore import misfit
from traceweir.streams.worker.runtime.row_formats import FORMAT

DEADLINE_S = 60


@pytest.fixture
def run_workers(tmp_path: Path) -> Callable[..., str]:
    """Returns a function that runs workers one after the other on a new broker, and returns the last worker's log.

    Each argument is the name of a worker and the number of new sessions that it scores.
    """
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"criteria": {"response_match_score": 0.5}}))

    def run(*arguments: tuple[str, int]) -> str:
        with (
            EmbeddedBroker() as broker,
            Fleet(broker.bootstrap_servers, "traceweir.", tmp_path, config) as fleet,
            Committed(broker.bootstrap_servers, "traceweir.", "traceweir.assemble-score-gate") as committed,
        ):
            for run_number, (name, count) in enumerate(arguments):
                worker = fleet.start(name)
                sessions = {f"session {run_number}.{number}" for number in range(count)}
                send(broker.bootstrap_servers, sessions)
                until_decided(sessions, committed, worker)
                worker.terminate(DEADLINE_S)
        return worker.log.read_text()

    return run


def send(servers: str, sessions: set[str]) -> None:
    producer = Producer({"bootstrap.servers": servers, "log_level": 0, "partitioner": "murmur2_random"})
    for name in sorted(sessions):
        for topic, document in (("traces", trace(name, name)), ("invocations", event("session.ended", name, 1))):
            producer.produce(f"traceweir.{topic}", json.dumps(document).encode(), name.encode())
    producer.flush(10)


def until_decided(sessions: set[str], committed: Committed, worker: Worker) -> None:
    """Reads until each session is closed, valued and decided."""
    wanted = {(name, metric) for name in sessions for metric in ("trace_value", "gate")}
    deadline = time.monotonic() + DEADLINE_S
    while True:
        closed = {session["session_id"] for session in committed.sessions()}
        found = {(row.document["session_id"], row.document["metric"]) for row in committed.rows["results"]}
        if sessions <= closed and wanted <= found:
            return
        if worker.ended or time.monotonic() > deadline:
            log = worker.log.read_text()
            pytest.fail(f"not closed: {sessions - closed}; not decided: {wanted - found}; the worker says\n{log}")
        committed.read(0.1)


@pytest.mark.broker
def test_a_worker_keeps_its_rows_on_the_same_broker_and_deletes_them_on_a_new_broker(
    run_workers: Callable[..., str],
) -> None:
    assert "local rows" not in run_workers(("worker", 20), ("worker", 5))
    log = run_workers(("worker", 5))
    assert all(f"partition {number}: deleted" in log for number in range(4))
    assert "the broker or the topic was created again" in log


@pytest.mark.broker
def test_a_worker_does_not_mix_its_rows_with_rows_of_another_worker_on_a_new_broker(
    run_workers: Callable[..., str],
) -> None:
    run_workers(("worker", 20))
    log = run_workers(("other", 5), ("worker", 5))
    assert "the broker or the topic was created again" in log


DAY_S = 86_400.0


@pytest.mark.parametrize(("reached", "end"), [(-1, 0), (-1, 7), (3, 7), (6, 7)])
def test_rows_up_to_an_offset_of_the_same_changelog_are_kept(reached: int, end: int) -> None:
    assert misfit("c/1", reached, "c/1", end, 3600.0, DAY_S) is None


@pytest.mark.parametrize(
    ("source", "reached", "end", "reason"),
    [
        (None, 3, 7, "is unknown"),
        ("c/0", 3, 7, "created again"),
        ("c/0", -1, 0, "created again"),
        ("c/1", 7, 7, "lost records"),
        ("c/1", 3, 0, "lost records"),
    ],
)
def test_rows_of_another_or_a_shorter_changelog_are_not_kept(
    source: str | None, reached: int, end: int, reason: str
) -> None:
    assert reason in (misfit(source, reached, "c/1", end, 3600.0, DAY_S) or "")


@pytest.mark.parametrize(
    ("age_s", "kept"),
    [(0.0, True), (-30.0, True), (0.89 * DAY_S, True), (0.91 * DAY_S, False), (-90.0, False), (None, False)],
)
def test_rows_are_kept_while_the_changelog_keeps_all_deletions_since_they_were_complete(
    age_s: float | None, kept: bool
) -> None:
    assert (misfit("c/1", 3, "c/1", 7, age_s, DAY_S) is None) == kept


@pytest.mark.broker
def test_a_second_worker_on_the_same_directory_is_refused_and_the_first_continues(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    with EmbeddedBroker() as broker, Fleet(broker.bootstrap_servers, "traceweir.", tmp_path, config) as fleet:
        first = fleet.start("a")
        first.wait_for_log("health: ")
        second = fleet.start("b", state_dir=first.state_dir)
        assert second.process.wait(DEADLINE_S) == 1
        log = second.log.read_text()
        assert f"{first.state_dir / 'traceweir.assemble-score-gate'} is in use by another worker: set a separate" in log
        assert "Traceback" not in log
        first.until_ready()
        first.kill()
        assert fleet.start("b", state_dir=first.state_dir).until_ready()["ready"]


@pytest.mark.broker
def test_a_changelog_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    with EmbeddedBroker() as broker, Fleet(broker.bootstrap_servers, "traceweir.", tmp_path, config) as fleet:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        producer.produce("traceweir.assemble-score-gate-state-changelog", b"99", b"checkpoint/format", 2)
        producer.flush(10)
        worker = fleet.start("worker")
        assert worker.process.wait(DEADLINE_S) not in (0, None)
        log = worker.log.read_text()
        assert "the process ends after a failure: the state of partition 2" in log
        assert f"was written by a newer Traceweir (format 99; this version reads up to {FORMAT})" in log
        assert "Traceback" not in log
