"""Notices that a topic was deleted and created again under a running worker: it would read on at old offsets.

Kafka's answer to a fetch does not say so: the client is told that its offset is out of range, or nothing at all once the
new log has grown past it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any

from mode import Service

from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.service_tasks import intervals, service_task
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

log = logging.getLogger(__name__)

LOOK_EVERY_S = 30.0


class TopicMadeAgainError(WorkerError):
    """A topic was deleted and created again; the message says what the worker does."""


class TopicWatch(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Compares the ids of topics with those that the worker knows."""

    def __init__(
        self,
        ids: Callable[[], Awaitable[Mapping[str, str]]],
        known: Callable[[], Iterable[Mapping[str, str]]],
        followed: Collection[str],
        lose: Callable[[BaseException], Awaitable[object]],
        fail: Callable[[BaseException], Awaitable[object]],
        **kwargs: Any,
    ) -> None:
        """Stores the arguments; the service starts later.

        Args:
            ids: Returns the ids by topic. A topic without an id is missing.
            known: Returns the ids of the inputs by topic, for each owned partition.
            followed: The topics that the worker reads as a whole, and its changelog, which lacks all rows and the name of
                the writer when it is made again.
            lose: Lets the worker take its partitions over again.
            fail: Ends the worker.
            kwargs: Arguments of the service.
        """
        super().__init__(**kwargs)
        self._ids = ids
        self._known = known
        self._lose = lose
        self._fail = fail
        self._followed: dict[str, str | None] = dict.fromkeys(followed)

    @service_task("compares the topics with those that the worker knows")
    async def _look(self) -> None:
        async for _ in intervals(self, LOOK_EVERY_S):
            await self.look()

    async def look(self) -> None:
        """Compares once."""
        try:
            ids = await self._ids()
        except KafkaUnreachableError as error:
            log.warning("the ids of the topics cannot be compared now: %s", error)
            return
        for topic, former in self._followed.items():
            if former is not None and former != ids.get(topic, former):
                await self._fail(
                    TopicMadeAgainError(f"{_made_again(topic, former, ids[topic])}: start the worker again")
                )
                return
            self._followed[topic] = ids.get(topic)
        for inputs in self._known():
            for topic, former in inputs.items():
                if former != ids.get(topic, former):
                    await self._lose(TopicMadeAgainError(_made_again(topic, former, ids[topic])))
                    return


def _made_again(topic: str, former: str, now: str) -> str:
    return (
        f"the topic {topic} was deleted and created again under the running worker (its id was {former}, and is {now})"
    )
