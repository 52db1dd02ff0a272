"""Tests that a worker compares its clock with those of the brokers, by the markers of its own transactions."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError
from tests.simulation.cluster.partition_log import PartitionLog

from traceweir.streams.worker.kafka.transaction_markers import Marker, markers
from traceweir.streams.worker.runtime.cluster_clock import (
    EVERY_S,
    MAX_APART_S,
    ClocksApartError,
    ClockWentBackError,
    ClusterClock,
    require_no_step_back,
)

NOT_LEADER = 6
"""The error code of Kafka for a broker that does not lead the partition any more."""
NOW_S = 1_800_000_000.0
PLACES = [TopicPartition("changelog", number) for number in range(2)]


class Brokers:
    """A client whose partitions have a leader each, with a clock of its own."""

    def __init__(self, ahead_s: Mapping[int, float]) -> None:
        self._ahead_s = ahead_s
        self.asked = 0
        self.failure: Exception | None = None
        self.error_code = 0
        self.missing = 0
        """How often the marker is not there yet."""
        self.cluster = SimpleNamespace(leader_for_partition=lambda place: place.partition)

    async def _wait_on_metadata(self, topic: str) -> None:
        return None

    async def send(self, leader: int, request: Any) -> Any:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        ((topic, ((number, offset, size),)),) = request.topics
        log = PartitionLog()
        while log.end <= offset and self.missing <= 0:
            log.mark(7, 0, commit=True, now_ms=int((NOW_S + self._ahead_s[leader]) * 1000))
        self.missing -= 1
        content = log.read(offset, size, committed=False)[1] if log.end else b""
        return SimpleNamespace(topics=[(topic, [(number, self.error_code, log.end, log.end, 0, [], content)])])


def test_only_markers_of_transactions_tell_the_time_of_a_broker() -> None:
    log = PartitionLog()
    log.mark(7, 0, commit=True, now_ms=1_000)
    log.mark(7, 0, commit=False, now_ms=2_000)
    _, content, _ = log.read(0, 10_000, committed=False)
    assert list(markers(content)) == [Marker(0, 1_000), Marker(1, 2_000)]
    assert list(markers(content[:100])) == [Marker(0, 1_000)]
    is_control = 22  # the second byte of the attributes of the first batch
    record = content[:is_control] + b"\x10" + content[is_control + 1 :]
    assert list(markers(record)) == [Marker(1, 2_000)]


def clock(*, ahead_s: float = 0.0, took_s: float = 0.0) -> tuple[ClusterClock, float]:
    """Returns the clock of a worker, and the time at which it requested its commit."""
    return ClusterClock(lambda: NOW_S + ahead_s + took_s, lambda: 0.0), NOW_S + ahead_s


@pytest.mark.parametrize(
    ("ahead_s", "took_s", "beyond_s"), [(0, 0, 0), (0, 30, 0), (40, 0, 40), (-40, 0, -40), (-40, 30, -10), (40, 30, 40)]
)
async def test_the_time_of_the_comparison_does_not_count_as_a_difference(
    ahead_s: float, took_s: float, beyond_s: float
) -> None:
    own, since = clock(ahead_s=ahead_s, took_s=took_s)
    await own.compare(Brokers({0: 0.0}), {PLACES[0]: 4}, since)
    assert own.ahead_s == beyond_s


@pytest.mark.parametrize("ahead_s", [MAX_APART_S + 1, -MAX_APART_S - 1])
async def test_a_clock_that_is_too_far_from_those_of_all_brokers_is_refused_with_both_times(ahead_s: float) -> None:
    own, since = clock(ahead_s=ahead_s)
    with pytest.raises(ClocksApartError) as raised:
        await own.compare(Brokers({0: 0.0, 1: 0.0}), dict.fromkeys(PLACES, 4), since)
    assert "61 s " + ("ahead of" if ahead_s > 0 else "behind") in str(raised.value)
    assert "2027-01-15T08:00:00Z" in str(raised.value)
    assert own.ahead_s == ahead_s


async def test_a_single_broker_with_a_wrong_clock_stops_no_worker() -> None:
    own, since = clock()
    await own.compare(Brokers({0: 3_600.0, 1: 1.0}), dict.fromkeys(PLACES, 4), since)
    assert own.ahead_s == -1.0


async def test_a_marker_that_is_not_written_yet_is_awaited() -> None:
    own, since = clock(ahead_s=5)
    brokers = Brokers({0: 0.0})
    brokers.missing = 2
    await own.compare(brokers, {PLACES[0]: 4}, since)
    assert (brokers.asked, own.ahead_s) == (3, 5)


@pytest.mark.parametrize(("failure", "error_code"), [(KafkaConnectionError("no answer"), 0), (None, NOT_LEADER)])
async def test_a_comparison_that_fails_says_so_and_stops_nothing(
    failure: Exception | None, error_code: int, caplog: pytest.LogCaptureFixture
) -> None:
    own, since = clock(ahead_s=3_600)
    brokers = Brokers({0: 0.0})
    brokers.failure, brokers.error_code = failure, error_code
    await own.compare(brokers, {PLACES[0]: 4}, since)
    assert (own.ahead_s, brokers.asked) == (None, 1)
    assert "the clock was not compared" in caplog.text


async def test_a_running_worker_compares_once_in_each_interval() -> None:
    elapsed = [0.0]
    own = ClusterClock(lambda: NOW_S, lambda: elapsed[0])
    brokers = Brokers({0: 0.0})
    for elapsed[0] in (0.0, EVERY_S - 1, EVERY_S, EVERY_S + 1):
        await own.compare_each_minute(brokers, {PLACES[0]: 4}, NOW_S)
    assert brokers.asked == 2


def test_a_watermark_far_ahead_of_the_time_shows_that_the_clock_has_gone_back() -> None:
    require_no_step_back({}, NOW_S)
    require_no_step_back({0: 0, 1: int((NOW_S + 120) * 1000)}, NOW_S)
    words = "partition 1 has reached 2027-01-15T10:00:00Z, which is 7200 s ahead of 2027-01-15T08:00:00Z"
    with pytest.raises(ClockWentBackError, match=words):
        require_no_step_back({0: 0, 1: int((NOW_S + 7_200) * 1000)}, NOW_S)
