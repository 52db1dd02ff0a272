"""Limits how long the clients of a worker wait for one answer of one node.

Faust gives all requests 90 s, because the answer to a JoinGroup request can take that long; aiokafka gives a producer's
requests 40 s. If a node hangs, a worker would wait so long for the answer to a heartbeat or for the end of a transaction,
and then for other answers of this node, while the other nodes have long replaced it, or while it has woken up and has
lost the request.
"""

from __future__ import annotations

from typing import Any

from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import JoinGroupRequest, SyncGroupRequest
from aiokafka.protocol.produce import ProduceRequest

from traceweir.streams.worker.kafka.clients import client_of, prepare_connections

ANSWER_WITHIN_S = 5.0
"""Time limit in seconds for a connection, and for an answer that does not wait for other members or for records."""
RECORDS_WITHIN_S = 30.0
"""Time limit in seconds for the records of a fetch or of a produce request, which can be 50 MB, and for an answer that
waits behind them."""
_WITH_RECORDS = frozenset({FetchRequest.API_KEY, ProduceRequest.API_KEY})


def limit_answers(user: Any) -> None:
    """Limits the time for each connection, and for each answer, of this aiokafka consumer or producer.

    The limit for a join remains the same.
    """
    client = client_of(user)
    join_within_s = client._request_timeout_ms / 1000
    # For new connections.
    client._request_timeout_ms = int(ANSWER_WITHIN_S * 1000)

    def limit(connection: Any) -> None:
        send = connection.send

        def send_within_limit(request: Any, expect_response: bool = True) -> Any:
            # `send` reads the limit before it returns, so each request has its own limit.
            if isinstance(request, JoinGroupRequest | SyncGroupRequest):
                connection._request_timeout = join_within_s
            else:
                # A broker answers the requests of a connection in their order, so an answer can wait behind records.
                waiting = [before.API_KEY for _, before, _ in connection._requests]
                records = not _WITH_RECORDS.isdisjoint([request.API_KEY, *waiting])
                connection._request_timeout = RECORDS_WITHIN_S if records else ANSWER_WITHIN_S
            return send(request, expect_response)

        connection.send = send_within_limit

    prepare_connections(client, limit)
