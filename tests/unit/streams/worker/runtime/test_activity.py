"""Tests what a worker logs about its work, with a handed-in clock."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.unit.streams.worker.runtime.test_lane import Listing

from traceweir.streams.worker.runtime.activity import LINE_EVERY_S, Activity
from traceweir.streams.worker.runtime.counted_stages import CountedStages

TOPICS = ["traceweir.traces", "traceweir.sessions"]
WAITING = "waiting for records on traceweir.traces, traceweir.sessions, partitions 0, 1"


class Worker:
    """A worker whose partitions, unread records and clock the test sets."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO", "traceweir")
        self._caplog = caplog
        self.partitions: list[int] | None = [0, 1]
        self.lag = dict.fromkeys(TOPICS, 0)
        self.activity = Activity(TOPICS, lambda: self.partitions, lambda: self.lag)
        self._now = 1_000.0

    def lines_in(self, seconds: float) -> list[str]:
        """Returns what the worker logs in the next seconds, in which it looks once a second."""
        self._caplog.clear()
        until = self._now + seconds
        while self._now < until:
            self.activity.look(self._now)
            self._now += 1.0
        return list(self._caplog.messages)


@pytest.fixture
def worker(caplog: pytest.LogCaptureFixture) -> Worker:
    return Worker(caplog)


def test_an_idle_worker_says_once_what_it_waits_for(worker: Worker) -> None:
    assert worker.lines_in(1) == [WAITING]
    assert worker.lines_in(3_600) == []


def test_a_worker_waits_for_records_only_when_it_is_ready(worker: Worker) -> None:
    worker.partitions = None
    assert worker.lines_in(30) == []
    worker.partitions = [0, 1]
    assert worker.lines_in(1) == [WAITING]


def test_a_worker_without_a_partition_says_so_and_names_its_partitions_when_it_gets_some(worker: Worker) -> None:
    worker.partitions = []
    assert worker.lines_in(60) == ["waiting for a partition: other workers of the group own all of them"]
    worker.partitions = [0, 1]
    assert worker.lines_in(60) == [WAITING]


def test_a_line_a_minute_has_the_counts_since_the_last_line_and_the_unread_records(worker: Worker) -> None:
    worker.lines_in(1)
    worker.activity.committed({"assemble.consumed": 3, "assemble.dead_lettered.invalid": 1}, [])
    assert worker.lines_in(LINE_EVERY_S - 1) == []
    worker.activity.committed({"assemble.consumed": 4, "gate.accepted": 2}, [])
    worker.lag["traceweir.sessions"] = 7
    (line,) = worker.lines_in(1)
    assert line == (
        "in the last 60 s: assemble.consumed=7 assemble.dead_lettered.invalid=1 gate.accepted=2 "
        "lag.traceweir.traces=0 lag.traceweir.sessions=7"
    )
    worker.activity.committed({"gate.accepted": 1}, [])
    assert worker.lines_in(LINE_EVERY_S) == [
        "in the last 60 s: gate.accepted=1 lag.traceweir.traces=0 lag.traceweir.sessions=7"
    ]


def test_unread_records_alone_are_reported_every_minute(worker: Worker) -> None:
    worker.lag["traceweir.traces"] = 5
    assert (
        worker.lines_in(3 * LINE_EVERY_S + 1)
        == ["in the last 60 s: lag.traceweir.traces=5 lag.traceweir.sessions=0"] * 3
    )


def test_after_a_minute_without_work_the_worker_says_once_that_it_waits(worker: Worker) -> None:
    worker.lines_in(1)
    worker.activity.committed({"gate.accepted": 1}, [])
    assert len(worker.lines_in(LINE_EVERY_S + 1)) == 1
    assert worker.lines_in(LINE_EVERY_S - 1) == []
    assert worker.lines_in(3_600) == [WAITING]


def test_the_totals_are_those_of_the_whole_life_of_the_worker(worker: Worker) -> None:
    for _ in range(3):
        worker.activity.committed({"score.scored": 2}, [])
        worker.lines_in(2 * LINE_EVERY_S)
    assert worker.activity.totals == {"score.scored": 6}


class Counting(Listing):
    def __init__(self) -> None:
        super().__init__()
        self.counters = Counter({"consumed": 10, "closed": 2})


def test_only_changes_since_the_last_call_count() -> None:
    counting = Counting()
    counted = CountedStages()
    counted.add("assemble", counting)
    counted.add("without counters", Listing())
    assert counted.changes() == {}
    counted.note_read("traces", 2)
    counted.note_read("traces", 3)
    counting.counters.update({"consumed": 5, "opened": 1})
    counting.counters["closed"] -= 1  # a session was opened again before its close was committed
    assert dict(counted.changes()) == {
        "assemble.consumed": 5,
        "assemble.opened": 1,
        "assemble.closed": -1,
        "read.traces": 5,
    }
    assert counted.changes() == {}
