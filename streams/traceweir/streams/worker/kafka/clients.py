"""Names the part of aiokafka's consumers and producers that connects to nodes, and its connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet


def client_of(user: Any) -> Any:
    """Returns the client of an aiokafka consumer or producer, which sends its requests."""
    return user._client if hasattr(user, "_client") else user.client


def prepare_connections(client: Any, prepare: Callable[[Any], None]) -> None:
    """Calls `prepare` with each connection of this client to a node, before its first use."""
    connect = client._get_conn
    prepared = WeakSet[Any]()

    async def connect_prepared(*node: Any, **options: Any) -> Any:
        connection = await connect(*node, **options)
        if connection is not None and connection not in prepared:
            prepared.add(connection)
            prepare(connection)
        return connection

    client._get_conn = connect_prepared
