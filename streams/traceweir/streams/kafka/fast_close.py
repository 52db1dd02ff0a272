"""How a consumer's connections end: at once.

By TLS asyncio waits up to 30 s for the broker's goodbye, and with uvloop, while a large fetch is under way, it waits for all of them.
That is longer than a session and longer than a worker may take to end. A consumer that stops has nothing left to send: its offsets are
in the checkpoints, and the coordinator has confirmed that it left its group.

And all of them. aiokafka awaits its own cancelling: of a fetch that waits to be tried again, as each does while a broker is away, or of a
task that has not begun. Its `stop` ends there, with a CancelledError for whoever asked for it, and leaves a client that asks for metadata
for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

from traceweir.scorers.evaluation.runner import cancelled_from_outside


def install_fast_close(consumer: Any) -> None:
    """Let this aiokafka consumer, when it stops, stop whole, and close its connections without a goodbye."""
    client = consumer._client
    close, stop = client.close, consumer.stop

    async def close_at_once() -> None:
        for connection in list(client._conns.values()):
            writer = connection._writer
            connection.close()
            if writer is not None:
                writer.transport.abort()
        await close()

    async def stop_whole() -> None:
        cancelled, failure, fetcher = None, None, consumer._fetcher  # there is none in one that has not come to start
        fetches = list(fetcher._pending_tasks) if fetcher is not None else []
        # Parts that may not have had their turn are told by themselves; to be told twice is fine.
        for part in (stop, *([fetcher.close] if fetcher is not None else []), client.close):
            try:
                await part()
            except asyncio.CancelledError as error:
                cancelled = error
            except Exception as error:  # noqa: BLE001  # raised below, once all has been told
                failure = failure or error
        for fetch in fetches:  # one for each node; told to close, the fetcher ends after the first
            fetch.cancel()
        if cancelled is not None and cancelled_from_outside():
            raise cancelled
        if failure is not None:
            raise failure

    client.close = close_at_once
    consumer.stop = stop_whole
