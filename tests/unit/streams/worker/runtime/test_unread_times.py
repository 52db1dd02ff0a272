"""The age of the oldest unread record is never less than the one by which Kafka deletes it."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from traceweir.streams.testing import Message
from traceweir.streams.worker.runtime.unread_times import UnreadTimes

TIMESTAMPS = st.lists(st.integers(0, 100), min_size=2, max_size=30)


def message(offset: int, timestamp: int) -> Message:
    return Message("t", 0, offset, timestamp, None, None)


def deletable_since(timestamps: list[int], segments: list[int], offset: int) -> int:
    """Returns the latest timestamp of all segments up to the one with this offset: Kafka keeps it for the retention.

    Args:
        timestamps: The timestamps of the log by offset.
        segments: Sizes of the segments; the last one has the rest.
        offset: The record that must not be deleted.
    """
    ends = [*accumulate(segments), len(timestamps)]
    return max(timestamps[: next(end for end in ends if end > offset)])


@given(TIMESTAMPS, st.lists(st.integers(1, 10), max_size=10), st.lists(st.integers(1, 5), max_size=30), st.data())
def test_the_oldest_record_is_not_deleted_before_its_time_plus_the_retention(
    timestamps: list[int], segments: list[int], batches: list[int], data: st.DataObject
) -> None:
    times, read = UnreadTimes(), 0
    for size in batches:
        records = [message(read + place, at) for place, at in enumerate(timestamps[read : read + size])]
        if not records:
            break
        times.note_read(records)
        read += len(records)
    cut = data.draw(st.integers(0, read))
    times.note_cut(cut)

    since = times.since(is_behind=read < len(timestamps))
    if cut < len(timestamps) and read:
        assert since is not None
        assert since <= deletable_since(timestamps, segments, cut)
    else:
        assert since is None


def test_a_new_record_after_a_long_silence_has_its_own_age() -> None:
    times = UnreadTimes()
    times.note_read([message(0, 1_000)])
    times.note_cut(1)
    assert times.since(is_behind=False) is None
    times.note_read([message(1, 900_000)])
    assert times.since(is_behind=False) == 900_000


def test_a_record_that_waits_keeps_its_age_while_others_are_read() -> None:
    times = UnreadTimes()
    times.note_read([message(0, 1_000)])
    times.note_read([message(1, 5_000)])
    times.note_cut(0)
    assert times.since(is_behind=True) == 1_000
