"""Closes all connections of a consumer or a producer at once.

With TLS, asyncio waits up to 30 s for the broker's closing message; with uvloop and a large fetch in flight, asyncio
waits for the whole fetch. Both waits exceed the session timeout of the group and the time limit for a worker's stop. A
stopping consumer has nothing left to send: its offsets are in the checkpoints, and the coordinator has confirmed that
the consumer left its group. Nor has a producer: a send of a delivery ends when the broker has confirmed everything.

aiokafka's own `stop` can also end too early. `stop` awaits tasks that it cancels: a fetch that waits for its retry
while a broker is away, or a task that has not started. The CancelledError of such a task then reaches the caller of
`stop`, and a client remains that requests metadata without end.
"""

from __future__ import annotations

import asyncio
from typing import Any

from traceweir.scorers.evaluation.runner import cancelled_from_outside


def drop_connections(client: Any) -> None:
    """Closes all connections of this aiokafka client without waiting; requests that have no answer fail."""
    for connection in list(client._conns.values()):
        writer = connection._writer
        connection.close()
        if writer is not None:
            writer.transport.abort()


async def close_producer(producer: Any) -> None:
    """Closes this aiokafka producer at once: what it has not sent is not sent, and an open transaction stays open.

    `stop` of aiokafka waits until the producer has sent everything, without end while its broker is away. It leaves the
    connections of a producer open whose start was cancelled.
    """
    producer._closed = True
    drop_connections(producer.client)
    task = producer._sender.sender_task
    if task is not None:
        task.cancel()
        await asyncio.wait([task])
        # A failed sender has raised its error to those who wait for what it sent.
        if not task.cancelled():
            task.exception()
    # After a failure, batches that were never sent have another future with the error, for which nobody waits.
    for batches in producer._message_accumulator._batches.values():
        for waiter in [batch._drain_waiter for batch in batches]:
            if waiter.done() and not waiter.cancelled():
                waiter.exception()
    await producer.client.close()


def install_fast_close(consumer: Any) -> None:
    """Makes `stop` of this aiokafka consumer close every part of it, and close connections without waiting."""
    client = consumer._client
    close = client.close
    stop = consumer.stop

    async def close_at_once() -> None:
        drop_connections(client)
        await close()

    async def stop_whole() -> None:
        cancelled = None
        failure = None
        fetcher = consumer._fetcher
        fetches = list(fetcher._pending_tasks) if fetcher is not None else []
        # `stop` can end before it reaches the later parts, so they are closed here too; closing twice is harmless.
        for part in (stop, *([fetcher.close] if fetcher is not None else []), client.close):
            try:
                await part()
            except asyncio.CancelledError as error:
                cancelled = error
            except Exception as error:  # noqa: BLE001  # raised below, after all parts were closed
                failure = failure or error
        # One fetch per node; the closing fetcher cancels only the first.
        for fetch in fetches:
            fetch.cancel()
        if cancelled is not None and cancelled_from_outside():
            raise cancelled
        if failure is not None:
            raise failure

    client.close = close_at_once
    consumer.stop = stop_whole
