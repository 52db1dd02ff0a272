"""How a session stands in the table: entries packed into chunk rows, and a guard once it is closed.

A chunk row is rewritten until it holds `CHUNK` bytes, then it is sealed and leaves memory; the next one begins. So the cost of an
event does not grow with the session, and a row always fits a batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

VERSION = 3
"""Since 3 the content of a closed session stays for the grace; of 2, all content is of open ones. The form is the same."""
GUARD_VERSION = 2
CHUNK = 2_048
GUARDED = 4_000
"""How many identities a guard holds, unless one segment alone has more."""

_HEAD = struct.Struct(">BqqqiiiB")
_ENTRY = struct.Struct(">c16sdI")
_IDENTITY = struct.Struct(">x16s8xI")
_REST = struct.Struct(">c16xdI")
_CHUNK_KEY = struct.Struct(">II")
_GUARD = struct.Struct(">BIqII")
_GUARD_1 = struct.Struct(">BIq")

EVENT, TRACE = b"e", b"t"


Entry = tuple[bytes, float, bytes]
"""A joined record: its kind, place in time (seconds since 1970) and bytes."""


def entry_head(kind: bytes, identity: bytes, at: float, raw: bytes) -> bytes:
    """What stands in a chunk before an entry's bytes."""
    return _ENTRY.pack(kind, identity, at, len(raw))


def unpack(chunk: bytes) -> Iterator[Entry]:
    """The entries of a chunk's body."""
    end = 0
    while end < len(chunk):
        kind, moment, length = _REST.unpack_from(chunk, end)
        begin = end + _REST.size
        end = begin + length
        yield kind, moment, chunk[begin:end]


def identities(chunk: bytes) -> Iterator[bytes]:
    """The identities of a chunk's entries, 16 bytes each."""
    at = 0
    while at < len(chunk):
        identity, length = _IDENTITY.unpack_from(chunk, at)
        at += _IDENTITY.size + length
        yield identity


class ChunkHeader(NamedTuple):
    """What the last chunk says of the whole session. Times in milliseconds since 1970."""

    first_record: int
    last_record: int
    deadline: int
    joined: int
    size: int
    revision: int
    ended: bool

    def pack(self) -> bytes:
        """The head as it stands before a chunk's body."""
        return _HEAD.pack(VERSION, *self)


def split(row: bytes) -> tuple[ChunkHeader, bytes]:
    """A chunk row's head and body.

    Raises:
        ValueError: the row was written by a version that this one does not read.
    """
    version, first, last, deadline, count, size, revision, ended = _HEAD.unpack_from(row)
    if version not in (VERSION, VERSION - 1):
        raise ValueError(f"session row of format {version}; this version reads {VERSION - 1} and {VERSION}")
    return ChunkHeader(first, last, deadline, count, size, revision, bool(ended)), row[_HEAD.size :]


def chunk_key(session: bytes, segment: int, chunk: int) -> bytes:
    """The key of a chunk row. Keys of one segment sort by chunk."""
    return b"c" + session + _CHUNK_KEY.pack(segment, chunk)


def split_chunk_key(key: bytes) -> tuple[bytes, int, int]:
    """Session id, segment and chunk number."""
    segment, chunk = _CHUNK_KEY.unpack(key[-_CHUNK_KEY.size :])
    return key[1 : -_CHUNK_KEY.size], segment, chunk


def is_among(identity: bytes, identities: bytes | bytearray) -> bool:
    """Whether one of the identities, 16 bytes each, is this one. A sixth of a set's memory, and as fast up to some hundred."""
    at = identities.find(identity)
    while at >= 0 and at % 16:
        at = identities.find(identity, at + 1)
    return at >= 0


class Guard(NamedTuple):
    """What stays of a closed session for a while: its last segment and revision, when it closed, and the identities it joined.

    Of the last segment, which has `own` of them, these are all, of the ones before it the latest, `GUARDED` in all: a session that goes
    on for days still has a small guard.
    """

    segment: int
    revision: int
    closed_at: int
    own: int
    identities: bytes

    def pack(self) -> bytes:
        """The guard's row."""
        return _GUARD.pack(GUARD_VERSION, self.segment, self.closed_at, self.revision, self.own) + self.identities

    @classmethod
    def of(cls, segment: int, revision: int, closed_at: int, identities: bytes, former: Guard | None) -> Guard:
        """The guard of a segment that closes, and of those before it."""
        own, older = len(identities) // 16, b""
        if former is not None and (room := 16 * GUARDED - len(identities)) > 0:
            others = former.identities
            if former.segment == segment:
                others = others[: len(others) - 16 * former.own]
            older = others[-room:]
        return cls(segment, revision, closed_at, own, older + identities)

    @classmethod
    def unpack(cls, row: bytes) -> Guard:
        """A guard from its row.

        Raises:
            ValueError: the row was written by a version that this one does not read.
        """
        if row[0] == GUARD_VERSION:
            _, segment, closed_at, revision, own = _GUARD.unpack_from(row)
            return cls(segment, revision, closed_at, own, row[_GUARD.size :])
        if row[0] == GUARD_VERSION - 1:
            _, segment, closed_at = _GUARD_1.unpack_from(row)
            return cls(segment, 0, closed_at, 0, row[_GUARD_1.size :])
        raise ValueError(f"guard row of format {row[0]}; this version reads {GUARD_VERSION - 1} and {GUARD_VERSION}")

    def knows(self, identity: bytes) -> bool:
        """Whether the session joined a record of this identity."""
        return is_among(identity, self.identities)


def guard_key(session: bytes) -> bytes:
    """The key of a session's guard."""
    return b"g" + session
