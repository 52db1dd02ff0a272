"""Reads the fields that distinguish the records of a session, without the rest of the document."""

from __future__ import annotations

from typing import Annotated

import msgspec

from traceweir.schemas.session import MOST_REVISIONS, MOST_SEGMENTS


class SessionHeader(msgspec.Struct, frozen=True, gc=False):
    """The first fields of a session, as on its topic."""

    segment: Annotated[int, msgspec.Meta(ge=0, lt=MOST_SEGMENTS)]
    revision: Annotated[int, msgspec.Meta(ge=0, lt=MOST_REVISIONS)]
    first_record_at: str
    """Equal in all revisions of a segment, unless a late record is older than all other records.

    If a session id is reused after the guard has expired, the session starts at segment 0 again, with another time.
    """


_decode = msgspec.json.Decoder(SessionHeader).decode


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
