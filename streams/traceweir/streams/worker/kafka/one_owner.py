"""Assigns all partitions to one member of a consumer group; the others wait, and one of them takes over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

_NEVER = -1


class OneOwnerAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # untyped
    """Keeps the partitions at the member that had them in the latest generation; each member has an assignor of its own.

    A process that was frozen had them in an earlier generation than the one that took over from it.
    """

    name = "one-owner"
    version = 0

    def __init__(self) -> None:
        self._owned_in = _NEVER

    def note_owner(self, generation: int, *, owns: bool) -> None:
        """Notes whether this member has the partitions.

        Args:
            generation: The number of the group's rebalance.
            owns: Whether it got the partitions in it.
        """
        self._owned_in = generation if owns else _NEVER

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Returns what this member sends when it joins: the topics, and in which generation it had the partitions."""
        owned = self._owned_in.to_bytes(8, "big", signed=True)
        return ConsumerProtocolMemberMetadata(self.version, list(topics), owned)

    def assign(
        self, cluster: Any, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Returns the partitions of each member; the group's leader calls it."""

        def latest(member: str) -> tuple[int, str]:
            return -int.from_bytes(members[member].user_data or b"", "big", signed=True), member

        owner = min(members, key=latest)
        topics = sorted(set(members[owner].subscription))
        every = [(topic, sorted(cluster.partitions_for_topic(topic) or ())) for topic in topics]
        return {
            member: ConsumerProtocolMemberAssignment(self.version, every if member == owner else [], b"")
            for member in members
        }

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Does nothing: `note_owner` is called with the generation, which is not known here."""
