"""Builds record batches with header names that no client writes."""

from __future__ import annotations

import struct
from typing import Any

from aiokafka.record.util import calc_crc32c


def rename_header(batch: Any, name: bytes, other: bytes) -> None:
    """Replaces a header name in a whole aiokafka batch by other bytes of the same length, UTF-8 or not."""
    raw = bytearray(batch._build().replace(name, other))  # noqa: SLF001  # aiokafka accepts names as text only
    struct.pack_into(">I", raw, 17, calc_crc32c(bytes(raw[21:])))
    batch._buffer = raw  # noqa: SLF001
