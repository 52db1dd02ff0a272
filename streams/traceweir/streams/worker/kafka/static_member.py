"""Keeps two processes from being the same static member of a consumer group (`TRACEWEIR_GROUP_INSTANCE_ID`).

Kafka gives the place of a static member to each process that joins with its instance id, also while the former process
runs. The former process learns of it as of an expiry, joins again, and takes the place back; each fences the other, without
end. Kafka cannot tell a living process from one that was killed within the session timeout, either.

Therefore a process notes its member id, which Kafka gives to each process that joins, in its state directory, which one
process at a time can use:

- At its start, a process finds the member with its instance id in the group. If the id of that member is the noted one, it
  is its predecessor, which has ended: the process takes its place at once, and no partition moves. Otherwise it waits
  to see whether Kafka expels that member. A member that stays is alive, and the process ends.
- A process that Kafka does not know any more as a member looks again before it joins. If the id of the member is none that
  it has had, another process has its place, and it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

from traceweir.schemas.text import printable
from traceweir.streams.base.errors import WorkerError
from traceweir.streams.worker.kafka.consumer_group import GroupMember
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

log = logging.getLogger(__name__)

MARGIN_S = 3.0
"""Seconds after the session timeout at which Kafka has expelled a member that is dead."""
LOOK_EVERY_S = 0.5


class InstanceTakenError(WorkerError):
    """Another process is the static member that this one should be; the message contains the way out."""


class StaticMember:
    """A static member of a group, seen from the process that should be it.

    Args:
        instance_id: Its name.
        note: A file in the state directory, for the member id of the process.
        members: Asks for the members of the group. Raises KafkaUnreachableError.
    """

    def __init__(self, instance_id: str, note: Path, members: Callable[[], list[GroupMember]]) -> None:
        self._instance_id = instance_id
        self._note = note
        self._members = members
        self._own = {note.read_text()} if note.exists() else set()

    def joined(self, member_id: str) -> None:
        """Notes the id of this process in the group."""
        if member_id not in self._own:
            self._own.add(member_id)
            fresh = self._note.with_suffix(".new")
            fresh.write_text(member_id)
            fresh.replace(self._note)

    def require_place(
        self, session_timeout_s: float, now: Callable[[], float] = monotonic, wait: Callable[[float], object] = sleep
    ) -> None:
        """Waits until no other process has the place of this one, at most for the session timeout.

        Args:
            session_timeout_s: Seconds after which Kafka expels a dead member.
            now: Returns a time in seconds.
            wait: Waits some seconds.

        Raises:
            InstanceTakenError: another process has the place.
            KafkaUnreachableError: no broker answers.
        """
        deadline = now() + session_timeout_s + MARGIN_S
        is_logged = False
        while True:
            try:
                other = self._other()
            except KafkaUnreachableError:
                # For example while a new cluster creates the topic of its groups.
                if now() >= deadline:
                    raise
            else:
                if other is None:
                    return
                if now() >= deadline:
                    raise InstanceTakenError(
                        f"another worker with the same TRACEWEIR_GROUP_INSTANCE_ID ({self._instance_id!r}) is in the "
                        f"consumer group, from {printable(other.host)}: give each worker a name of its own, or stop that "
                        "worker first. If it does not run any more, it had a longer session timeout: start this worker "
                        "again later"
                    )
                if not is_logged:
                    log.warning(
                        "a member with the same TRACEWEIR_GROUP_INSTANCE_ID (%r) is in the consumer group, from %s, which "
                        "is not known in the state directory of this worker; this worker waits up to %g s to see whether "
                        "Kafka expels it",
                        self._instance_id,
                        printable(other.host),
                        session_timeout_s + MARGIN_S,
                    )
                    is_logged = True
            wait(LOOK_EVERY_S)

    def successor(self) -> InstanceTakenError | None:
        """Returns why this process must not join its group again; None if it can, or if no broker answers."""
        try:
            other = self._other()
        except KafkaUnreachableError:
            return None
        if other is None:
            return None
        return InstanceTakenError(
            f"another worker with the same TRACEWEIR_GROUP_INSTANCE_ID ({self._instance_id!r}) has joined the consumer group "
            "and has the place of this one, which ends: give each worker a name of its own, "
            "if that is not the successor of this worker. No data is lost"
        )

    def _other(self) -> GroupMember | None:
        """Returns the member with this instance id that is another process."""
        for member in self._members():
            if member.instance_id == self._instance_id and member.member_id not in self._own:
                return member
        return None
