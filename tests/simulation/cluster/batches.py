"""Builds batches of records as a client that is not simulated sends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aiokafka.record.default_records import DefaultRecordBatchBuilder


class Sent(NamedTuple):
    """A record of a batch."""

    key: bytes | None
    value: bytes | None
    at_ms: int
    """The timestamp, in milliseconds since 1970."""
    headers: Sequence[tuple[str, bytes]] = ()


def batch_of(records: Sequence[Sent], producer: int | None = None) -> bytes:
    """Returns a batch; with the id of a producer it is part of the transaction of that producer, in epoch 0."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=int(producer is not None),
        producer_id=-1 if producer is None else producer,
        producer_epoch=-1 if producer is None else 0,
        base_sequence=-1 if producer is None else 0,
        batch_size=2_000_000,
    )
    for number, (key, value, at_ms, headers) in enumerate(records):
        builder.append(number, at_ms, key, value, list(headers))
    return bytes(builder.build())
