"""Defines a document that is published from spans, and how large it can be."""

from __future__ import annotations

from typing import NamedTuple

from traceweir.streams.base.stages.base import MAX_OUTPUT_BYTES


class Rooms(NamedTuple):
    """Bytes that a record can have with its key."""

    event: int = MAX_OUTPUT_BYTES
    trace: int = MAX_OUTPUT_BYTES

    def of(self, document: CollectedDocument) -> int:
        """Returns the limit for a document."""
        return self.event if document.is_event else self.trace


LARGEST = Rooms()
"""What every record can have where its topic has no lower limit."""


class CollectedDocument(NamedTuple):
    """An event or a reasoning trace to publish."""

    is_event: bool
    session_id: str
    value: bytes

    def fits(self, rooms: Rooms) -> bool:
        """Returns whether the document with its key is small enough for a record."""
        return len(self.session_id.encode()) + len(self.value) <= rooms.of(self)
