"""Commits offsets in a transaction as a member of the consumer group, so that Kafka refuses those of a former member.

aiokafka sends the first version of the request, which names no member. Kafka accepts it also from a process that was frozen
and whose partitions others read: the offsets of the group would go back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.client import CoordinationType
from aiokafka.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    for_code,
)
from aiokafka.producer.sender import TxnOffsetCommitHandler
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.transaction import TxnOffsetCommitRequest_v0
from aiokafka.protocol.types import CompactArray, CompactString, Int16, Int32, Int64, Schema, TaggedFields

_NO_MEMBER = (IllegalGenerationError, RebalanceInProgressError, UnknownMemberIdError)
_NO_EPOCH = -1
_NO_TAGS: Mapping[int, bytes] = {}


class Member(NamedTuple):
    """A process of a consumer group, between two rebalances."""

    generation: int
    """The number of the group's present rebalance."""
    id: str
    """The id that Kafka has given to the process."""


def member_of(consumer: AIOKafkaConsumer) -> Member:
    """Returns as which member a consumer reads.

    Raises:
        CommitFailedError: it is none now; Kafka would accept offsets that name no member from everybody.
    """
    coordinator = consumer._coordinator
    if coordinator.generation < 0 or not coordinator.member_id:
        raise CommitFailedError("this process is no member of its consumer group now")
    return Member(coordinator.generation, coordinator.member_id)


def commit_as_member(producer: AIOKafkaProducer, member: Callable[[], Member]) -> None:
    """Lets the transactions of a producer commit offsets as a member; others fail with `CommitFailedError`.

    A broker before Kafka 2.5 does not know members in this request, and accepts it from everybody.

    Args:
        producer: The producer, not started yet.
        member: Returns the member whose offsets are committed.
    """
    sender = producer._sender

    async def commit(offsets: Any, group: str) -> None:
        if not offsets:
            return
        try:
            node = await sender._find_coordinator(CoordinationType.GROUP, group)
        except GroupAuthorizationFailedError as error:
            sender._txn_manager.error_transaction(error)
            return
        await _Handler(sender, offsets, group, member()).do(node)

    sender._do_txn_offset_commit = commit


class _Answer(Response):  # type: ignore[misc]  # untyped
    API_KEY = 28
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "errors",
            CompactArray(
                ("topic", CompactString("utf-8")),
                (
                    "partition_errors",
                    CompactArray(("partition", Int32), ("error_code", Int16), ("tags", TaggedFields)),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _WithMember(RequestStruct):  # type: ignore[misc]  # untyped
    API_KEY = 28
    API_VERSION = 3
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("transactional_id", CompactString("utf-8")),
        ("group_id", CompactString("utf-8")),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("generation_id", Int32),
        ("member_id", CompactString("utf-8")),
        ("group_instance_id", CompactString("utf-8")),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", CompactString("utf-8")),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class MemberOffsetsRequest(Request[TxnOffsetCommitRequest_v0 | _WithMember]):  # type: ignore[misc]  # untyped
    """The request TxnOffsetCommit with a member, or without one for a broker that knows none.

    Args:
        unnamed: The request without a member.
        member: The member.
    """

    API_KEY = 28

    def __init__(self, unnamed: TxnOffsetCommitRequest_v0, member: Member) -> None:
        self._unnamed = unnamed
        self._member = member

    def build(
        self, request_struct_class: type[TxnOffsetCommitRequest_v0 | _WithMember]
    ) -> TxnOffsetCommitRequest_v0 | _WithMember:
        """Returns the request in a version that the broker knows."""
        unnamed = self._unnamed
        if request_struct_class is TxnOffsetCommitRequest_v0:
            return unnamed
        topics = [
            (
                topic,
                [(partition, offset, _NO_EPOCH, metadata, _NO_TAGS) for partition, offset, metadata in places],
                _NO_TAGS,
            )
            for topic, places in unnamed.topics
        ]
        return _WithMember(
            unnamed.transactional_id,
            unnamed.group_id,
            unnamed.producer_id,
            unnamed.producer_epoch,
            self._member.generation,
            self._member.id,
            None,
            topics,
            _NO_TAGS,
        )


class _Handler(TxnOffsetCommitHandler):  # type: ignore[misc]  # untyped
    def __init__(self, sender: Any, offsets: Any, group: str, member: Member) -> None:
        super().__init__(sender, offsets, group)
        self._member = member

    def create_request(self) -> MemberOffsetsRequest:
        return MemberOffsetsRequest(super().create_request().build(TxnOffsetCommitRequest_v0), self._member)

    def handle_response(self, resp: Any) -> float | None:
        errors = [(topic, [(place[0], place[1]) for place in places]) for topic, places, *_ in resp.errors]
        codes = {code for _, places in errors for _, code in places}
        if any(for_code(code) in _NO_MEMBER for code in codes):
            # aiokafka would end its sender, with a traceback in the log.
            self._sender._txn_manager.error_transaction(
                CommitFailedError("the partitions have moved to another process of the consumer group")
            )
            return None
        backoff: float | None = super().handle_response(SimpleNamespace(errors=errors))
        return backoff
