"""Rows of traces: a header of an earlier format is read, with what that format does not tell as unknown."""

from __future__ import annotations

import struct

import pytest

from traceweir.streams.pipeline.collect.span_rows import TraceHeader

HEADER = TraceHeader(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, True)


def test_a_header_is_read_as_it_was_written() -> None:
    assert TraceHeader.unpack(HEADER.pack()) == HEADER


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (struct.pack(">BqqqIQIIIB", 1, *HEADER[:8], 1), HEADER._replace(published_parts=0, published_at=0)),
        (struct.pack(">BqqqIQIIIIB", 2, *HEADER[:9], 1), HEADER._replace(published_at=0)),
    ],
)
def test_a_header_of_an_earlier_format_is_read(row: bytes, expected: TraceHeader) -> None:
    assert TraceHeader.unpack(row) == expected


def test_a_header_of_a_later_format_is_refused() -> None:
    with pytest.raises(ValueError, match="trace row of format 4; this version reads 1 to 3"):
        TraceHeader.unpack(bytes([4, *HEADER.pack()[1:]]))
