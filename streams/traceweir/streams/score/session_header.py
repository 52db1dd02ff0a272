"""What tells one record of a session from another, read without the rest of it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from traceweir.schemas.session import MOST_REVISIONS, MOST_SEGMENTS


class SessionHeader(msgspec.Struct, frozen=True, gc=False):
    """The beginning of a session as it stands on its topic."""

    segment: Annotated[int, msgspec.Meta(ge=0, lt=MOST_SEGMENTS)]
    revision: Annotated[int, msgspec.Meta(ge=0, lt=MOST_REVISIONS)]
    first_record_at: str
    """Of all revisions of a segment the same, unless a record came late that is older than all others. A session whose id is used
    again after the guard begins at segment 0 again, and at another moment."""


_decode = msgspec.json.Decoder(SessionHeader).decode


def read_header(value: bytes | None) -> SessionHeader | None:
    """The head of a session; None if it can be none, which scoring it will say better.

    >>> read_header(b'{"segment": 0, "revision": 2, "first_record_at": "2026-01-01T00:00:00Z", "events": []}')
    SessionHeader(segment=0, revision=2, first_record_at='2026-01-01T00:00:00Z')
    >>> read_header(b'{"segment": -1}') is None
    True
    """
    try:
        return _decode(value or b"")
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
