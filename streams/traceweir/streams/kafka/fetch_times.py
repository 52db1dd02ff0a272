"""Notes when the latest answered fetch of each partition was sent.

aiokafka notes when it processes an answer. Between the answer and this moment a process can stand still, or an answer of
50 MB can be on its way; a record that is appended in the meantime would count as newer than it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiokafka.protocol.fetch import FetchRequest
from aiokafka.structs import TopicPartition


class FetchTimes:
    """Times of the fetches of an aiokafka client.

    Args:
        client: The client; its method `send` is replaced.
        clock: Returns the seconds since 1970.
    """

    def __init__(self, client: Any, clock: Callable[[], float]) -> None:
        self._send, self._clock = client.send, clock
        self._sent_at: dict[TopicPartition, float] = {}
        client.send = self._note_and_send

    def sent_at(self, place: TopicPartition) -> float:
        """Returns when the latest answered fetch of a partition was sent, in seconds since 1970; 0 if there is none."""
        return self._sent_at.get(place, 0.0)

    async def _note_and_send(self, node_id: Any, request: Any, **options: Any) -> Any:
        sent_at = self._clock()
        answer = await self._send(node_id, request, **options)
        # aiokafka processes the answer next, before any other task runs.
        if isinstance(request, FetchRequest):
            for topic, partitions in answer.topics:
                for partition, error_code, *_ in partitions:
                    if not error_code:  # after an error aiokafka keeps the earlier end
                        self._sent_at[TopicPartition(topic, partition)] = sent_at
        return answer
