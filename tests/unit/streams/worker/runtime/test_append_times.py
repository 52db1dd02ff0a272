"""Tests what the ends that fetches report say about the records after them."""

from __future__ import annotations

from traceweir.streams.worker.runtime.append_times import AppendTimes


def test_a_record_was_appended_after_the_last_end_that_it_has_passed() -> None:
    times = AppendTimes()
    for second in range(10):
        times.note(100 * second, float(second))

    assert [times.next_after(position) for position in (0, 99, 100, 450, 5_000)] == [0.0, 0.0, 1.0, 4.0, 9.0]


def test_an_end_without_new_records_counts_with_its_latest_time() -> None:
    times = AppendTimes()
    for second in range(10):
        times.note(100, float(second))

    assert times.next_after(100) == 9.0


def test_the_answer_is_never_too_late_however_many_ends_were_reported() -> None:
    times = AppendTimes()
    for second in range(20_000):
        times.note(second, float(second))

    answers = [times.next_after(position) for position in range(0, 20_000, 100)]
    assert all(0 <= position - answer <= 64 for position, answer in zip(range(0, 20_000, 100), answers, strict=True))
