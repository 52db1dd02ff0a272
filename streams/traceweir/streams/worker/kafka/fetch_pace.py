"""Spaces the fetches of a light load, so that not every record costs a fetch."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any

from aiokafka.protocol.fetch import FetchRequest

PAUSE_S = 0.02
"""Minimum time between an answer with few records and the next fetch from the same broker, in seconds."""
FEW_BYTES = 256 << 10
"""Size of the records of an answer, in bytes, from which the next fetch does not wait.

It must be less than a partition can have in an answer (aiokafka: 1 MiB), so that a backlog is read without pauses.
"""


def space_fetches(client: Any) -> None:
    """Makes an aiokafka client wait after an answer with few records before it sends the next fetch.

    The wait comes before the request, so the answer contains the records that arrive in the meantime, and is processed
    at once. If the wait came after the answer, a record would wait for up to two pauses.

    Args:
        client: The client; its method `send` is replaced.
    """
    send = client.send
    next_at: dict[Any, float] = {}

    async def send_spaced(node_id: Any, request: Any, **options: Any) -> Any:
        if not isinstance(request, FetchRequest):
            return await send(node_id, request, **options)
        if (pause_s := next_at.get(node_id, 0.0) - monotonic()) > 0:
            await asyncio.sleep(pause_s)
        answer = await send(node_id, request, **options)
        few = sum(len(batches or b"") for _, partitions in answer.topics for *_, batches in partitions) < FEW_BYTES
        next_at[node_id] = monotonic() + PAUSE_S if few else 0.0
        return answer

    client.send = send_spaced
