"""Knows when a broker last answered a process, and notices that none of the nodes that a client knows answers.

Whoever waits for records keeps a `LastAnswer`: a worker, the dashboard, an exporter, a reader that follows a topic. What
a broker has said is known only while the brokers still answer, so that after `UNKNOWN_AFTER_S` it counts as unknown.

aiokafka asks only the nodes that it knows. If others have replaced all of them, as when a cluster moves, a client waits
without end although the bootstrap servers lead to the new ones. A client is therefore started again after
`LOST_AFTER_S`: it then asks the bootstrap servers, and reads certificates again. A worker ends in place of this
(`runtime.watchdog`).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import Any

from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.clients import client_of
from traceweir.streams.worker.kafka.consumer_tasks import ending_early, watch_tasks
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.request_thread import in_request_thread
from traceweir.streams.worker.kafka.topic_admin import reach

log = logging.getLogger(__name__)

LOST_AFTER_S = 60.0
"""Silence of all nodes in seconds after which a client is started again; also that after which a worker ends."""
ASK_EVERY_S = 5.0
"""Seconds between two questions, and the time limit of an answer."""
UNKNOWN_AFTER_S = 15.0
"""Age of the last answer in seconds from which on nothing is known of the brokers: some questions in a row had none."""


class LastAnswer:
    """When a broker last answered this process.

    Args:
        now: Seconds of a monotonic clock.
    """

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._began_s = now()
        self._at_s: float | None = None
        self.unanswered_s = 0.0
        """Seconds for which questions in a row had no answer. A time for which the process was frozen is not in it."""

    def begin(self) -> None:
        """Counts the silence before the first answer from now on: from when somebody asks."""
        self._began_s = self._now()

    @property
    def age_s(self) -> float | None:
        """Seconds since the last answer; None before the first one."""
        return None if self._at_s is None else self._now() - self._at_s

    @property
    def problem(self) -> str | None:
        """A sentence if no broker has answered for `UNKNOWN_AFTER_S`; None otherwise."""
        silent_s = self._now() - (self._began_s if self._at_s is None else self._at_s)
        if silent_s < UNKNOWN_AFTER_S:
            return None
        return f"no Kafka broker has answered for more than {UNKNOWN_AFTER_S:g} s: check that the brokers run"

    def note(self, *, answered: bool) -> None:
        """Notes whether a broker has answered a question, which had `ASK_EVERY_S` for its answer."""
        if answered:
            self._at_s = self._now()
            self.unanswered_s = 0.0
        else:
            self.unanswered_s += ASK_EVERY_S


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


async def until_lost(user: Any, *, lost_after_s: float = LOST_AFTER_S, last: LastAnswer | None = None) -> str:
    """Returns a sentence when no node has answered for this time; runs without end while one answers.

    A silence of `UNKNOWN_AFTER_S`, and its end, are logged.

    Args:
        user: A started consumer or producer; its start was an answer of a node.
        lost_after_s: The time without an answer, in seconds.
        last: Receives each answer.
    """
    last = last or LastAnswer()
    last.note(answered=True)
    return await _until_lost(partial(answers, user), lost_after_s, last)


@asynccontextmanager
async def asking_bootstrap_servers(settings: Settings, last: LastAnswer) -> AsyncIterator[None]:
    """Asks within the block whether a broker answers, where no client has started that could be asked.

    A client can take minutes to start while the brokers answer: it waits for its group, or for a coordinator.

    Args:
        settings: Where Kafka is.
        last: Receives each answer.
    """

    async def ask() -> bool:
        try:
            await in_request_thread(reach, settings, ASK_EVERY_S)
        except KafkaUnreachableError:
            return False
        return True

    asking = asyncio.create_task(_until_lost(ask, math.inf, last))
    try:
        yield
    finally:
        asking.cancel()


async def _until_lost(ask: Callable[[], Awaitable[bool]], lost_after_s: float, last: LastAnswer) -> str:
    silent = False
    while True:
        await asyncio.sleep(min(ASK_EVERY_S, lost_after_s))
        age_s = last.age_s
        answered = await ask()
        last.note(answered=answered)
        if not silent and last.problem is not None:
            silent = True
            log.warning("%s; waiting", last.problem)
        elif silent and answered:
            silent = False
            log.info("a Kafka broker answers again")
        if not answered and age_s is not None and age_s >= lost_after_s:
            return (
                f"no Kafka node that this client knows has answered for {lost_after_s:g} s; the client starts again from "
                "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"
            )


@asynccontextmanager
async def failing_with_client(
    consumer: Any, *, lost_after_s: float = LOST_AFTER_S, last: LastAnswer | None = None
) -> AsyncIterator[None]:
    """Ends its block when a started consumer cannot go on: a task of it has ended, or all its nodes are silent.

    Args:
        consumer: The consumer.
        lost_after_s: The time without an answer, in seconds.
        last: Receives each answer.

    Raises:
        ConsumerTaskEndedError: a task ended.
        KafkaUnreachableError: no node answered for this time.
    """

    async with ending_early() as end:
        watch_tasks(consumer, end)
        watching = asyncio.create_task(_end_if_lost(consumer, end, lost_after_s, last))
        try:
            yield
        finally:
            watching.cancel()


async def _end_if_lost(
    consumer: Any, end: Callable[[Exception], None], lost_after_s: float, last: LastAnswer | None
) -> None:
    end(KafkaUnreachableError(await until_lost(consumer, lost_after_s=lost_after_s, last=last)))


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
