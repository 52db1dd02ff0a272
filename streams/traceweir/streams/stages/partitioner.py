"""Which partition a key belongs to: Kafka's own default partitioner, without a Kafka client."""

from __future__ import annotations

import struct
from functools import lru_cache

_SEED, _FACTOR, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Give the partition, from 0 to `partitions - 1`, on which Java's default partitioner puts `key`.

    An empty key has a partition like any other; only a missing key has none.

    >>> partition_of(b"session-1", 4)
    0
    """
    return murmur2(key) % partitions


# In pure Python a key of 36 bytes costs 6 microseconds, a hit 0.1. An entry takes 250 bytes: 16 MB when full.
@lru_cache(maxsize=65_536)
def murmur2(data: bytes) -> int:
    """Give the 32-bit MurmurHash2 of `data` with its sign bit cleared, from 0 to 2**31 - 1.

    Kafka's seed, and its way of making the hash positive (`Utils.toPositive`, not the absolute value).

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
