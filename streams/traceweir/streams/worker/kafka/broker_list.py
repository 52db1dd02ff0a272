"""Lets a client start only with a list of brokers.

A node that wakes up after its cluster has given it up can answer its first request with an empty list of brokers.
aiokafka accepts this answer, and then has no node to ask: its search for a group's coordinator ends with an
`AssertionError`, and after the loss of its first connection it never asks a node again. An empty list at a later time
does no harm, because aiokafka keeps the former list.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from aiokafka.client import ConnectionGroup
from aiokafka.errors import KafkaConnectionError

from traceweir.streams.worker.kafka.clients import client_of

log = logging.getLogger(__name__)

LISTED_WITHIN_S = 30.0
"""Time limit in seconds until a node names at least one broker."""
ASK_AGAIN_AFTER_S = 0.5
_FIRST_CONNECTION = ("bootstrap", ConnectionGroup.DEFAULT)


def require_broker_list(user: Any) -> None:
    """Makes `start` of this aiokafka consumer or producer ask its servers until a node names a broker.

    aiokafka asks the servers in random order. `start` raises `KafkaConnectionError` if no server can be reached, or if
    no node names a broker in time.
    """
    client = client_of(user)
    bootstrap = client.bootstrap

    async def bootstrap_with_list() -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + LISTED_WITHIN_S
        while True:
            await bootstrap()
            if client.cluster.brokers():
                return
            if loop.time() >= until:
                raise KafkaConnectionError(f"the nodes have named no broker for {LISTED_WITHIN_S:g} s")
            log.warning("a Kafka node answered with an empty list of brokers, and is asked again")
            # The next `bootstrap` opens another connection.
            client._conns.pop(_FIRST_CONNECTION).close()
            await asyncio.sleep(ASK_AGAIN_AFTER_S)

    client.bootstrap = bootstrap_with_list
