"""Reads the fields that distinguish the records of a session, without the rest of the document.

Rows of the score stage about a segment have a key that names the segment; the key is built and read here too.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from traceweir.schemas.session import MOST_REVISIONS, MOST_SEGMENTS
from traceweir.streams.base.stages.base import Record


class SessionHeader(msgspec.Struct, frozen=True, gc=False):
    """The first fields of a session, as on its topic."""

    segment: Annotated[int, msgspec.Meta(ge=0, lt=MOST_SEGMENTS)]
    revision: Annotated[int, msgspec.Meta(ge=0, lt=MOST_REVISIONS)]
    first_record_at: str
    """Equal in all revisions of a segment, unless a late record is older than all other records.

    If a session id is reused after the guard has expired, the session starts at segment 0 again, with another time.
    """


_decode = msgspec.json.Decoder(SessionHeader).decode
_KIND_BYTES = 1
_SEGMENT_BYTES = 4


def read_header(value: bytes | None) -> SessionHeader | None:
    """Returns the header of a session; None for invalid bytes, for which scoring reports a better message.

    >>> read_header(b'{"segment": 0, "revision": 2, "first_record_at": "2026-01-01T00:00:00Z", "events": []}')
    SessionHeader(segment=0, revision=2, first_record_at='2026-01-01T00:00:00Z')
    >>> read_header(b'{"segment": -1}') is None
    True
    """
    try:
        return _decode(value or b"")
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def is_revision(record: Record | None, key: bytes, segment: int, revision: int) -> bool:
    """Returns whether a record is this revision of a session.

    A topic that was deleted and created again has other records at the same offsets.
    """
    header = read_header(record.value) if record is not None and record.key == key else None
    return header is not None and (header.segment, header.revision) == (segment, revision)


def row_key_of(kind: bytes, session: bytes, segment: int) -> bytes:
    """Returns the key of a row about a segment; `kind` is one byte, which tells the rows of a stage apart.

    >>> row_key_of(b"w", b"s", 1)
    b'ws\\x00\\x00\\x00\\x01'
    """
    return kind + session + segment.to_bytes(_SEGMENT_BYTES)


def session_of(row_key: bytes) -> bytes:
    """Returns the session in the key of a row about a segment."""
    return row_key[_KIND_BYTES:-_SEGMENT_BYTES]


def segment_of(row_key: bytes) -> int:
    """Returns the segment in the key of a row about a segment."""
    return int.from_bytes(row_key[-_SEGMENT_BYTES:])
