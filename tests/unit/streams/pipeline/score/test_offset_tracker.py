"""Tests the row of the offset tracker, also in the format of earlier and later versions."""

from __future__ import annotations

from array import array

import pytest

from traceweir.streams.pipeline.score.offset_tracker import OffsetTracker


def test_a_row_of_single_offsets_from_an_earlier_version_is_read() -> None:
    progress = OffsetTracker()
    progress.load(array("q", [3, 5, 6]).tobytes())
    assert [offset for offset in range(2, 8) if progress.begin(offset)] == [2, 4, 7]


def test_a_row_of_a_newer_version_is_named() -> None:
    with pytest.raises(
        ValueError, match="a row of finished offsets has the format 3; this version reads the formats 1 and 2"
    ):
        OffsetTracker().load(b"\x03" + bytes(16))


def test_offsets_done_before_a_restart_stay_in_the_row_until_reading_has_passed_them() -> None:
    former = OffsetTracker()
    for offset in range(10):
        former.begin(offset)
    for offset in (2, 3, 8):
        former.end(offset)
    again = OffsetTracker()
    again.load(former.row())
    assert (again.mark, again.row()) == (None, former.row())
    again.begin(0)
    again.end(0)
    again.begin(1)
    again.begin(2)
    third = OffsetTracker()
    third.load(again.row())
    assert [offset for offset in range(1, 10) if third.begin(offset)] == [1, 4, 5, 6, 7, 9]
