"""Lets the members of a consumer group agree on the newest format of rows that all of them read.

Each member tells its newest format when it joins the group, in the user data of Faust's assignor. The leader puts the
lowest one into each assignment, so that all members of a generation get the same answer. An earlier version tells none,
and as the leader passes none on; Faust ignores the field there.
"""

from __future__ import annotations

from typing import Any

import orjson
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from traceweir.streams.worker.kafka.partition_assignor import AddedPartitionsAssignor

UNTOLD = 3
"""The newest format of the versions that tell none."""
_FIELD = "row_format"


class RowFormatAssignor(AddedPartitionsAssignor):
    """The assignor of the workers, which also agrees on a format of rows.

    Args:
        app: The Faust app.
        replicas: Number of standbys.
        newest: The newest format that this member reads.
    """

    def __init__(self, app: Any, replicas: int = 0, *, newest: int) -> None:
        super().__init__(app, replicas=replicas)
        self._newest = newest
        self.row_format = UNTOLD
        """The newest format that all members of the present generation read."""

    def metadata(self, topics: set[str]) -> ConsumerProtocolMemberMetadata:
        """Returns what this member tells when it joins its group."""
        known = super().metadata(topics)
        return ConsumerProtocolMemberMetadata(known.version, known.subscription, _with(known.user_data, self._newest))

    def assign(self, cluster: Any, member_metadata: Any) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Returns the assignments of all members; the leader calls this."""
        agreed = min(_format_in(each.user_data) for each in member_metadata.values())
        return {
            member: ConsumerProtocolMemberAssignment(
                found.version, found.assignment, self._compress(_with(self._decompress(found.user_data), agreed))
            )
            for member, found in super().assign(cluster, member_metadata).items()
        }

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Takes the assignment of this member."""
        super().on_assignment(assignment)
        self.row_format = _format_in(self._decompress(assignment.user_data))


def _with(user_data: bytes, row_format: int) -> bytes:
    return orjson.dumps(orjson.loads(user_data) | {_FIELD: row_format})


def _format_in(user_data: bytes) -> int:
    return int(orjson.loads(user_data).get(_FIELD, UNTOLD))
