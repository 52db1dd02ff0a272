"""Defines what is remembered of the publications of a trace: its session, and hashes of the ids of its documents."""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import NamedTuple

from traceweir.streams.pipeline.collect.span_rows import IDENTITY_BYTES

_LENGTH = struct.Struct(">H")


class Published(NamedTuple):
    """What earlier publications of a trace have written."""

    session_id: str = ""
    """The session of all its documents; empty if there is none, or if there are several."""
    identities: frozenset[bytes] = frozenset()
    """Hashes of the ids of the documents, of the ids that they have kept, and of the spans that became dead letters."""

    def pack(self) -> bytes:
        """Returns the row."""
        session = self.session_id.encode()
        return _LENGTH.pack(len(session)) + session + b"".join(sorted(self.identities))

    def has(self, name: str, kind: bytes = b"e") -> bool:
        """Returns whether an event with this id was published; of the kind `t`, a reasoning trace.

        The kind `k` stands for the texts of `LateTraces.kept`.
        """
        return identity_of(kind + name.encode()) in self.identities

    @property
    def has_moved(self) -> bool:
        """Whether the documents were withdrawn from the session of the trace's own id, and published in another one."""
        return MOVED in self.identities

    @classmethod
    def unpack(cls, row: bytes | None) -> Published:
        """Returns what a row says; nothing if there is no row."""
        if row is None:
            return cls()
        (length,) = _LENGTH.unpack_from(row)
        begin = _LENGTH.size + length
        identities = (row[at : at + IDENTITY_BYTES] for at in range(begin, len(row), IDENTITY_BYTES))
        return cls(row[_LENGTH.size : begin].decode(), frozenset(identities))


def identity_of(data: bytes) -> bytes:
    """Returns the hash by which a span or a document is recognised within its trace."""
    return blake2b(data, digest_size=IDENTITY_BYTES).digest()


MOVED = identity_of(b"m")
"""The identity that a move to another session leaves."""
