"""Defines the rows of a session in the table: chunk rows with packed entries, and a guard after the close.

A chunk row is rewritten until it contains `CHUNK` bytes. Then the chunk is sealed and leaves memory, and the next chunk
starts. Therefore the cost of an event does not grow with the session, and every row fits a batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

VERSION = 3
"""Since version 3, rows of closed sessions are kept for the grace period; rows of version 2 belong to open sessions.

The row format of both versions is the same.
"""
GUARD_VERSION = 2
CHUNK = 2_048
GUARDED = 4_000
"""Maximum number of identities in a guard, unless one segment alone has more."""

_HEAD = struct.Struct(">BqqqiiiB")
_ENTRY = struct.Struct(">c16sdI")
_IDENTITY = struct.Struct(">x16s8xI")
_REST = struct.Struct(">c16xdI")
_CHUNK_KEY = struct.Struct(">II")
_GUARD = struct.Struct(">BIqII")
_GUARD_1 = struct.Struct(">BIq")

EVENT = b"e"
TRACE = b"t"


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
    ended: bool

    def pack(self) -> bytes:
        """Returns the bytes of the header."""
        return _HEAD.pack(VERSION, *self)


def split(row: bytes) -> tuple[ChunkHeader, bytes]:
    """Returns header and body of a chunk row.

    Raises:
        ValueError: this version cannot read the format of the row.
    """
    version, first, last, deadline, count, size, revision, ended = _HEAD.unpack_from(row)
    if version not in (VERSION, VERSION - 1):
        raise ValueError(f"session row of format {version}; this version reads {VERSION - 1} and {VERSION}")
    return ChunkHeader(first, last, deadline, count, size, revision, bool(ended)), row[_HEAD.size :]


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
    """Holds the last segment and revision of a closed session, the time of the close, and the joined identities.

    The guard contains all `own` identities of the last segment and the latest identities of earlier segments, `GUARDED`
    in total. Therefore even a session that lasts for days has a small guard.
    """

    segment: int
    revision: int
    closed_at: int
    own: int
    identities: bytes

    def pack(self) -> bytes:
        """Returns the row of the guard."""
        return _GUARD.pack(GUARD_VERSION, self.segment, self.closed_at, self.revision, self.own) + self.identities

    @classmethod
    def of(cls, segment: int, revision: int, closed_at: int, identities: bytes, former: Guard | None) -> Guard:
        """Returns the guard of a segment that closes; `former` is the guard of the segments before it."""
        own = len(identities) // 16
        older = b""
        if former is not None and (room := 16 * GUARDED - len(identities)) > 0:
            others = former.identities
            if former.segment == segment:
                others = others[: len(others) - 16 * former.own]
            older = others[-room:]
        return cls(segment, revision, closed_at, own, older + identities)

    @classmethod
    def unpack(cls, row: bytes) -> Guard:
        """Returns the guard from its row.

        Raises:
            ValueError: this version does not read the format of the row.
        """
        if row[0] == GUARD_VERSION:
            _, segment, closed_at, revision, own = _GUARD.unpack_from(row)
            return cls(segment, revision, closed_at, own, row[_GUARD.size :])
        if row[0] == GUARD_VERSION - 1:
            _, segment, closed_at = _GUARD_1.unpack_from(row)
            return cls(segment, 0, closed_at, 0, row[_GUARD_1.size :])
        raise ValueError(f"guard row of format {row[0]}; this version reads {GUARD_VERSION - 1} and {GUARD_VERSION}")

    @property
    def is_full(self) -> bool:
        """Whether identities of earlier segments can have been left out."""
        return len(self.identities) >= 16 * GUARDED

    def knows(self, identity: bytes) -> bool:
        """Returns whether the session joined a record with this identity."""
        return is_among(identity, self.identities)


def guard_key(session: bytes) -> bytes:
    """Returns the key of a session's guard."""
    return b"g" + session
