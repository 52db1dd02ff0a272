"""All partitions stay at the member that had them last, and a member that was frozen does not take them back."""

from __future__ import annotations

from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata

from traceweir.streams.worker.kafka.one_owner import OneOwnerAssignor


class Cluster:
    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return {0, 1, 2} if topic == "results" else None


def metadata(owned_in: int | None) -> ConsumerProtocolMemberMetadata:
    assignor = OneOwnerAssignor()
    if owned_in is not None:
        assignor.note_owner(owned_in, owns=True)
    sent = assignor.metadata(["results"])
    return ConsumerProtocolMemberMetadata.decode(sent.encode())


def owner_of(**members: int | None) -> str:
    found = OneOwnerAssignor().assign(Cluster(), {name: metadata(owned) for name, owned in members.items()})
    assert found.keys() == members.keys()
    (owner,) = [name for name, each in found.items() if each.assignment]
    assert [(place.topic, place.partition) for place in found[owner].partitions()] == [
        ("results", number) for number in range(3)
    ]
    return owner


def test_one_of_the_new_members_gets_all_partitions() -> None:
    assert owner_of(b=None, a=None) == "a"


def test_a_member_that_joins_takes_nothing_from_the_owner() -> None:
    assert owner_of(a=None, b=7) == "b"


def test_a_member_that_was_frozen_has_owned_in_an_earlier_generation() -> None:
    assert owner_of(a=7, b=9) == "b"


def test_a_member_that_owns_no_more_says_so() -> None:
    assignor = OneOwnerAssignor()
    assignor.note_owner(7, owns=True)
    assignor.note_owner(8, owns=False)
    assert assignor.metadata(["results"]).user_data == metadata(None).user_data
