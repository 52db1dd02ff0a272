"""Batches of records that no client makes."""

from __future__ import annotations

import struct
from typing import Any

from aiokafka.record.util import calc_crc32c


def rename_header(batch: Any, name: bytes, other: bytes) -> None:
    """Replace a header's name in all of a batch of aiokafka's, by as many bytes, which need not be UTF-8."""
    raw = bytearray(batch._build().replace(name, other))  # noqa: SLF001  # aiokafka's: it takes names as text only
    struct.pack_into(">I", raw, 17, calc_crc32c(bytes(raw[21:])))
    batch._buffer = raw  # noqa: SLF001
