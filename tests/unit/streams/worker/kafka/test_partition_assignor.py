"""Tests that the owner of a partition of the changelog gets the added partitions of topics of users."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata

from traceweir.streams.worker.kafka.partition_assignor import AddedPartitionsAssignor, join_for_added_partitions

PARTITIONS = 4


class Group:
    """A consumer group of workers that read `input` and `internal`, and share one changelog."""

    def __init__(self) -> None:
        self.counts = {"input": PARTITIONS, "internal": PARTITIONS, "changelog": PARTITIONS}
        self.assignors: dict[str, AddedPartitionsAssignor] = {}

    def join(self, *names: str) -> None:
        for name in names:
            tables = SimpleNamespace(data={}, changelog_topics={"changelog"})
            conf = SimpleNamespace(topic_partitions=PARTITIONS, canonical_url=f"http://{name}")
            sensors = SimpleNamespace(on_assignment_start=id, on_assignment_completed=lambda *_: None)
            app: Any = SimpleNamespace(tables=tables, conf=conf, tracer=None, sensors=sensors)
            self.assignors[name] = AddedPartitionsAssignor(app)
            self.assignors[name].topics = ("input",)

    def rebalance(self, leader: str) -> Mapping[str, Mapping[str, Collection[int]]]:
        """Returns the partitions of each topic by worker, as the workers take them."""
        members = {name: self._metadata(assignor) for name, assignor in self.assignors.items()}
        found = self.assignors[leader].assign(self, members)
        for name, each in found.items():
            self.assignors[name].on_assignment(each)
        return {name: {topic: sorted(numbers) for topic, numbers in each.assignment} for name, each in found.items()}

    def _metadata(self, assignor: AddedPartitionsAssignor) -> ConsumerProtocolMemberMetadata:
        metadata: ConsumerProtocolMemberMetadata = assignor.metadata({*self.counts})
        return metadata

    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(range(self.counts[topic]))


@pytest.fixture
def group() -> Group:
    group = Group()
    group.join("w1", "w2", "w3")
    group.rebalance("w1")
    return group


@pytest.mark.parametrize("count", [PARTITIONS, 5, 8, 11])
def test_the_owner_of_a_partition_has_the_added_ones_that_follow_it(group: Group, count: int) -> None:
    group.counts["input"] = count
    for leader in ("w1", "w3"):
        found = group.rebalance(leader)
        assert sorted(number for each in found.values() for number in each["input"]) == [*range(count)]
        for each in found.values():
            assert each["internal"] == each["changelog"]
            assert {number % PARTITIONS for number in each["input"]} == {*each["changelog"]}


def test_added_partitions_do_not_move_the_others(group: Group) -> None:
    before = {name: each["changelog"] for name, each in group.rebalance("w2").items()}
    group.counts["input"] = 10
    for leader in ("w2", "w1", "w2"):
        assert {name: each["changelog"] for name, each in group.rebalance(leader).items()} == before


def test_partitions_of_another_topic_that_has_too_many_are_left_out(group: Group) -> None:
    group.counts["internal"] = 9
    found = group.rebalance("w1")
    assert sorted(number for each in found.values() for number in each["internal"]) == [*range(PARTITIONS)]


class Consumer:
    """The parts of a consumer that tell of partitions, and join the group again."""

    def __init__(self, group: Group, assignor: AddedPartitionsAssignor) -> None:
        self.joins, self._group = 0, group
        self._subscription = SimpleNamespace(subscription="any", reassignment_in_progress=False)
        self._coordinator = SimpleNamespace(request_rejoin=self._join)
        self._client = SimpleNamespace(cluster=SimpleNamespace(add_listener=self._listen))
        join_for_added_partitions(self, assignor)

    def _listen(self, look: Callable[[object], None]) -> None:
        self._look = look

    def _join(self) -> None:
        self.joins += 1

    def hears_of_metadata(self, *, rebalancing: bool = False) -> int:
        self._subscription.reassignment_in_progress = rebalancing
        self._look(self._group)
        return self.joins


def test_a_worker_joins_again_until_the_leader_has_assigned_the_partitions_that_it_sees(group: Group) -> None:
    consumer = Consumer(group, group.assignors["w3"])
    assert consumer.hears_of_metadata() == 0
    group.counts |= {"input": 6, "internal": 6}
    assert consumer.hears_of_metadata(rebalancing=True) == 0
    assert [consumer.hears_of_metadata(), consumer.hears_of_metadata()] == [1, 2]
    group.rebalance("w1")
    assert consumer.hears_of_metadata() == 2


def test_a_worker_whose_leader_is_an_earlier_version_does_not_join_again(group: Group) -> None:
    consumer = Consumer(group, group.assignors["w3"])
    group.assignors["w1"].topics = ()
    group.rebalance("w1")
    group.counts["input"] = 6
    assert consumer.hears_of_metadata() == 0
