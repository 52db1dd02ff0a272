"""Defines the rows of a trace in the table: one header, rows of spans, and what was published.

A checkpoint appends a row with the spans that have arrived since the one before, and never rewrites such a row.
Therefore the cost of a span does not grow with its trace.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

VERSION = 3
TRACE_ID_BYTES = 16
IDENTITY_BYTES = 8
"""Size of the hash by which a repeated span is recognised within its trace."""
ROW_BYTES = 500_000
"""Size at which the spans of one checkpoint continue in another row. A larger span has a row of its own."""

_HEADER = struct.Struct(">BqqqIQIIIIqB")
_HEADER_1 = struct.Struct(">BqqqIQIIIB")
_HEADER_2 = struct.Struct(">BqqqIQIIIIB")
_ENTRY = struct.Struct(">c8sI")
_NUMBER = struct.Struct(">I")

SPAN = b"s"
LOG = b"l"

HEADER_KEY, SPANS_KEY, PUBLISHED_KEY = b"t", b"s", b"p"
"""The first byte of the three kinds of row keys; the trace id follows, and for spans the number of the row."""


class Entry(NamedTuple):
    """A span or a log record in a row."""

    kind: bytes
    identity: bytes
    data: bytes


class TraceHeader(NamedTuple):
    """State of a trace. Times are in milliseconds of record time."""

    last_record: int
    root_at: int
    """Timestamp of the record with the root span; 0 if no root span has come."""
    due: int
    """When the trace is published, or forgotten after it was published."""
    parts: int
    """Number of spans and log records in all rows."""
    size: int
    rows: int
    dropped: int
    """Number of spans and log records that exceeded a limit of the trace."""
    publications: int
    published_parts: int
    """Number of spans and log records that the last publication has read; 0 before the first, and if unknown."""
    published_at: int
    """Timestamp of the documents of the last publication; 0 before the first, and if unknown."""
    is_open: bool
    """Whether spans have come since the last publication."""

    def pack(self) -> bytes:
        """Returns the bytes of the header."""
        return _HEADER.pack(VERSION, *self)

    @classmethod
    def unpack(cls, row: bytes) -> TraceHeader:
        """Returns the header from its row.

        Raises:
            ValueError: this version does not read the format of the row.
        """
        if row[0] == VERSION:
            _, *fields, is_open = _HEADER.unpack(row)
        elif row[0] == 2:
            _, *fields, is_open = _HEADER_2.unpack(row)
            fields.append(0)
        elif row[0] == 1:
            _, *fields, is_open = _HEADER_1.unpack(row)
            fields += (0, 0)
        else:
            raise ValueError(f"trace row of format {row[0]}; this version reads 1 to {VERSION}")
        return cls._make((*fields, bool(is_open)))


def header_key(trace_id: bytes) -> bytes:
    """Returns the key of a trace's header."""
    return HEADER_KEY + trace_id


def published_key(trace_id: bytes) -> bytes:
    """Returns the key of the row with the session and the identities of what was published."""
    return PUBLISHED_KEY + trace_id


def spans_key(trace_id: bytes, number: int) -> bytes:
    """Returns the key of a row of spans. The keys of a trace sort by the number of the row."""
    return SPANS_KEY + trace_id + _NUMBER.pack(number)


def split_spans_key(key: bytes) -> tuple[bytes, int]:
    """Returns the trace id and the number of a row of spans."""
    (number,) = _NUMBER.unpack(key[1 + TRACE_ID_BYTES :])
    return key[1 : 1 + TRACE_ID_BYTES], number


def pack_rows(entries: Iterable[Entry]) -> Iterator[bytes]:
    """Yields rows with the entries, each of at most `ROW_BYTES` or with one entry."""
    parts: list[bytes] = []
    size = 0
    for kind, identity, data in entries:
        added = _ENTRY.size + len(data)
        if parts and size + added > ROW_BYTES:
            yield b"".join(parts)
            parts = []
            size = 0
        parts += (_ENTRY.pack(kind, identity, len(data)), data)
        size += added
    if parts:
        yield b"".join(parts)


def unpack_row(row: bytes) -> Iterator[Entry]:
    """Yields the entries of a row of spans."""
    end = 0
    while end < len(row):
        kind, identity, length = _ENTRY.unpack_from(row, end)
        begin = end + _ENTRY.size
        end = begin + length
        yield Entry(kind, identity, row[begin:end])
