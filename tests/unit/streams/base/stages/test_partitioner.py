"""Tests that the partition of a key is the partition of Java's default partitioner."""

from __future__ import annotations

import pytest
from aiokafka.partitioner import murmur2 as unsigned_murmur2
from hypothesis import given
from hypothesis import strategies as st

from traceweir.streams.base.stages.partitioner import murmur2, partition_of

# Signed hashes from Kafka's own UtilsTest.
JAVA_HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "hashed"), JAVA_HASHES.items())
def test_the_hash_is_the_hash_of_java_with_the_sign_bit_cleared(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0x7FFFFFFF


@pytest.mark.parametrize("partitions", [1, 3, 4, 64])
def test_a_partition_is_the_hash_modulo_the_number_of_partitions(partitions: int) -> None:
    for key, hashed in JAVA_HASHES.items():
        assert partition_of(key, partitions) == (hashed & 0x7FFFFFFF) % partitions


@given(st.binary(max_size=70))
def test_the_hash_of_any_key_equals_the_hash_of_aiokafka(key: bytes) -> None:
    assert murmur2(key) == unsigned_murmur2(key) & 0x7FFFFFFF
