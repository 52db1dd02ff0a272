"""How a novelty scope stands in the table: one row for its name and last use, one a vector, one a decided trace."""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

import numpy as np
import orjson

from traceweir.scorers.embedding import Vectors

SCOPE, VECTOR, DECISION = b"s", b"v", b"t"
_SLOT = struct.Struct(">I")
_VECTOR = struct.Struct(">QH")


def scope_digest(scope: str) -> bytes:
    """16 bytes that stand for a scope's name in row keys, whatever the name's length."""
    return hashlib.sha256(scope.encode()).digest()[:16]


def slot_key(kind: bytes, scope: bytes, slot: int) -> bytes:
    """The key of a vector's or a decision's row."""
    return kind + scope + _SLOT.pack(slot)


def split_slot_key(key: bytes) -> tuple[bytes, int]:
    """Scope digest and slot."""
    return key[1:17], _SLOT.unpack(key[17:])[0]


def pack_vector(sequence: int, trace_id: str, vector: Vectors) -> bytes:
    """A vector's row: its number, its trace, its float32 values."""
    name = trace_id.encode()
    return _VECTOR.pack(sequence, len(name)) + name + np.ascontiguousarray(vector, "<f4").tobytes()


def unpack_vector(row: bytes) -> tuple[int, str, Vectors]:
    """Number, trace and values of a vector's row."""
    sequence, length = _VECTOR.unpack_from(row)
    start = _VECTOR.size + length
    return sequence, row[_VECTOR.size : start].decode(), np.frombuffer(row, "<f4", offset=start)


class Decided(NamedTuple):
    """What the gate remembers of a trace: whose it is, what it said, at which number of its scope, and of what it said so."""

    trace_id: str
    session_id: str
    accepted: bool
    number: int
    segment: int = 0
    revision: int = 0

    def pack(self) -> bytes:
        """The decision's row."""
        return orjson.dumps(list(self))

    @classmethod
    def unpack(cls, row: bytes) -> Decided:
        """A decision from its row; those of the version before do not say of which segment and revision they are."""
        return cls(*orjson.loads(row))
