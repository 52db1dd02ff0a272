"""Asks for the ends of logs, with the records of open transactions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_UNCOMMITTED


async def high_watermarks(consumer: Any, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Returns the offset after the last record of each partition, committed or not.

    `end_offsets` of a consumer that reads committed records returns the last stable offset, which stays behind until
    the marker of the latest transaction is written. Nothing may be fetched by this consumer meanwhile.
    """
    fetcher = consumer._fetcher
    level = fetcher._isolation_level
    fetcher._isolation_level = READ_UNCOMMITTED
    try:
        ends: dict[TopicPartition, int] = await consumer.end_offsets(list(places))
        return ends
    finally:
        fetcher._isolation_level = level
