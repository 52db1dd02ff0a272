"""Defines the state of a trace in memory: times, counts and identities. Spans leave memory when a row holds them."""

from __future__ import annotations

from collections.abc import Iterator

from traceweir.streams.base.stages.base import Read, Rows
from traceweir.streams.pipeline.collect.span_rows import (
    IDENTITY_BYTES,
    Entry,
    TraceHeader,
    header_key,
    pack_rows,
    published_key,
    spans_key,
    unpack_row,
)


class OpenTrace:
    """A trace of which spans have come: open until it is published, then remembered for late spans."""

    __slots__ = (
        "count",
        "dropped",
        "due",
        "id",
        "identities",
        "is_open",
        "last_record",
        "new",
        "planned",
        "publications",
        "published_at",
        "published_parts",
        "root_at",
        "rows",
        "size",
    )

    def __init__(self, trace_id: bytes) -> None:
        self.id = trace_id
        self.last_record = self.root_at = self.due = 0
        self.planned = 0
        """When the stage looks at the open trace again; 0: no check is planned."""
        self.count = self.size = self.rows = self.dropped = self.publications = self.published_parts = 0
        self.published_at = 0
        self.identities = bytearray()
        self.new: list[Entry] = []
        self.is_open = True

    def restore(self, header: TraceHeader) -> None:
        """Restores the header row. The identities are restored from the rows of spans."""
        (
            self.last_record,
            self.root_at,
            self.due,
            self.count,
            self.size,
            self.rows,
            self.dropped,
            self.publications,
            self.published_parts,
            self.published_at,
            self.is_open,
        ) = header

    def knows(self, identity: bytes) -> bool:
        """Returns whether the trace has a span with this identity."""
        at = self.identities.find(identity)
        while at >= 0 and at % IDENTITY_BYTES:
            at = self.identities.find(identity, at + 1)
        return at >= 0

    def add(self, entry: Entry) -> None:
        """Adds a span or a log record that the trace does not have yet."""
        self.new.append(entry)
        self.identities += entry.identity
        self.count += 1
        self.size += len(entry.data)

    def entries(self, read: Read) -> Iterator[Entry]:
        """Yields all spans and log records of the trace.

        Raises:
            RuntimeError: a row is missing from the table.
        """
        for number in range(self.rows):
            row = read(spans_key(self.id, number))
            if row is None:
                raise RuntimeError(
                    f"row {number} of trace {self.id.hex()} is missing from the table; the state is damaged"
                )
            yield from unpack_row(row)
        yield from self.new

    def changed_rows(self) -> Rows:
        """Returns the rows of the changes since the last call."""
        rows: Rows = []
        for row in pack_rows(self.new):
            rows.append((spans_key(self.id, self.rows), row))
            self.rows += 1
        self.new = []
        header = TraceHeader(
            self.last_record,
            self.root_at,
            self.due,
            self.count,
            self.size,
            self.rows,
            self.dropped,
            self.publications,
            self.published_parts,
            self.published_at,
            self.is_open,
        )
        return [*rows, (header_key(self.id), header.pack())]

    def deleted_rows(self) -> Rows:
        """Returns the deletions of all rows of the trace."""
        keys = [header_key(self.id), published_key(self.id), *(spans_key(self.id, n) for n in range(self.rows))]
        return [(key, None) for key in keys]
