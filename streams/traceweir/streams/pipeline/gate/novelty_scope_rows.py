"""Defines the rows of a novelty scope: one for its name and last use, one per vector, one per decided trace."""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

import orjson

from traceweir.scorers.embedding import Vectors

SCOPE = b"s"
VECTOR = b"v"
DECISION = b"t"
_SLOT = struct.Struct(">I")
_VECTOR = struct.Struct(">QH")


def scope_digest(scope: str) -> bytes:
    """Returns 16 bytes that represent the name of a scope in row keys."""
    return hashlib.sha256(scope.encode()).digest()[:16]


def slot_key(kind: bytes, scope: bytes, slot: int) -> bytes:
    """Returns the key of the row of a vector or a decision."""
    return kind + scope + _SLOT.pack(slot)


def split_slot_key(key: bytes) -> tuple[bytes, int]:
    """Returns scope digest and slot."""
    return key[1:17], _SLOT.unpack(key[17:])[0]


def pack_vector(sequence: int, trace_id: str, vector: Vectors) -> bytes:
    """Returns the row of a vector: its sequence number, its trace id, its float32 values."""
    name = trace_id.encode()
    return _VECTOR.pack(sequence, len(name)) + name + vector.astype("<f4", copy=False).tobytes()


def unpack_vector(row: bytes) -> tuple[int, str, Vectors]:
    """Returns sequence number, trace id and values of a vector's row."""
    # Here and in `novelty_scopes`, because a gate without an embedder has no vectors.
    import numpy as np

    sequence, length = _VECTOR.unpack_from(row)
    start = _VECTOR.size + length
    return sequence, row[_VECTOR.size : start].decode(), np.frombuffer(row, "<f4", offset=start)


Version = tuple[int, int, int]
"""Segment, revision and attempt of a trace; the highest version counts."""


class Decided(NamedTuple):
    """Holds the gate's decision on a trace, its number in the scope, and the session and version of the trace."""

    trace_id: str
    session_id: str
    accepted: bool
    number: int
    segment: int = 0
    revision: int = 0
    attempt: int = 0

    @property
    def version(self) -> Version:
        """The decided version of the trace."""
        return self.segment, self.revision, self.attempt

    def pack(self) -> bytes:
        """Returns the row of the decision; attempt 0 is omitted."""
        return orjson.dumps(list(self) if self.attempt else list(self)[:-1])

    @classmethod
    def unpack(cls, row: bytes) -> Decided:
        """Returns the decision in a row; older rows have no attempt, and the oldest rows no segment and revision."""
        return cls(*orjson.loads(row))
