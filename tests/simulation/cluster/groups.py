"""The coordinator of consumer groups: members, generations, the leader's assignment, and committed offsets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

NO_ERROR, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 0, 22, 25, 27
MEMBER_ID_REQUIRED = 79

Place = tuple[str, int]


class Surroundings(Protocol):
    """What a coordinator needs of its cluster."""

    def after(self, seconds: float, what: Callable[[], object]) -> Any:
        """Calls a function later; returns a handle with `cancel`."""


class Joined(NamedTuple):
    """The answer to a member that joins."""

    error: int
    generation: int = -1
    protocol: str = ""
    leader: str = ""
    member: str = ""
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    """Id, instance id and metadata of all members, for the leader only."""


class Join(NamedTuple):
    """A member's wish to join."""

    member: str
    instance: str | None
    session_s: float
    rebalance_s: float
    protocols: tuple[tuple[str, bytes], ...]


class _Member:
    def __init__(self, name: str, join: Join) -> None:
        self.name, self.join = name, join
        self.joining: Callable[[Joined], object] | None = None
        self.syncing: Callable[[int, bytes], object] | None = None
        self.assignment = b""
        self.timer: Any = None


class Group:
    """One consumer group.

    Args:
        surroundings: The cluster.
        delay_s: Time that the first member of an empty group waits for others, in seconds.
    """

    def __init__(self, surroundings: Surroundings, delay_s: float = 0.0) -> None:
        self._around, self._delay_s = surroundings, delay_s
        self.state: Literal["empty", "preparing", "completing", "stable"] = "empty"
        self.generation = 0
        self.members: dict[str, _Member] = {}
        self._instances: dict[str, str] = {}
        self._expected: set[str] = set()
        self._leader = self._protocol = ""
        self._timer: Any = None
        self._number = 0
        self.offsets: dict[Place, int] = {}
        """The committed offsets."""
        self._pending: dict[int, dict[Place, int]] = defaultdict(dict)

    # Members

    def join(self, join: Join, answer: Callable[[Joined], object]) -> None:
        """Lets a member join; it gets its answer when all members have joined, or the time for it is over."""
        name = join.member
        if join.instance is not None and join.instance in self._instances:
            known = self._instances[join.instance]
            if name and name != known:
                answer(Joined(82))  # FENCED_INSTANCE_ID
                return
            if not name:
                self._replace(known, join, answer)
                return
        if not name:
            name = self._new_name(join)
            if join.instance is None:
                self._expected.add(name)
                answer(Joined(MEMBER_ID_REQUIRED, member=name))
                return
            self._instances[join.instance] = name
        elif name not in self.members and name not in self._expected:
            answer(Joined(UNKNOWN_MEMBER_ID))
            return
        self._expected.discard(name)
        member = self.members.get(name)
        known_before = member is not None
        if member is None:
            member = self.members[name] = _Member(name, join)
        unchanged = known_before and member.join.protocols == join.protocols
        member.join = join
        if known_before and unchanged and self.state == "completing":
            answer(self._answer(member))
            return
        if known_before and unchanged and self.state == "stable" and name != self._leader:
            answer(self._answer(member))
            return
        member.joining = answer
        self._prepare()
        self._complete_if_all()

    def _replace(self, known: str, join: Join, answer: Callable[[Joined], object]) -> None:
        """Gives the place of a static member to its new process. The former id is unknown from now on."""
        former = self.members.pop(known)
        self._stop_timer(former)
        name = self._new_name(join)
        self._instances[join.instance or ""] = name
        member = self.members[name] = _Member(name, join)
        member.assignment = former.assignment
        leader = self._leader
        if leader == known:
            self._leader = name
        if former.joining is not None:
            former.joining(Joined(82))
        if former.syncing is not None:
            former.syncing(82, b"")
        if self.state == "stable" and former.join.protocols == join.protocols:
            # The answer names the former leader, so that the new process does not assign partitions.
            self._beat(member)
            answer(Joined(NO_ERROR, self.generation, self._protocol, leader, name))
            return
        member.joining = answer
        self._prepare()
        self._complete_if_all()

    def _new_name(self, join: Join) -> str:
        self._number += 1
        return f"{join.instance or 'member'}-{self._number}"

    def _prepare(self) -> None:
        if self.state == "preparing":
            return
        for member in self.members.values():
            if member.syncing is not None:
                member.syncing(REBALANCE_IN_PROGRESS, b"")
                member.syncing = None
        first = self.state == "empty"
        self.state = "preparing"
        limit = self._delay_s if first else max(each.join.rebalance_s for each in self.members.values())
        self._initial = first and self._delay_s > 0
        self._timer = self._around.after(limit, self._over)

    def _over(self) -> None:
        """Ends the wait for members that have not joined again."""
        self._initial = False
        if self.state != "preparing":
            return
        for name, member in list(self.members.items()):
            if member.joining is None and member.join.instance is None:
                self._remove(name)
        self._complete()

    def _complete_if_all(self) -> None:
        if self.state == "preparing" and not self._initial and all(m.joining for m in self.members.values()):
            self._complete()

    def _complete(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self.members:
            self.state = "empty"
            self.generation += 1
            return
        self.generation += 1
        self.state = "completing"
        if self._leader not in self.members or self.members[self._leader].joining is None:
            self._leader = next((n for n, m in self.members.items() if m.joining), next(iter(self.members)))
        shared = [name for name, _ in self.members[self._leader].join.protocols]
        self._protocol = next(
            name for name in shared if all(name in dict(m.join.protocols) for m in self.members.values())
        )
        for member in self.members.values():
            member.assignment = b""
            answer, member.joining = member.joining, None
            if answer is not None:
                self._beat(member)
                answer(self._answer(member))

    def _answer(self, member: _Member) -> Joined:
        members: tuple[tuple[str, str | None, bytes], ...] = ()
        if member.name == self._leader:
            members = tuple(
                (each.name, each.join.instance, dict(each.join.protocols)[self._protocol])
                for each in self.members.values()
            )
        return Joined(NO_ERROR, self.generation, self._protocol, self._leader, member.name, members)

    def sync(
        self, name: str, generation: int, assignments: dict[str, bytes], answer: Callable[[int, bytes], object]
    ) -> None:
        """Takes the leader's assignment, and gives each member its part."""
        error = self._check(name, generation)
        if error or self.state == "preparing":
            answer(error or REBALANCE_IN_PROGRESS, b"")
            return
        member = self.members[name]
        self._beat(member)
        if self.state == "stable":
            answer(NO_ERROR, member.assignment)
            return
        member.syncing = answer
        if name != self._leader:
            return
        self.state = "stable"
        for each in self.members.values():
            each.assignment = assignments.get(each.name, b"")
            waiting, each.syncing = each.syncing, None
            if waiting is not None:
                waiting(NO_ERROR, each.assignment)

    def heartbeat(self, name: str, generation: int) -> int:
        """Notes a sign of life; returns an error code."""
        error = self._check(name, generation)
        if error:
            return error
        self._beat(self.members[name])
        return REBALANCE_IN_PROGRESS if self.state == "preparing" else NO_ERROR

    def leave(self, name: str) -> int:
        """Removes a member; returns an error code."""
        if name not in self.members:
            return UNKNOWN_MEMBER_ID
        self._gone(name)
        return NO_ERROR

    def _check(self, name: str, generation: int) -> int:
        if name not in self.members:
            return UNKNOWN_MEMBER_ID
        return ILLEGAL_GENERATION if generation != self.generation else NO_ERROR

    def _beat(self, member: _Member) -> None:
        self._stop_timer(member)
        member.timer = self._around.after(member.join.session_s, lambda: self._silent(member))

    def _silent(self, member: _Member) -> None:
        if self.members.get(member.name) is not member:
            return
        if member.joining is not None:  # it waits for the others, and cannot send heartbeats meanwhile
            self._beat(member)
            return
        self._gone(member.name)

    def _gone(self, name: str) -> None:
        self._remove(name)
        if self.state in ("stable", "completing"):
            if self.members:
                self._prepare()
            else:
                self.state, self.generation = "empty", self.generation + 1
        self._complete_if_all()

    def _remove(self, name: str) -> None:
        member = self.members.pop(name)
        self._stop_timer(member)
        if member.join.instance is not None:
            self._instances.pop(member.join.instance, None)
        if member.joining is not None:
            member.joining(Joined(UNKNOWN_MEMBER_ID))
        if member.syncing is not None:
            member.syncing(UNKNOWN_MEMBER_ID, b"")

    @staticmethod
    def _stop_timer(member: _Member) -> None:
        if member.timer is not None:
            member.timer.cancel()

    # Offsets

    def commit(self, name: str, generation: int, offsets: dict[Place, int]) -> int:
        """Commits offsets of a member, or of a consumer without membership; returns an error code."""
        if generation >= 0 or self.members:
            error = self._check(name, generation)
            if error:
                return error
        self.offsets |= offsets
        return NO_ERROR

    def refuses(self, name: str, generation: int) -> int:
        """Returns an error code for offsets that a member commits in a transaction."""
        return self._check(name, generation)

    def commit_in_transaction(self, producer: int, offsets: dict[Place, int]) -> None:
        """Keeps offsets until the transaction of their producer ends."""
        self._pending[producer] |= offsets

    def end_transaction(self, producer: int, *, commit: bool) -> None:
        """Makes the offsets of a transaction visible, or forgets them."""
        found = self._pending.pop(producer, {})
        if commit:
            self.offsets |= found
