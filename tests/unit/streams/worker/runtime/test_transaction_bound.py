"""Tests how many bytes a transaction can have, and what is said about one that takes too long."""

from __future__ import annotations

import logging

import pytest
from aiokafka.errors import KafkaError, ProducerFenced

from traceweir.streams.worker.runtime.failure import in_words
from traceweir.streams.worker.runtime.transaction_bound import (
    FIRST_BYTES,
    LEAST_BYTES,
    MOST_BYTES,
    MOST_PER_BYTE,
    TransactionBound,
)

TIMEOUT_S, GOAL_S = 60.0, 15.0


def after(*transactions: tuple[int, float]) -> int:
    """Returns the bound after transactions of some bytes and seconds."""
    bound = TransactionBound(TIMEOUT_S)
    for sent, seconds in transactions:
        bound.note(sent, sent, seconds=seconds)
    return bound.bytes


@pytest.mark.parametrize("bytes_per_s", [20_000, 140_000, 300_000, 1_000_000, 3_000_000])
def test_transactions_of_the_largest_size_come_to_take_a_quarter_of_the_timeout(bytes_per_s: int) -> None:
    bound = TransactionBound(TIMEOUT_S)
    for _ in range(100):
        sent = bound.bytes
        bound.note(sent, sent, seconds=sent / bytes_per_s)
    assert bound.bytes == pytest.approx(max(LEAST_BYTES, bytes_per_s * GOAL_S), rel=0.01)


@pytest.mark.parametrize("timeout_s", [10.0, 60.0, 600.0])
def test_the_first_transaction_takes_at_most_a_quarter_of_the_timeout_at_a_megabyte_a_second(timeout_s: float) -> None:
    assert TransactionBound(timeout_s).bytes / 1_000_000 <= timeout_s / 4


def test_the_first_bytes_of_a_quota_do_not_raise_the_bound() -> None:
    assert after(*[(FIRST_BYTES, 0.05)] * 10) == FIRST_BYTES


def test_small_transactions_do_not_change_the_bound() -> None:
    assert after(*[(10_000, 0.1)] * 1_000) == FIRST_BYTES


@pytest.mark.parametrize(("seconds", "bound"), [(3.0, FIRST_BYTES), (5.0, 3_000_000), (15.0, LEAST_BYTES)])
def test_a_small_transaction_that_takes_long_lowers_the_bound(seconds: float, bound: int) -> None:
    assert after((1_000_000, seconds)) == bound


def test_a_fast_cluster_gets_no_larger_transactions_than_the_highest_bound() -> None:
    bound = TransactionBound(TIMEOUT_S)
    for _ in range(1_000):
        bound.note(bound.bytes, bound.bytes, seconds=1.0)
    assert bound.bytes == MOST_BYTES


@pytest.mark.parametrize(
    ("sent", "taken", "per_byte"), [(300, 100, 3.0), (10, 100, 1.0), (300, 0, 1.0), (9, 1, MOST_PER_BYTE)]
)
def test_the_stages_take_as_many_bytes_as_will_fit_the_transaction(sent: int, taken: int, per_byte: float) -> None:
    bound = TransactionBound(TIMEOUT_S)
    bound.note(sent, taken, seconds=0.1)
    assert bound.pending_bytes == int(FIRST_BYTES / per_byte)


def test_a_transaction_that_took_half_of_the_timeout_is_logged_with_its_size_and_the_limit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        assert after((310_000_000, 29.0), (310_000_000, 44.0)) < FIRST_BYTES * 100
    assert caplog.messages == [
        "a transaction took 44 s for 310.0 MB; the limit is 60 s (TRACEWEIR_TRANSACTION_TIMEOUT_S)"
    ]


def test_a_transaction_that_kafka_has_aborted_after_its_timeout_is_reported_with_its_size_and_the_limit() -> None:
    error = ProducerFenced("fenced")
    found = TransactionBound(20.0).reason(error, 310_000_000, seconds=44.2)
    words = in_words(found)
    assert words is not None
    assert words.startswith(
        "Kafka has aborted a transaction that took 44 s for 310.0 MB; the limit is 20 s (TRACEWEIR_TRANSACTION_TIMEOUT_S). "
    )
    assert found.__cause__ is error


@pytest.mark.parametrize(("error", "seconds"), [(ProducerFenced("fenced"), 19.9), (KafkaError("other"), 44.0)])
def test_another_failure_of_a_transaction_stays_as_it_is(error: KafkaError, seconds: float) -> None:
    assert TransactionBound(20.0).reason(error, 5, seconds=seconds) is error


def test_after_a_transaction_that_kafka_has_aborted_for_its_time_the_next_one_is_small() -> None:
    bound = TransactionBound(timeout_s=20)
    before = bound.bytes
    bound.note_end(4_000_000, seconds=3.0)
    assert bound.bytes == before
    bound.note_end(8_000_000, seconds=20.0)
    assert (before, bound.bytes) == (5_000_000, 1_250_000)
