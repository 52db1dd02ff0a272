"""Writes one record that is part of no checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from traceweir.streams.base.stages.base import Output
from traceweir.streams.worker.runtime.delivery import PlainSends, stop_in_time

REQUEST_TIMEOUT_MS = 5_000
"""Time limit of the client for a request, and for a record with all its retries."""
RETRY_BACKOFF_MS = 1_000
"""Time between two retries; the client logs a line for each."""
ANSWER_TIMEOUT_S = 20.0
"""Time limit for the whole. It is longer than the limits of the client, so that the client has given up and can
disconnect; with several silent brokers the client can take longer."""


async def write_record(options: Mapping[str, Any], record: Output) -> None:
    """Writes a record outside any transaction, with a producer of its own that ends afterwards.

    Args:
        options: Connection options of aiokafka's clients.
        record: The record, which may come twice: a send whose answer is lost is repeated.

    Raises:
        KafkaError: the broker refuses the record, or has not confirmed it within some seconds.
        TimeoutError: it took more than `ANSWER_TIMEOUT_S`.
    """
    limits = {"request_timeout_ms": REQUEST_TIMEOUT_MS, "retry_backoff_ms": RETRY_BACKOFF_MS}
    sends = PlainSends({**options, **limits})
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            await sends.start()
            await sends.send({}, [record], {})
    finally:
        await stop_in_time(sends)
