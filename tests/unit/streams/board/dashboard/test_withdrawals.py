"""A store reads a compacted topic again if withdrawals can have left the topic before the store has read them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from aiokafka import TopicPartition
from tests.support.scoring import NOW

from traceweir.streams.board.dashboard.withdrawals import Withdrawals
from traceweir.streams.board.store.rows import Batch, SourcePartition

KEPT = timedelta(hours=24)
PLACE, OTHER = TopicPartition("network", 0), TopicPartition("results", 0)
STORED = {SourcePartition("network", 0): 5, SourcePartition("results", 0): 9}
BEGINS = {PLACE: 0, OTHER: 0}


def withdrawals(current_at: datetime | None = NOW) -> Withdrawals:
    return Withdrawals("network", current_at, KEPT.total_seconds())


@pytest.mark.parametrize("age", [timedelta(), timedelta(hours=21), -timedelta(seconds=30)])
def test_a_store_that_had_everything_a_short_time_ago_reads_on(age: timedelta) -> None:
    assert withdrawals().lost(STORED, BEGINS, NOW + age) is None


@pytest.mark.parametrize("age", [timedelta(hours=22), timedelta(days=30), -timedelta(hours=1)])
def test_a_store_that_was_away_for_longer_than_withdrawals_are_kept_does_not_read_on(age: timedelta) -> None:
    reason = withdrawals().lost(STORED, BEGINS, NOW + age)

    hours = age.total_seconds() / 3600
    assert reason == (
        f"the store had everything {hours:.1f} h ago, and the topic keeps withdrawals for 24 h (delete.retention.ms)"
    )


def test_offsets_of_an_earlier_version_without_a_time_are_not_used() -> None:
    assert withdrawals(None).lost(STORED, BEGINS, NOW) == "it is unknown since when the store lacks withdrawals"


def test_offsets_before_the_first_record_of_the_topic_are_not_used() -> None:
    assert withdrawals().lost(STORED, {PLACE: 6, OTHER: 0}, NOW) == (
        "the records before offset 6 of partition 0 were removed"
    )


def test_removed_records_and_missing_offsets_of_other_topics_do_not_matter() -> None:
    assert withdrawals(None).lost({SourcePartition("results", 0): 9}, {PLACE: 3, OTHER: 20}, NOW) is None


def test_the_time_is_that_of_the_question_for_the_ends_and_counts_once_they_are_reached() -> None:
    found = withdrawals(NOW - timedelta(hours=20))
    found.await_ends({PLACE: 7, OTHER: 50}, NOW)
    found.await_ends({PLACE: 9, OTHER: 50}, NOW + timedelta(hours=1))  # the first ones are not reached yet

    assert found.reached({PLACE: 6, OTHER: 0}) is None
    assert found.reached({PLACE: 7, OTHER: 0}) == Batch(current_at={"network": NOW})
    assert found.reached({PLACE: 8, OTHER: 0}) is None
    assert found.outlived(NOW + timedelta(hours=21)) is None
    assert found.outlived(NOW + timedelta(hours=22)) is not None


def test_a_topic_that_is_read_from_its_beginning_lacks_nothing_of_that_moment() -> None:
    found = withdrawals(None)
    found.begin(NOW)

    assert found.outlived(NOW + timedelta(hours=21)) is None


@pytest.mark.parametrize(("kept_s", "expected"), [(0.0, False), (9.0, False), (60.0, True), (float("inf"), True)])
def test_a_running_feed_looks_only_where_it_can_look_often_enough(kept_s: float, expected: bool) -> None:
    assert Withdrawals("network", NOW, kept_s).are_kept_for_long is expected
