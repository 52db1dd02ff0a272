"""How a consumer's connections end: at once.

By TLS asyncio waits up to 30 s for the broker's goodbye, and with uvloop, while a large fetch is under way, it waits for all of them.
That is longer than a session and longer than a worker may take to end. A consumer that stops has nothing left to send: its offsets are
in the checkpoints, and the coordinator has confirmed that it left its group.
"""

from __future__ import annotations

from typing import Any


def hangs_up(consumer: Any) -> None:
    """Let this aiokafka consumer, when it stops, close its connections without a goodbye."""
    client = consumer._client
    close = client.close

    async def close_at_once() -> None:
        for connection in list(client._conns.values()):
            writer = connection._writer
            connection.close()
            if writer is not None:
                writer.transport.abort()
        await close()

    client.close = close_at_once
