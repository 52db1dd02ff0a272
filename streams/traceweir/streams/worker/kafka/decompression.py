"""Limits what a batch can become when aiokafka decompresses it: 32 kB of zstd can be 1 GB.

Brokers limit the size of a batch only as it arrives. Without a limit here, such a batch would end every worker that reads it.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka.record.default_records as parser
import cramjam
import numpy as np
from aiokafka.codec import _detect_xerial_stream, snappy_decode

MAX_BATCH_BYTES = 64 << 20
"""Maximum size of a decompressed batch. A producer fills a batch up to its `batch.size`, at most some MB."""
_GZIP = 16 + zlib.MAX_WBITS
_XERIAL_HEADER_BYTES = 16


_Data = bytes | memoryview


class TooLargeError(ValueError):
    """A batch would be larger than `MAX_BATCH_BYTES`."""

    def __init__(self) -> None:
        super().__init__(f"decompressed it would have more than {MAX_BATCH_BYTES >> 20} MiB")


class _Count:
    total = 0


def decompressed_bytes() -> int:
    """Returns how many bytes this process has decompressed since `limit_decompression`."""
    return _Count.total


def limit_decompression() -> None:
    """Makes all consumers of this process refuse larger batches of Kafka's format 2, with a `TooLargeError`."""
    # In Python, and in C.
    for module in (parser, sys.modules[parser.DefaultRecordBatch.__module__]):
        for codec, decode in _DECODERS.items():
            setattr(module, f"{codec}_decode", _counted(decode))


def _counted(decode: Callable[[_Data], bytes]) -> Callable[[_Data], bytes]:
    def decode_and_count(data: _Data) -> bytes:
        found = decode(data)
        _Count.total += len(found)
        return found

    return decode_and_count


def _gzip(data: _Data) -> bytes:
    left = bytes(data)
    parts = list[bytes]()
    size = 0
    # The data can have several members.
    while left:
        member = zlib.decompressobj(_GZIP)
        parts.append(member.decompress(left, MAX_BATCH_BYTES + 1 - size))
        size += len(parts[-1])
        if size > MAX_BATCH_BYTES:
            raise TooLargeError
        if not member.eof:
            raise EOFError("the data ends before the end of the stream")
        # Padding, which gzip allows.
        left = member.unused_data.lstrip(b"\0")
    return b"".join(parts)


def _snappy(data: _Data) -> bytes:
    # The length is in the data, and cramjam takes as much memory before it looks at the rest.
    if sum(cramjam.snappy.decompress_raw_len(block) for block in _snappy_blocks(bytes(data))) > MAX_BATCH_BYTES:
        raise TooLargeError
    return snappy_decode(data)  # type: ignore[no-any-return]  # untyped


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    if not _detect_xerial_stream(data):
        yield data
        return
    at = _XERIAL_HEADER_BYTES
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        if size <= 0:
            raise ValueError(f"a block of snappy has a length of {size}")
        yield data[at + 4 : at + 4 + size]
        at += 4 + size


def _into_room(decompress_into: Callable[[_Data, Any], int]) -> Callable[[_Data], bytes]:
    def decode(data: _Data) -> bytes:
        # NumPy leaves the memory unwritten, so that only the part in use costs anything.
        room = np.empty(MAX_BATCH_BYTES, np.uint8)
        try:
            size = decompress_into(data, room)
        except cramjam.DecompressionError as error:
            if "failed to write whole buffer" in str(error):
                raise TooLargeError from None
            raise
        return room[:size].tobytes()

    return decode


_DECODERS: dict[str, Callable[[_Data], bytes]] = {
    "gzip": _gzip,
    "snappy": _snappy,
    "lz4": _into_room(cramjam.lz4.decompress_into),
    "zstd": _into_room(cramjam.zstd.decompress_into),
}
