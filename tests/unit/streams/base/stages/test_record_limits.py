"""Tests what fits a topic, and what a dead letter keeps that does not."""

from __future__ import annotations

import hashlib

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from traceweir.schemas.dead_letter import DeadLetter, Headers
from traceweir.streams.base.stages.base import MAX_BATCH_BYTES, MAX_OUTPUT_BYTES, Output
from traceweir.streams.base.stages.record_limits import SMALLEST_BATCH_BYTES, RecordLimits, record_bytes

LETTERS = "dead-letters"
ABOUT = DeadLetter("invalid", "it is wrong", "assemble", "traces", 3, 17, None, None)


@pytest.mark.slow
@given(
    st.none() | st.binary(max_size=300),
    st.none() | st.binary(max_size=300),
    st.lists(st.tuples(st.text(max_size=20), st.binary(max_size=50)), max_size=5),
)
def test_no_batch_of_one_record_is_larger_than_its_bound(
    key: bytes | None, value: bytes | None, headers: Headers
) -> None:
    batch = DefaultRecordBatchBuilder(2, 0, 1, -1, -1, -1, 10_000)
    batch.append(0, 2**41, key, value, headers)
    assert batch.size() <= record_bytes(key, value, headers)


def test_a_topic_without_a_limit_takes_the_largest_output() -> None:
    limits = RecordLimits()
    limits.learn({"results": 1_048_588})
    for topic in ("results", "unknown"):
        assert (limits.room(topic), limits.batch_bytes(topic)) == (MAX_OUTPUT_BYTES, MAX_BATCH_BYTES)


def test_a_limit_counts_until_the_next_is_learnt() -> None:
    limits = RecordLimits()
    limits.learn({"results": 70_000})
    assert limits.problem("results", b"k", b"x" * 69_800) is None
    assert limits.problem("results", b"k", b"x" * 70_000) == (
        "an output of 70001 bytes does not fit the topic results, whose max.message.bytes or segment.bytes is 70000; a "
        "record can have 69900 with its key"
    )
    limits.learn({})
    assert limits.problem("results", b"k", b"x" * 70_000) is None


@pytest.mark.parametrize("key_bytes", [10, 60_000])
@pytest.mark.parametrize("value_bytes", [100, 70_000, 900_000])
def test_a_dead_letter_keeps_what_fits_and_says_what_is_missing(key_bytes: int, value_bytes: int) -> None:
    limits = RecordLimits(LETTERS)
    limits.learn({LETTERS: SMALLEST_BATCH_BYTES})
    value = b"x" * value_bytes
    written = limits.fitted(Output(LETTERS, 3, b"k" * key_bytes, value, [("id", b"7" * 10), *ABOUT.wire_headers()]))

    assert record_bytes(written.key, written.value, written.headers) <= SMALLEST_BATCH_BYTES
    letter = DeadLetter.read(written.key, written.value, written.headers)
    assert (letter.reason, letter.detail, letter.offset) == ("invalid", "it is wrong", 17)
    assert value.startswith(letter.value or b"")
    if len(letter.value or b"") < value_bytes:
        assert (letter.size, letter.sha256) == (value_bytes, hashlib.sha256(value).hexdigest())
    else:
        assert letter.size is None
    whole = letter.key == b"k" * key_bytes and list(letter.headers) == [("id", b"7" * 10)]
    assert whole or (letter.key is None and letter.left_out is not None and letter.left_out >= key_bytes)


def test_a_dead_letter_that_was_truncated_before_keeps_the_size_of_the_whole_value() -> None:
    whole = b"x" * 500_000
    letter = DeadLetter("invalid", "no", "assemble", "traces", 3, 17, b"k", whole)
    limits = RecordLimits(LETTERS)
    limits.learn({LETTERS: SMALLEST_BATCH_BYTES})
    written = limits.fitted(Output(LETTERS, 3, b"k", letter.wire_value(), letter.wire_headers()))
    read = DeadLetter.read(written.key, written.value, written.headers)
    assert (read.size, read.sha256) == (500_000, hashlib.sha256(whole).hexdigest())


def test_other_outputs_and_dead_letters_that_fit_are_unchanged() -> None:
    limits = RecordLimits(LETTERS)
    limits.learn({LETTERS: SMALLEST_BATCH_BYTES, "results": SMALLEST_BATCH_BYTES})
    for output in (
        Output("results", 0, b"k", b"x" * 100_000),
        Output(LETTERS, 0, b"k", b"x" * 60_000),
        Output(LETTERS, 0, None, None, [("traceweir.replayed", b"2:17")]),
    ):
        assert limits.fitted(output) is output
