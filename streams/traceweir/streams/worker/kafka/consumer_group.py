"""Asks a cluster about a consumer group, without joining it: how far it has come, and how many are in it."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from time import monotonic, sleep
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.inputs import Place
from traceweir.streams.worker.kafka.client_options import confluent_options
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

REQUEST_TIMEOUT_S = 10.0
_LOOK_EVERY_S = 0.2


class GroupMember(NamedTuple):
    """A member of a consumer group."""

    member_id: str
    """Kafka gives it to a process that joins; the next process in the place of a static member gets another one."""
    instance_id: str | None
    """The name of a static member; None: a dynamic one."""
    host: str
    """The address of the process; of a static member, that of the first process in its place."""
    places: frozenset[Place] = frozenset()
    """The partitions that the group has assigned to it; none during a rebalance."""


class GroupOffsets:
    """Reads the committed offsets of a consumer group without joining it.

    Args:
        settings: Where Kafka is.
        group: The consumer group.
        topic: The topic of the offsets.
        awaits_transactions: Whether `committed` waits until open transactions that move an offset have ended. If false, it
            returns at once, with the offset from before such a transaction.
    """

    def __init__(self, settings: Settings, group: str, topic: str, *, awaits_transactions: bool = True) -> None:
        quiet = {
            "log_level": 0,
            "error_cb": lambda error: None,
            "isolation.level": "read_committed" if awaits_transactions else "read_uncommitted",
        }
        self._consumer = Consumer(
            confluent_options(settings) | quiet | {"group.id": group, "enable.auto.commit": False}
        )
        self._places = [TopicPartition(topic, number) for number in range(settings.partitions)]

    def committed(self) -> Mapping[int, int]:
        """Returns the offsets by partition; a partition without an offset is left out.

        Raises:
            KafkaUnreachableError: no broker returned the offsets.
        """
        try:
            found = self._consumer.committed(self._places, timeout=REQUEST_TIMEOUT_S)
        except KafkaException as error:
            raise KafkaUnreachableError(
                f"no broker returned the offsets of the group ({error.args[0].str()})"
            ) from error
        return {place.partition: place.offset for place in found if place.offset >= 0}

    def close(self) -> None:
        """Closes the connections."""
        self._consumer.close()


def members(settings: Settings, group: str) -> list[GroupMember] | None:
    """Returns the members of a group; None from a broker that cannot say it, as the embedded broker.

    Raises:
        KafkaUnreachableError: no broker answered.
    """
    # Held, because its answers end with it.
    admin = admin_client(settings)
    try:
        (answer,) = admin.describe_consumer_groups([group], request_timeout=REQUEST_TIMEOUT_S).values()
        return members_of(answer)
    except KafkaException as error:
        raise KafkaUnreachableError(f"no broker described the group {group!r} ({error.args[0].str()})") from error


def members_of(description: Future[Any]) -> list[GroupMember] | None:
    """Returns the members of a described group, as `members` does.

    Raises:
        KafkaException: the group is not described.
    """
    try:
        found = description.result().members
    except KafkaException as error:
        code = error.args[0].code()
        if code == KafkaError.GROUP_ID_NOT_FOUND:
            return []
        if code in (KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION):
            return None
        raise
    return [
        GroupMember(
            each.member_id,
            each.group_instance_id,
            each.host,
            frozenset(Place(place.topic, place.partition) for place in each.assignment.topic_partitions),
        )
        for each in found
    ]


def wait_until_empty(settings: Settings, group: str, within_s: float) -> bool:
    """Waits until a group has no members, and returns whether that is so."""
    deadline = monotonic() + within_s
    while members(settings, group):
        if monotonic() > deadline:
            return False
        sleep(_LOOK_EVERY_S)
    return True


def delete_group(settings: Settings, group: str) -> None:
    """Deletes a group, if it exists.

    Raises:
        KafkaUnreachableError: the group has members, or no broker answered.
    """
    admin = admin_client(settings)
    try:
        (answer,) = admin.delete_consumer_groups([group], request_timeout=REQUEST_TIMEOUT_S).values()
        answer.result()
    except KafkaException as error:
        if error.args[0].code() not in (KafkaError.GROUP_ID_NOT_FOUND, KafkaError._UNSUPPORTED_FEATURE):
            raise KafkaUnreachableError(f"the group {group!r} could not be deleted: {error.args[0].str()}") from error


def admin_client(settings: Settings) -> AdminClient:
    """Returns a client that writes nothing to stderr."""
    return AdminClient(confluent_options(settings) | {"log_level": 0, "error_cb": lambda error: None})
