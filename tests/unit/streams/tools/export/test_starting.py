"""Where an exporter begins follows from the group's offset, and else from where it stood."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from traceweir.streams.tools.export.starting import Kept, KnownPartition, start_of

AT = datetime(2026, 1, 1, tzinfo=UTC)


def kept(offset: int, topic_id: str | None = "id") -> Kept:
    return Kept(offset, topic_id, AT)


@pytest.mark.parametrize(
    ("found", "offset"),
    [
        pytest.param(KnownPartition(2, 9, None, None, "id"), 2, id="new group"),
        pytest.param(KnownPartition(2, 9, 5, kept(4), "id"), 5, id="the group's offset counts"),
        pytest.param(KnownPartition(2, 9, None, kept(4), "id"), 4, id="expired"),
        pytest.param(KnownPartition(6, 9, None, kept(4), "id"), 6, id="expired, and records removed"),
        pytest.param(KnownPartition(2, 9, 5, kept(5), "other"), 2, id="another topic"),
        pytest.param(KnownPartition(0, 3, 5, None, "id"), 0, id="offset after the end"),
        pytest.param(KnownPartition(2, 9, 5, kept(5, None), "id"), 5, id="a broker without ids"),
    ],
)
def test_the_start_follows_from_what_is_known(found: KnownPartition, offset: int) -> None:
    assert start_of(found, only_new=False).offset == offset


def test_only_new_decides_about_a_new_group_alone() -> None:
    assert start_of(KnownPartition(2, 9, None, None, "id"), only_new=True).offset == 9
    assert start_of(KnownPartition(2, 9, None, kept(4), "id"), only_new=True).offset == 4


def test_removed_records_are_counted_and_named() -> None:
    start = start_of(KnownPartition(6, 9, None, kept(4), "id"), only_new=False)
    assert start.removed == 2
    assert "from offset 4 to 6 were removed by the topic's retention before they were sent" in start.why
    watched = start_of(KnownPartition(6, 9, None, kept(4), "id"), only_new=False, use="watched")
    assert watched.why.endswith("before they were watched")


def test_the_marker_of_the_last_transaction_is_no_removed_record() -> None:
    start = start_of(KnownPartition(6, 9, 5, None, "id"), only_new=False)
    assert (start.offset, start.removed, start.unusual) == (6, 0, False)
