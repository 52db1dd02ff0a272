"""Tests that a batch decompresses to at most a limit, in every codec and framing that Kafka's clients write."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import cramjam
import pytest
from aiokafka.codec import snappy_encode
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from tests.support.batches import with_codec

from traceweir.streams.worker.kafka.decompression import MAX_BATCH_BYTES

pytestmark = pytest.mark.usefixtures("limited_decompression")

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
VALUE = b'{"words": "%s"}' % (b"plan a flight " * 5_000)


def uncompressed(value: bytes) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
    builder.append(0, timestamp=1, key=None, value=value, headers=[])
    return bytes(builder.build())


def value_of(body: bytes, codec: int) -> bytes:
    (record,) = DefaultRecordBatch(with_codec(RAW, codec, body))
    value: bytes = record.value
    return value


RAW = uncompressed(VALUE)
BODY = RAW[61:]
_HALF = len(BODY) // 2
BODIES = {
    "gzip": (GZIP, gzip.compress(BODY)),
    "gzip of two members": (GZIP, gzip.compress(BODY[:_HALF]) + gzip.compress(BODY[_HALF:])),
    "gzip with padding": (GZIP, gzip.compress(BODY) + bytes(8)),
    "snappy of librdkafka": (SNAPPY, bytes(cramjam.snappy.compress_raw(BODY))),
    "snappy of Java": (SNAPPY, snappy_encode(BODY)),
    "lz4": (LZ4, bytes(cramjam.lz4.compress(BODY))),
    "zstd": (ZSTD, bytes(cramjam.zstd.compress(BODY))),
    "zstd of two frames": (
        ZSTD,
        bytes(cramjam.zstd.compress(BODY[:_HALF])) + bytes(cramjam.zstd.compress(BODY[_HALF:])),
    ),
}


@pytest.mark.parametrize(("codec", "body"), BODIES.values(), ids=BODIES)
def test_a_batch_is_decompressed(codec: int, body: bytes) -> None:
    assert value_of(body, codec) == VALUE


@pytest.mark.parametrize(("codec", "body"), BODIES.values(), ids=BODIES)
def test_a_batch_that_ends_too_early_is_an_error(codec: int, body: bytes) -> None:
    with pytest.raises(Exception, match=r".+"):
        value_of(body[: len(body) // 3], codec)


HUGE: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (GZIP, lambda huge: gzip.compress(huge, 1)),
    "gzip of two members": (GZIP, lambda huge: 2 * gzip.compress(huge[:-1], 1)),
    "snappy of librdkafka": (SNAPPY, lambda huge: bytes(cramjam.snappy.compress_raw(huge))),
    "snappy of Java": (SNAPPY, snappy_encode),
    "lz4": (LZ4, lambda huge: bytes(cramjam.lz4.compress(huge))),
    "zstd": (ZSTD, lambda huge: bytes(cramjam.zstd.compress(huge))),
}


@pytest.mark.slow
@pytest.mark.parametrize(("codec", "compress"), HUGE.values(), ids=HUGE)
def test_a_batch_that_would_become_too_large_is_not_decompressed(
    codec: int, compress: Callable[[bytes], bytes]
) -> None:
    body = compress(bytes(MAX_BATCH_BYTES + 1))
    with pytest.raises(ValueError, match="decompressed it would have more than 64 MiB"):
        value_of(body, codec)


def test_a_claimed_length_takes_no_memory() -> None:
    with pytest.raises(ValueError, match="decompressed it would have more than 64 MiB"):
        value_of(b"\xff\xff\xff\xff\x0f" + b"x" * 10, SNAPPY)
