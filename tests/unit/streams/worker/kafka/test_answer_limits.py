"""Tests how long a client waits for each kind of answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import EndTxnRequest

from traceweir.streams.worker.kafka.answer_limits import ANSWER_WITHIN_S, RECORDS_WITHIN_S, limit_answers

JOIN_WITHIN_S = 90.0


class Connection:
    """A connection that answers with the limit in force when it gets a request."""

    def __init__(self, request_timeout_ms: int) -> None:
        self._request_timeout = request_timeout_ms / 1000
        self._requests: list[tuple[int, object, object]] = []

    def waiting(self) -> list[tuple[int, object, object]]:
        return self._requests

    def send(self, request: object, expect_response: bool = True) -> float:
        return self._request_timeout


class Client:
    """Has the parts of aiokafka's client that the product uses."""

    def __init__(self) -> None:
        self._request_timeout_ms = int(JOIN_WITHIN_S * 1000)
        self.connections = self._conns = dict[int, Connection]()
        self.reachable = True

    async def _get_conn(self, node_id: int, *, group: str = "default", no_hint: bool = False) -> Connection | None:
        if not self.reachable:
            return None
        return self.connections.setdefault(node_id, Connection(self._request_timeout_ms))

    async def send(self, node_id: int, request: object) -> float | None:
        connection = await self._get_conn(node_id, group="coordination")
        return None if connection is None else connection.send(request)


@pytest.fixture
def client() -> Client:
    client = Client()
    limit_answers(SimpleNamespace(client=client))
    return client


def request(kind: type[Any]) -> object:
    return object.__new__(kind)  # only the kind of a request matters here


@pytest.mark.parametrize(
    ("kind", "limit_s"),
    [
        (HeartbeatRequest, ANSWER_WITHIN_S),
        (MetadataRequest, ANSWER_WITHIN_S),
        (FetchRequest, RECORDS_WITHIN_S),
        (ProduceRequest, RECORDS_WITHIN_S),
        (EndTxnRequest, ANSWER_WITHIN_S),
        (JoinGroupRequest, JOIN_WITHIN_S),
        (SyncGroupRequest, JOIN_WITHIN_S),
    ],
)
async def test_only_a_join_can_take_as_long_as_a_join(kind: type[Any], limit_s: float, client: Client) -> None:
    assert await client.send(1, request(JoinGroupRequest)) == JOIN_WITHIN_S
    assert [await client.send(1, request(kind)) for _ in range(3)] == [limit_s] * 3


@pytest.mark.parametrize("kind", [FetchRequest, ProduceRequest])
async def test_an_answer_that_waits_behind_records_has_their_time(kind: type[Any], client: Client) -> None:
    await client.send(1, request(MetadataRequest))
    waiting = client.connections[1].waiting()
    waiting.append((7, request(kind), None))
    assert await client.send(1, request(MetadataRequest)) == RECORDS_WITHIN_S
    waiting.clear()
    assert await client.send(1, request(MetadataRequest)) == ANSWER_WITHIN_S


async def test_a_node_that_cannot_be_reached_has_no_connection(client: Client) -> None:
    client.reachable = False
    assert await client.send(1, request(HeartbeatRequest)) is None
