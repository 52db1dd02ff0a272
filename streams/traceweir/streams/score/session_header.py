"""What tells one record of a session from another, read without the rest of it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from traceweir.schemas.session import MOST_REVISIONS, MOST_SEGMENTS


class Head(msgspec.Struct, frozen=True, gc=False):
    """The beginning of a session as it stands on its topic."""

    segment: Annotated[int, msgspec.Meta(ge=0, lt=MOST_SEGMENTS)]
    revision: Annotated[int, msgspec.Meta(ge=0, lt=MOST_REVISIONS)]
    first_record_at: str
    """Of all revisions of a segment the same, unless a record came late that is older than all others. A session whose id is used
    again after the guard begins at segment 0 again, and at another moment."""


_decode = msgspec.json.Decoder(Head).decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def head_of(value: bytes | None) -> Head | None:
    """The head of a session; None if it can be none, which scoring it will say better.

    >>> head_of(b'{"segment": 0, "revision": 2, "first_record_at": "2026-01-01T00:00:00Z", "events": []}')
    Head(segment=0, revision=2, first_record_at='2026-01-01T00:00:00Z')
    >>> head_of(b'{"segment": -1}') is None
    True
    """
    try:
        return _decode(value or b"")
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def raised(value: bytes, by: int) -> bytes:
    """A session that has a head, its revision raised. All else stays as it was written, to the digit.

    >>> raised(b'{"segment":0,"revision":1,"events":[1.50]}', 2)
    b'{"segment":0,"revision":3,"events":[1.50]}'
    """
    document = _members(value)
    document["revision"] = msgspec.Raw(b"%d" % (int(bytes(document["revision"])) + by))
    return msgspec.json.encode(document)
