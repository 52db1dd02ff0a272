"""Tests that exactly the unfinished offsets are processed again after a crash."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from traceweir.streams.pipeline.score.offset_tracker import OffsetTracker


@given(st.data())
def test_exactly_the_unfinished_offsets_are_started_again_after_a_crash(data: st.DataObject) -> None:
    log = sorted(data.draw(st.sets(st.integers(0, 60), min_size=1)))  # transaction markers have the offsets in between
    row, mark, done = b"", log[0], set[int]()
    for _ in range(data.draw(st.integers(1, 4))):
        progress = OffsetTracker()
        progress.load(row)
        read = [offset for offset in log if offset >= mark]
        read = read[: data.draw(st.integers(0, len(read)))]
        begun = [offset for offset in read if progress.begin(offset)]
        assert begun == [offset for offset in read if offset not in done]
        ended = data.draw(st.lists(st.sampled_from(begun), unique=True)) if begun else []
        for offset in ended:
            progress.end(offset)
        done |= set(ended)
        assert len(progress) == len(begun) - len(ended)
        if progress.mark is not None:
            mark = progress.mark
        row = progress.row()
        assert all(offset in done for offset in log if offset < mark)
        if read:
            assert mark == min((offset for offset in read if offset not in done), default=read[-1] + 1)


@given(st.sets(st.integers(1, 10_000), max_size=200))
def test_the_size_of_the_row_depends_on_unfinished_offsets_only(hanging: set[int]) -> None:
    progress = OffsetTracker()
    for offset in range(20_000):
        progress.begin(offset)
        if offset not in hanging:
            progress.end(offset)
    assert len(progress.row()) <= 1 + 16 * len(hanging)
