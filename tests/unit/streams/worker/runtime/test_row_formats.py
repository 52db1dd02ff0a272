"""Tests which formats of rows a version reads, and in which one it writes."""

from __future__ import annotations

import pytest
from tests.support.next_format import NEXT_FORMATS

from traceweir.streams.testing import MemoryTable
from traceweir.streams.worker.runtime.checkpoint_rows import OFFSETS
from traceweir.streams.worker.runtime.lane import Lane
from traceweir.streams.worker.runtime.row_formats import FORMAT, FORMAT_ROW, OLDEST, ROW_FORMATS
from traceweir.streams.worker.runtime.state_directory import StateDirectoryError


def test_rows_of_a_newer_format_are_rejected_when_their_partition_is_assigned() -> None:
    table = MemoryTable()
    table.write(3, [(FORMAT_ROW, b"%d" % (FORMAT + 1))])
    with pytest.raises(
        StateDirectoryError,
        match=rf"the state of partition 3, in changelog, was written by a newer .*\(format {FORMAT + 1};",
    ):
        Lane(3, [], table, {}, 100.0)


@pytest.mark.parametrize("rows", [[(FORMAT_ROW, b"3"), (OFFSETS, b"{}")], [(OFFSETS, b"{}")]], ids=["3", "1"])
def test_rows_of_an_earlier_format_are_rejected_when_their_partition_is_assigned(
    rows: list[tuple[bytes, bytes]], request: pytest.FixtureRequest
) -> None:
    table = MemoryTable()
    table.write(3, rows)
    found = request.node.callspec.id
    with pytest.raises(
        StateDirectoryError,
        match=rf"the state of partition 3, in changelog, was written by an older Traceweir \(format {found}; this version "
        rf"reads from {OLDEST} on\): run that version, or start with new topics",
    ):
        Lane(3, [], table, {}, 100.0)


@pytest.mark.parametrize(
    ("row", "agreed", "written"),
    [
        (None, FORMAT, FORMAT),
        (None, FORMAT + 1, FORMAT + 1),
        (b"%d" % FORMAT, FORMAT, FORMAT),
        (b"%d" % FORMAT, FORMAT + 1, FORMAT + 1),
        # Of a generation with another process in the place of this static member.
        (b"%d" % FORMAT, FORMAT + 2, FORMAT + 1),
        (b"%d" % (FORMAT + 1), FORMAT, FORMAT + 1),
        # This version cannot write the format before.
        (b"%d" % FORMAT, FORMAT - 1, FORMAT),
    ],
)
def test_a_partition_gets_the_newest_format_that_all_read_and_never_goes_back(
    row: bytes | None, agreed: int, written: int
) -> None:
    assert NEXT_FORMATS._replace(agreed=agreed).to_write(row, 0, "log", is_new=row is None) == written


def test_this_version_can_write_the_format_before_its_own_unless_it_cannot_read_it() -> None:
    assert FORMAT == OLDEST or FORMAT in ROW_FORMATS.older
