"""Builds record batches with header names that no client writes."""

from __future__ import annotations

import struct
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.record.util import calc_crc32c


def rename_header(batch: Any, name: bytes, other: bytes) -> None:
    """Replaces a header name in a whole aiokafka batch by other bytes of the same length, UTF-8 or not."""
    raw = bytearray(batch._build().replace(name, other))  # noqa: SLF001  # aiokafka accepts names as text only
    struct.pack_into(">I", raw, 17, calc_crc32c(bytes(raw[21:])))
    batch._buffer = raw  # noqa: SLF001


def with_checksum(raw: bytearray) -> bytes:
    """Returns a batch of format 2 with the length and the checksum of its present bytes."""
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    struct.pack_into(">I", raw, 17, calc_crc32c(bytes(raw[21:])))
    return bytes(raw)


def with_codec(raw: bytes, codec: int, body: bytes | None = None) -> bytes:
    """Returns a batch of format 2 that says to be compressed with this codec, with another body if one is given."""
    changed = bytearray(raw if body is None else raw[:61] + body)
    (attributes,) = struct.unpack_from(">h", raw, 21)
    struct.pack_into(">h", changed, 21, attributes & ~7 | codec)
    return with_checksum(changed)


def claim_codec(batch: Any, codec: int, body: bytes | None = None) -> bytes:
    """Makes a whole aiokafka batch say to be compressed with this codec, as `with_codec`; returns its bytes."""
    raw = with_codec(bytes(batch._build()), codec, body)  # noqa: SLF001  # aiokafka writes what it can read only
    batch._buffer = bytearray(raw)  # noqa: SLF001
    return raw


async def send_claiming(servers: str, topic: str, codec: int, body: bytes | None = None, partition: int = 0) -> bytes:
    """Sends a batch of three records as `claim_codec` makes it, and returns it as the embedded broker stores it."""
    async with AIOKafkaProducer(bootstrap_servers=servers, max_batch_size=1 << 20) as producer:
        batch = producer.create_batch()
        for number in range(3):
            batch.append(key=b"k", value=b"%d" % number, timestamp=None)
        raw = claim_codec(batch, codec, body)
        at = await (await producer.send_batch(batch, topic, partition=partition))
    first: int = at.offset
    return first.to_bytes(8, "big") + raw[8:12] + bytes(4) + raw[16:]
