"""Asks a cluster how far consumer groups are, and which processes are in them, without joining them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.inputs import Place
from traceweir.streams.worker.kafka.consumer_group import REQUEST_TIMEOUT_S, GroupMember, admin_client, members_of
from traceweir.streams.worker.kafka.embedded_broker import is_embedded
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

_REFUSED = (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)


class GroupState(NamedTuple):
    """What the cluster says of a consumer group."""

    committed: Mapping[Place, int]
    """The offset that is read next, by partition; a partition without one is left out."""
    members: tuple[GroupMember, ...] | None
    """The processes in the group; None from a broker that cannot say it, as the embedded broker."""


@dataclass(frozen=True)
class GroupStates:
    """The answers to one look."""

    is_embedded: bool
    begins: Mapping[Place, int]
    """The first offset that can be read, by partition of the topics."""
    ends: Mapping[Place, int]
    """The offset after the last committed entry, by partition of the topics."""
    groups: Mapping[str, GroupState]
    """By name. A group that does not exist, or that the user may not ask for, is left out where the brokers list groups."""


def furthest(states: Iterable[GroupState]) -> dict[Place, int]:
    """Returns the highest committed offset of these groups, by partition."""
    found: dict[Place, int] = {}
    for each in states:
        for place, offset in each.committed.items():
            found[place] = max(offset, found.get(place, 0))
    return found


class GroupReader:
    """Looks at consumer groups again and again, with one client. All methods block.

    Args:
        settings: Where Kafka is.
        timeout_s: Time limit for each answer, in seconds.
    """

    def __init__(self, settings: Settings, timeout_s: float = REQUEST_TIMEOUT_S) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._admin = admin_client(settings)

    def look(self, groups: Mapping[str, Collection[str]]) -> GroupStates:
        """Returns the states of groups now.

        Args:
            groups: The topics that each group reads, by the name of the group. A topic that does not exist is left out.

        Raises:
            KafkaUnreachableError: no broker answered, or none of the answers that are needed came.
        """
        try:
            return self._look(groups)
        except KafkaException as error:
            raise KafkaUnreachableError(
                f"Kafka at {self._settings.kafka_bootstrap_servers} did not say where the consumer groups of the workers "
                f"are ({error.args[0].str()})"
            ) from error

    def _look(self, groups: Mapping[str, Collection[str]]) -> GroupStates:
        metadata = self._admin.list_topics(timeout=self._timeout_s)
        embedded = is_embedded(metadata.cluster_id)
        if not embedded:
            # librdkafka crashes when a cluster without any group is asked for several: its coordinators do not exist yet.
            known = self._known(groups)
            groups = {group: read for group, read in groups.items() if group in known}
            if not groups:
                return GroupStates(False, {}, {}, {})
        topics = {topic for each in groups.values() for topic in each} & metadata.topics.keys()
        places = [TopicPartition(topic, number) for topic in topics for number in metadata.topics[topic].partitions]
        # All questions are asked before the first answer is awaited: a distant broker answers them together.
        described = self._admin.describe_consumer_groups(list(groups), request_timeout=self._timeout_s)
        committed = {
            group: self._ask_committed(group, [place for place in places if place.topic in read])
            for group, read in groups.items()
        }
        begins, ends = (self._offsets(places, spec) for spec in (OffsetSpec.earliest(), OffsetSpec.latest()))
        # An error of one answer can end the use of this client. A client that goes while an answer comes kills the process.
        asked = [*described.values(), *committed.values(), *begins.values(), *ends.values()]
        wait([each for each in asked if each is not None])
        found = {}
        for group, offsets in committed.items():
            try:
                members = members_of(described[group])
                found[group] = GroupState(_committed(offsets), None if members is None else tuple(members))
            except KafkaException as error:
                if error.args[0].code() not in _REFUSED:
                    raise
        return GroupStates(embedded, _awaited(begins), _awaited(ends), found)

    def _known(self, groups: Collection[str]) -> set[str]:
        """Returns the groups that exist and that this user may ask for. A broker that is away matters if one is not found."""
        found = self._admin.list_consumer_groups(request_timeout=self._timeout_s).result()
        known = {each.group_id for each in found.valid}
        if found.errors and not known.issuperset(groups):
            raise found.errors[0]
        return known

    def _ask_committed(self, group: str, places: list[TopicPartition]) -> Future[Any] | None:
        if not places:
            return None
        asked = [ConsumerGroupTopicPartitions(group, places)]
        answers: Mapping[str, Future[Any]] = self._admin.list_consumer_group_offsets(
            asked, request_timeout=self._timeout_s
        )
        return answers[group]

    def _offsets(self, places: list[TopicPartition], spec: OffsetSpec) -> Mapping[TopicPartition, Future[Any]]:
        if not places:
            return {}
        found: Mapping[TopicPartition, Future[Any]] = self._admin.list_offsets(
            dict.fromkeys(places, spec),
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=self._timeout_s,
        )
        return found


def _committed(answer: Future[Any] | None) -> dict[Place, int]:
    if answer is None:
        return {}
    try:
        found = answer.result().topic_partitions
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return {}
        raise
    return {Place(each.topic, each.partition): each.offset for each in found if each.offset >= 0}


def _awaited(answers: Mapping[TopicPartition, Future[Any]]) -> dict[Place, int]:
    return {Place(place.topic, place.partition): answer.result().offset for place, answer in answers.items()}
