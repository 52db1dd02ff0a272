"""Limits how long the clients of a worker wait for one answer of one node.

Faust gives all requests 90 s, because the answer to a JoinGroup request can take that long. If a node that coordinates
the group hangs, a worker would also wait 90 s for the answer to a heartbeat, and then for other answers of this node,
while the other nodes have long replaced it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import JoinGroupRequest, SyncGroupRequest

ANSWER_WITHIN_S = 5.0
"""Time limit in seconds for a connection, and for an answer that does not wait for other members or for records."""
FETCH_WITHIN_S = 30.0
"""Time limit in seconds for the records of a fetch, which can be 50 MB, and for an answer that waits behind them."""


def limit_answers(consumer: Any) -> None:
    """Limits the time for each answer to a request of this aiokafka consumer. The limit for a join remains the same."""
    client = consumer._client
    join_within_s = client._request_timeout_ms / 1000
    client._request_timeout_ms = int(ANSWER_WITHIN_S * 1000)  # for new connections
    connect, limited = client._get_conn, WeakSet[Any]()

    def limit(connection: Any) -> None:
        send = connection.send

        def send_within_limit(request: Any, expect_response: bool = True) -> Any:
            # `send` reads the limit before it returns, so each request has its own limit.
            if isinstance(request, JoinGroupRequest | SyncGroupRequest):
                connection._request_timeout = join_within_s
            else:
                # A broker answers the requests of a connection in their order, so an answer can wait behind a fetch.
                behind = [waiting for _, waiting, _ in connection._requests if waiting.API_KEY == FetchRequest.API_KEY]
                is_fetch = isinstance(request, FetchRequest)
                connection._request_timeout = FETCH_WITHIN_S if is_fetch or behind else ANSWER_WITHIN_S
            return send(request, expect_response)

        connection.send = send_within_limit

    async def connect_with_limits(*node: Any, **options: Any) -> Any:
        connection = await connect(*node, **options)
        if connection is not None and connection not in limited:
            limited.add(connection)
            limit(connection)
        return connection

    client._get_conn = connect_with_limits


@contextmanager
def limited_start(client: Any) -> Iterator[None]:
    """Limits the time for each connection, and for each answer, of this client of aiokafka while it starts.

    A client that starts asks the nodes one after the other. Each start would wait for the full time if the first node
    hangs, and a worker that takes over partitions starts several clients in turn.
    """
    usual_ms, client._request_timeout_ms = client._request_timeout_ms, int(ANSWER_WITHIN_S * 1000)
    try:
        yield
    finally:
        client._request_timeout_ms = usual_ms
        for connection in client._conns.values():
            connection._request_timeout = usual_ms / 1000
