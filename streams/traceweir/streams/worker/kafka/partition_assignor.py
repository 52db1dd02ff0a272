"""Assigns the partitions of topics of users that have more of them than Traceweir's own topics.

Faust assigns partitions of the same number together only for topics with the same number of partitions. Here the owner of
partition n of the changelog gets n + P, n + 2 P ... of such a topic, too; P is the number of partitions of the changelog.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from faust.assignor import PartitionAssignor
from faust.assignor.client_assignment import ClientAssignment, ClientMetadata


class _FirstPartitions:
    """A view of a cluster's metadata in which no topic has more than `partitions` partitions."""

    def __init__(self, cluster: Any, partitions: int) -> None:
        self._cluster = cluster
        self._partitions = partitions

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {number for number in self._cluster.partitions_for_topic(topic) or () if number < self._partitions}


class AddedPartitionsAssignor(PartitionAssignor):  # type: ignore[misc]  # Faust's assignor is untyped
    """Faust's assignor, without and then with the added partitions.

    The leader of the group assigns. The other members take what they get, so that all members must have this assignor
    before partitions are added.
    """

    topics: Collection[str] = ()
    """The topics whose added partitions are assigned."""
    known: Mapping[str, int] = MappingProxyType({})
    """By topic, the number of partitions when the leader assigned; empty if the leader is an earlier version."""

    def on_assignment(self, assignment: Any) -> None:
        """Takes what the leader has assigned to this member."""
        super().on_assignment(assignment)
        pairs = [name.split("/") for name in self._topic_groups if "/" in name]
        self.known = {topic: int(count) for topic, count in pairs}

    def _protocol_assignments(self, assignments: Any, changelogs: Any, others: Any, topic_groups: Any) -> Any:
        """Tells all members the numbers of partitions, in the one mapping by topic that they get; no topic has a slash."""
        counts = {f"{topic}/{len(numbers)}": 0 for topic, numbers in self._added.items()}
        return super()._protocol_assignments(assignments, changelogs, others, topic_groups | counts)

    def _perform_assignment(self, cluster: Any, member_metadata: Any) -> Any:
        self._added = {topic: cluster.partitions_for_topic(topic) or set() for topic in self.topics}
        return super()._perform_assignment(_FirstPartitions(cluster, self._partitions), member_metadata)

    def _get_client_metadata(self, metadata: Any) -> ClientMetadata:
        """Returns what a member says, without the added partitions of its former assignment, which Faust would count."""
        found = super()._get_client_metadata(metadata)
        former = found.assignment.actives
        found.assignment.actives = {
            topic: [number for number in numbers if number < self._partitions] for topic, numbers in former.items()
        }
        return found

    def _global_table_standby_assignments(self, assignments: Any, partitions_by_topic: Any) -> Any:
        """Adds the added partitions; Faust calls this last of all that changes the assignment."""
        found = super()._global_table_standby_assignments(assignments, partitions_by_topic)
        for each in found.values():
            self._add(each)
        return found

    def _add(self, assignment: ClientAssignment) -> None:
        for topic, numbers in self._added.items():
            owned = assignment.actives.get(topic, [])
            added = sorted(n for n in numbers if n >= self._partitions and n % self._partitions in owned)
            if added:
                assignment.actives[topic] = [*owned, *added]

    @property
    def _partitions(self) -> int:
        partitions: int = self.app.conf.topic_partitions
        return partitions


def join_for_added_partitions(consumer: Any, assignor: AddedPartitionsAssignor) -> None:
    """Lets a worker join its group again when a topic has more partitions than the leader has assigned.

    aiokafka does so only in a member that was told that it leads the group. A static member that starts again can lead it
    without being told (KIP-814), and then nobody would look.
    """

    def look(cluster: Any) -> None:
        subscription = consumer._subscription
        if subscription.subscription is None or subscription.reassignment_in_progress:
            return
        if any(len(cluster.partitions_for_topic(topic) or ()) > count for topic, count in assignor.known.items()):
            consumer._coordinator.request_rejoin()

    consumer._client.cluster.add_listener(look)
