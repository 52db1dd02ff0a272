"""Defines the rows of a session in the table: chunk rows with packed entries, and a guard after the close.

A chunk row is rewritten until it contains `CHUNK` bytes. Then the chunk is sealed and leaves memory, and the next chunk
starts. Therefore the cost of an event does not grow with the session, and every row fits a batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from traceweir.schemas.session import ClosingReason
from traceweir.streams.pipeline.assemble.closing_rules import Expectation

VERSION = 4
"""The format of chunk rows. Rows of another format are refused."""
GUARD_VERSION = 3
"""The format of guards. Guards of another format are refused."""
CHUNK = 2_048
GUARDED = 4_000
"""Maximum number of identities in a guard, unless one segment alone has more."""

_HEAD = struct.Struct(">BqqqiiiBII")
_ENTRY = struct.Struct(">c16sdI")
_IDENTITY = struct.Struct(">x16s8xI")
_REST = struct.Struct(">c16xdI")
_CHUNK_KEY = struct.Struct(">II")
_GUARD = struct.Struct(">BIqIIB")
_REASONS = tuple(ClosingReason)
_CODES = {reason: code for code, reason in enumerate(_REASONS)}
_NO_EXPECTATION = 0, 0
"""A session with an expectation expects at least one event."""
_MAX_EXPECTED = 2**32 - 1
"""A session has fewer records, so that it never meets a larger expectation, nor this one."""

EVENT = b"e"
TRACE = b"t"
REFUSED = b"r"
"""What the session knows of a record that became a dead letter."""
REPLAYED = b"b"
"""The place of a refused record that came back; `REFUSED` of that place no longer counts."""


Entry = tuple[bytes, float, bytes]
"""A joined record: its kind, its time in seconds since 1970, and its bytes."""


def entry_head(kind: bytes, identity: bytes, at: float, raw: bytes) -> bytes:
    """Returns the header of an entry in a chunk."""
    return _ENTRY.pack(kind, identity, at, len(raw))


def unpack(chunk: bytes) -> Iterator[Entry]:
    """Yields the entries of a chunk's body."""
    end = 0
    while end < len(chunk):
        kind, moment, length = _REST.unpack_from(chunk, end)
        begin = end + _REST.size
        end = begin + length
        yield kind, moment, chunk[begin:end]


def identities(chunk: bytes) -> Iterator[bytes]:
    """Yields the identities of a chunk's entries, 16 bytes each."""
    at = 0
    while at < len(chunk):
        identity, length = _IDENTITY.unpack_from(chunk, at)
        at += _IDENTITY.size + length
        yield identity


class ChunkHeader(NamedTuple):
    """State of the whole session, stored in its last chunk. Times are in milliseconds since 1970."""

    first_record: int
    last_record: int
    deadline: int
    joined: int
    size: int
    revision: int
    closes_because: ClosingReason
    """Why the session closes at its deadline."""
    expected: Expectation | None
    """The records with which the session is complete; None: nothing says."""

    def pack(self) -> bytes:
        """Returns the bytes of the header."""
        *numbers, reason, expected = self
        events, traces = expected or _NO_EXPECTATION
        return _HEAD.pack(VERSION, *numbers, _CODES[reason], min(events, _MAX_EXPECTED), min(traces, _MAX_EXPECTED))


def split(row: bytes) -> tuple[ChunkHeader, bytes]:
    """Returns header and body of a chunk row.

    Raises:
        ValueError: this version cannot read the format of the row, or does not know why the session closes.
    """
    if row[0] != VERSION:
        raise ValueError(f"session row of format {row[0]}; this version reads {VERSION}")
    _, first, last, deadline, count, size, revision, code, events, traces = _HEAD.unpack_from(row)
    expected = (events, traces) if events else None
    return ChunkHeader(first, last, deadline, count, size, revision, _reason(code), expected), row[_HEAD.size :]


def _reason(code: int) -> ClosingReason:
    if code >= len(_REASONS):
        raise ValueError(f"row with the closing reason number {code}; this version knows {len(_REASONS)} reasons")
    return _REASONS[code]


def chunk_key(session: bytes, segment: int, chunk: int) -> bytes:
    """Returns the key of a chunk row. Keys of one segment sort by chunk."""
    return b"c" + session + _CHUNK_KEY.pack(segment, chunk)


def split_chunk_key(key: bytes) -> tuple[bytes, int, int]:
    """Returns session id, segment and chunk number."""
    segment, chunk = _CHUNK_KEY.unpack(key[-_CHUNK_KEY.size :])
    return key[1 : -_CHUNK_KEY.size], segment, chunk


def is_among(identity: bytes, identities: bytes | bytearray) -> bool:
    """Returns whether `identities`, 16 bytes each, contain an identity.

    The bytes take a sixth of a set's memory. Up to some hundred identities, the search is as fast as in a set.
    """
    at = identities.find(identity)
    while at >= 0 and at % 16:
        at = identities.find(identity, at + 1)
    return at >= 0


class Guard(NamedTuple):
    """Holds the last segment and revision of a closed session, when and why it closed, and the joined identities.

    The guard contains all `own` identities of the last segment and the latest identities of earlier segments, `GUARDED`
    in total. Therefore even a session that lasts for days has a small guard.
    """

    segment: int
    revision: int
    closed_at: int
    own: int
    closed_because: ClosingReason
    identities: bytes

    def pack(self) -> bytes:
        """Returns the row of the guard."""
        head = _GUARD.pack(
            GUARD_VERSION, self.segment, self.closed_at, self.revision, self.own, _CODES[self.closed_because]
        )
        return head + self.identities

    @classmethod
    def of(
        cls,
        segment: int,
        revision: int,
        closed_at: int,
        closed_because: ClosingReason,
        identities: bytes,
        former: Guard | None,
    ) -> Guard:
        """Returns the guard of a segment that closes; `former` is the guard of the segments before it."""
        own = len(identities) // 16
        older = b""
        if former is not None and (room := 16 * GUARDED - len(identities)) > 0:
            others = former.identities
            if former.segment == segment:
                others = others[: len(others) - 16 * former.own]
            older = others[-room:]
        return cls(segment, revision, closed_at, own, closed_because, older + identities)

    @classmethod
    def unpack(cls, row: bytes) -> Guard:
        """Returns the guard from its row.

        Raises:
            ValueError: this version cannot read the format of the row, or does not know why the session closed.
        """
        if row[0] != GUARD_VERSION:
            raise ValueError(f"guard row of format {row[0]}; this version reads {GUARD_VERSION}")
        _, segment, closed_at, revision, own, code = _GUARD.unpack_from(row)
        return cls(segment, revision, closed_at, own, _reason(code), row[_GUARD.size :])

    @property
    def is_full(self) -> bool:
        """Whether identities of earlier segments can have been left out."""
        return len(self.identities) >= 16 * GUARDED

    @property
    def own_identities(self) -> bytes:
        """The identities of the last segment."""
        return self.identities[len(self.identities) - 16 * self.own :]

    def knows(self, identity: bytes) -> bool:
        """Returns whether the session joined a record with this identity."""
        return is_among(identity, self.identities)


def guard_key(session: bytes) -> bytes:
    """Returns the key of a session's guard."""
    return b"g" + session
