"""Tests which formats of rows a version reads, and in which one it writes."""

from __future__ import annotations

import pytest
from tests.support.next_format import NEXT_FORMATS

from traceweir.streams.testing import MemoryTable
from traceweir.streams.worker.kafka.row_format_assignor import UNTOLD
from traceweir.streams.worker.runtime.lane import Lane
from traceweir.streams.worker.runtime.row_formats import FORMAT, FORMAT_ROW, ROW_FORMATS
from traceweir.streams.worker.runtime.state_directory import StateDirectoryError


def test_rows_of_a_newer_format_are_rejected_when_their_partition_is_assigned() -> None:
    table = MemoryTable()
    table.write(3, [(FORMAT_ROW, b"%d" % (FORMAT + 1))])
    with pytest.raises(
        StateDirectoryError,
        match=rf"the state of partition 3, in changelog, was written by a newer .*\(format {FORMAT + 1};",
    ):
        Lane(3, [], table, {}, 100.0)


def test_a_format_older_than_the_oldest_readable_format_is_rejected() -> None:
    with pytest.raises(StateDirectoryError, match=r"partition 0, in log, was written by an older Traceweir \(format 0"):
        ROW_FORMATS.to_write(b"0", 0, "log")


@pytest.mark.parametrize(
    ("row", "agreed", "written"),
    [
        (None, 3, 3),
        (b"1", 3, 3),
        (b"3", 3, 3),
        (b"3", 4, 4),
        (b"3", 5, 4),  # of a generation with another process in the place of this static member
        (b"4", 3, 4),
        (b"3", 2, 3),  # this version cannot write the format before
    ],
)
def test_a_partition_gets_the_newest_format_that_all_read_and_never_goes_back(
    row: bytes | None, agreed: int, written: int
) -> None:
    assert NEXT_FORMATS._replace(agreed=agreed).to_write(row, 0, "log") == written


def test_this_version_can_write_the_format_before_its_own_unless_its_own_is_that_of_members_that_tell_none() -> None:
    assert FORMAT == UNTOLD or FORMAT in ROW_FORMATS.older
