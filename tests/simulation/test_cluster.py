"""Checks answers of the simulated nodes, and what becomes of requests whose client ends."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextvars import Context
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequest_v0,
)
from aiokafka.record.memory_records import MemoryRecords
from tests.simulation.cluster.batches import Sent, batch_of
from tests.simulation.cluster.broker import VERSIONS, Cluster, refusal
from tests.simulation.cluster.network import Link, Network
from tests.simulation.cluster.partition_log import PartitionLog
from tests.simulation.faults.of_the_cluster import REFUSALS
from tests.simulation.loop import SimulatedLoop

from traceweir.streams.worker.kafka.member_offsets import Member, MemberOffsetsRequest

REQUESTS: dict[int, Callable[[], Any]] = {
    0: lambda: ProduceRequest("id", -1, 1000, [("t", [(0, b"batch"), (3, b"batch")])]),
    11: lambda: JoinGroupRequest("g", 1000, 1000, "member", None, "consumer", [("range", b"")]),
    12: lambda: HeartbeatRequest("g", 1, "member"),
    14: lambda: SyncGroupRequest("g", 1, "member", None, []),
    22: lambda: InitProducerIdRequest("id", 1000),
    24: lambda: AddPartitionsToTxnRequest("id", 1, 0, [("t", [0, 3])]),
    25: lambda: AddOffsetsToTxnRequest("id", 1, 0, "g"),
    26: lambda: EndTxnRequest("id", 1, 0, True),
    28: lambda: TxnOffsetCommitRequest("id", "g", 1, 0, [("t", [(0, 7, "")])]),
}


@pytest.mark.parametrize(("key", "error"), [(key, error) for key, errors in REFUSALS.items() for error in errors])
def test_each_refusal_is_an_answer_of_kafka_with_the_error(key: int, error: int) -> None:
    request = REQUESTS[key]().prepare(VERSIONS)
    assert key == request.API_KEY
    answer = refusal(request, error)
    again = request.RESPONSE_TYPE.decode(answer.encode())
    assert again == answer
    assert str(error) in str(again)


@pytest.mark.parametrize(("generation", "error"), [(1, 0), (2, 22)])
def test_offsets_of_a_former_member_are_refused_in_a_transaction(generation: int, error: int) -> None:
    loop = SimulatedLoop(random.Random(1))
    cluster = Cluster(random.Random(1), loop.call_later, lambda: 1_000)
    group = cluster.group("g")
    group.members["member"] = cast("Any", SimpleNamespace(name="member"))
    group.generation = 1
    _, producer, epoch = cluster.transactions.start("id", 1000)
    assert cluster.transactions.add("id", producer, epoch, [], "g") == 0
    unnamed = TxnOffsetCommitRequest("id", "g", producer, epoch, [("t", [(0, 7, "")])]).build(TxnOffsetCommitRequest_v0)
    request = MemberOffsetsRequest(unnamed, Member(generation, "member")).prepare(VERSIONS)
    answers: list[Any] = []
    cluster.handle(cluster.node_of(0, "g") or 0, request, answers.append)
    loop.close()
    (answer,) = answers
    assert request.RESPONSE_TYPE.decode(answer.encode()) == answer
    assert [(topic, [(number, code) for number, code, _ in found]) for topic, found, _ in answer.errors] == [
        ("t", [(0, error)])
    ]


def test_a_refusal_of_produce_has_the_error_for_each_partition() -> None:
    answer = refusal(REQUESTS[0]().prepare(VERSIONS), 59)
    assert [(topic, [(number, error) for number, error, *_ in found]) for topic, found in answer.topics] == [
        ("t", [(0, 59), (3, 59)])
    ]


class Asked(Cluster):
    """A cluster that notes which requests it has worked on."""

    worked_on: list[Any]

    def handle(self, node: int, request: Any, answer: Callable[[Any], object]) -> None:
        self.worked_on.append(request)
        super().handle(node, request, answer)


@pytest.fixture
def link() -> Iterator[Link]:
    loop = SimulatedLoop(random.Random(1))
    cluster = Asked(
        random.Random(1), lambda after, what: loop.call_later(after, what, context=Context()), lambda: 1_000
    )
    cluster.worked_on = []
    connection = cast("Any", SimpleNamespace(close=lambda **options: None))
    yield Link(Network(loop, random.Random(1), cluster), connection, 1)
    loop.close()


def _send(link: Link, then: Callable[[], object]) -> tuple[int, int]:
    """Sends a request, and another one; returns how many a node has worked on, and the number of answers."""
    answers: list[Any] = []
    for name in "a", "b":
        link.send(FindCoordinatorRequest(name, 1).prepare(VERSIONS), answers.append)
    then()
    link._network._loop.run_until_complete(asyncio.sleep(5))
    return len(cast("Asked", link._network.cluster).worked_on), len(answers)


def test_requests_have_answers(link: Link) -> None:
    assert _send(link, lambda: None) == (2, 2)


def test_what_a_client_has_sent_is_played_although_it_ends(link: Link) -> None:
    assert _send(link, link.close) == (2, 0)


def test_what_was_sent_before_a_connection_breaks_is_played(link: Link) -> None:
    assert _send(link, link.break_off) == (2, 0)


def test_a_node_that_stops_loses_what_it_has_not_worked_on(link: Link) -> None:
    assert _send(link, lambda: link._network.break_links(1)) == (0, 0)


def _compacted(values: list[bytes | None], times_ms: list[int], delete_retention_ms: int | None) -> list[bytes | None]:
    """Writes values of one key, and a record of another; returns which of the values are there after compactions."""
    log = PartitionLog()
    log.delete_retention_ms = delete_retention_ms
    for key, value in [*((b"k", value) for value in values), (b"last", b"x")]:
        log.append(batch_of([Sent(key, value, 0)]))
    for now_ms in times_ms:
        log.compact(now_ms)
    _, raw, _ = log.read(0, 1 << 20, committed=True)
    records, found = MemoryRecords(raw), list[bytes | None]()
    while records.has_next():
        found += [record.value for record in records.next_batch() if record.key == b"k"]
    return found


def test_compaction_keeps_a_tombstone_until_its_retention_after_the_first_compaction_is_over() -> None:
    assert _compacted([b"a", None], [5_000], 1_000) == [None]
    assert _compacted([b"a", None], [5_000, 5_999], 1_000) == [None]
    assert _compacted([b"a", None], [5_000, 6_000], 1_000) == []


def test_compaction_keeps_tombstones_for_ever_without_a_retention() -> None:
    assert _compacted([b"a", None], [5_000, 6_000, 9_000_000], None) == [None]


def test_compaction_keeps_the_value_after_a_tombstone() -> None:
    assert _compacted([b"a", None, b"b"], [5_000, 6_000], 1_000) == [b"b"]
