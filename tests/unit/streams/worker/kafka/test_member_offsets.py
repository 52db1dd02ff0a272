"""Offsets in a transaction name the member of the group that commits them, where the broker knows members there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from aiokafka.errors import CommitFailedError
from aiokafka.protocol.transaction import TxnOffsetCommitRequest_v0

from traceweir.streams.worker.kafka.member_offsets import Member, MemberOffsetsRequest, member_of

UNNAMED = TxnOffsetCommitRequest_v0("id", "group", 7, 2, [("results", [(3, 50, "")])])
REQUEST = MemberOffsetsRequest(UNNAMED, Member(4, "process"))


@pytest.mark.parametrize("newest", [3, 4, 9])
def test_a_broker_that_knows_members_gets_the_member(newest: int) -> None:
    prepared = REQUEST.prepare({28: (0, newest)})
    assert prepared.API_VERSION == 3
    found = type(prepared).decode(prepared.encode())
    assert (found.generation_id, found.member_id, found.group_instance_id) == (4, "process", None)
    assert (found.transactional_id, found.group_id, found.producer_id, found.producer_epoch) == ("id", "group", 7, 2)
    assert found.topics == [("results", [(3, 50, -1, "", {})], {})]


@pytest.mark.parametrize("newest", [0, 2])
def test_an_older_broker_gets_the_request_without_a_member(newest: int) -> None:
    assert REQUEST.prepare({28: (0, newest)}) is UNNAMED


@pytest.mark.parametrize(("generation", "member_id"), [(-1, ""), (-1, "process"), (3, "")])
def test_a_process_that_is_no_member_now_commits_nothing(generation: int, member_id: str) -> None:
    consumer = SimpleNamespace(_coordinator=SimpleNamespace(generation=generation, member_id=member_id))
    with pytest.raises(CommitFailedError, match="no member"):
        member_of(consumer)
