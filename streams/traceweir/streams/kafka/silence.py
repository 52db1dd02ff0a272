"""Notices that none of the nodes that a client knows answers, so that its command starts the client again.

aiokafka asks only the nodes that it knows. If others have replaced all of them, as when a cluster moves, a client waits
without end although the bootstrap servers lead to the new ones. A client that starts again asks the bootstrap servers,
and reads certificates again. A worker ends in place of this (`runtime.watchdog`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from traceweir.streams.kafka.clients import client_of
from traceweir.streams.kafka.consumer_tasks import ending_early, watch_tasks
from traceweir.streams.kafka.errors import KafkaUnreachableError

log = logging.getLogger(__name__)

LOST_AFTER_S = 60.0
"""Silence of all nodes in seconds after which a client is started again; also that after which a worker ends."""
ASK_EVERY_S = 5.0
"""Seconds between two questions, and the time limit of an answer."""


async def answers(user: Any) -> bool:
    """Returns whether a node that this started consumer or producer knows answers within `ASK_EVERY_S`.

    The question names no topic, so the answer is short.
    """
    client = client_of(user)
    try:
        async with asyncio.timeout(ASK_EVERY_S):
            return await _any_answers(client)
    except TimeoutError:
        return False


async def until_lost(user: Any, *, lost_after_s: float = LOST_AFTER_S) -> str:
    """Returns a sentence when no node has answered for this time; runs without end while one answers.

    Args:
        user: A started consumer or producer.
        lost_after_s: The time without an answer, in seconds.
    """
    loop = asyncio.get_running_loop()
    answered_at_s = loop.time()
    while True:
        await asyncio.sleep(min(ASK_EVERY_S, lost_after_s))
        asked_at_s = loop.time()
        if await answers(user):
            answered_at_s = loop.time()
        elif asked_at_s - answered_at_s >= lost_after_s:
            return (
                f"no Kafka node that this client knows has answered for {lost_after_s:g} s; the client starts again from "
                "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"
            )


@asynccontextmanager
async def failing_with_client(consumer: Any, *, lost_after_s: float = LOST_AFTER_S) -> AsyncIterator[None]:
    """Ends its block when a started consumer cannot go on: a task of it has ended, or all its nodes are silent.

    Raises:
        ConsumerTaskEndedError: a task ended.
        KafkaUnreachableError: no node answered for this time.
    """

    async with ending_early() as end:
        watch_tasks(consumer, end)
        watching = asyncio.create_task(_end_if_lost(consumer, end, lost_after_s))
        try:
            yield
        finally:
            watching.cancel()


async def _end_if_lost(consumer: Any, end: Callable[[Exception], None], lost_after_s: float) -> None:
    end(KafkaUnreachableError(await until_lost(consumer, lost_after_s=lost_after_s)))


async def _any_answers(client: Any) -> bool:
    asking = [asyncio.ensure_future(_answers(client, broker.nodeId)) for broker in client.cluster.brokers()]
    try:
        for answer in asyncio.as_completed(asking):
            if await answer:
                return True
        return False
    finally:
        for each in asking:
            each.cancel()


async def _answers(client: Any, node: int) -> bool:
    try:
        connection = await client._get_conn(node)
        if connection is None:
            return False
        await connection.send(MetadataRequest([]))
    except (KafkaError, OSError, TimeoutError) as error:
        log.debug("node %s does not answer: %r", node, error)
        return False
    return True
