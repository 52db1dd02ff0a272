"""Tests on which format of rows the members of a group agree, also with members of earlier versions."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from faust.assignor import PartitionAssignor

from traceweir.streams.worker.kafka.row_format_assignor import UNTOLD, RowFormatAssignor

TOPICS = {"changelog", "input"}
CLUSTER = SimpleNamespace(partitions_for_topic=lambda topic: {0, 1, 2, 3})


class Tables(SimpleNamespace):
    data: Mapping[str, Any] = {}
    changelog_topics = frozenset({"changelog"})


def app_at(url: str) -> Any:
    sensors = SimpleNamespace(
        on_assignment_start=lambda assignor: None,
        on_assignment_completed=lambda assignor, state: None,
        on_assignment_error=lambda assignor, state, error: None,
    )
    conf = SimpleNamespace(canonical_url=url, topic_partitions=4)
    return SimpleNamespace(conf=conf, tables=Tables(), tracer=None, sensors=sensors)


def member(number: int, newest: int | None) -> Any:
    """Returns the assignor of a member; one of an earlier version, which tells no format, if `newest` is None."""
    app = app_at(f"http://member-{number}")
    return PartitionAssignor(app) if newest is None else RowFormatAssignor(app, newest=newest)


def rebalance(members: Mapping[str, Any], leader: str) -> None:
    """Lets members join a generation, over the wire."""
    told = {
        name: type(found).decode(found.encode()) for name, each in members.items() if (found := each.metadata(TOPICS))
    }
    for name, assignment in members[leader].assign(CLUSTER, told).items():
        members[name].on_assignment(type(assignment).decode(assignment.encode()))


def agreed(*newest: int | None, leader: int = 0) -> list[int]:
    """Returns the format on which the members of a new generation agree, of those that tell one."""
    members = {str(number): member(number, each) for number, each in enumerate(newest)}
    rebalance(members, str(leader))
    assert sorted(tp for each in members.values() for tp in each.assigned_actives()) == [
        (topic, number) for topic in sorted(TOPICS) for number in range(4)
    ]
    return [each.row_format for each in members.values() if isinstance(each, RowFormatAssignor)]


def test_a_member_that_is_alone_agrees_with_itself() -> None:
    assert agreed(5) == [5]


@pytest.mark.parametrize("leader", [0, 1, 2])
def test_all_members_get_the_newest_format_that_all_of_them_read(leader: int) -> None:
    assert agreed(5, 4, 6, leader=leader) == [4, 4, 4]


@pytest.mark.parametrize("leader", [0, 1, 2])
def test_a_member_that_tells_none_reads_the_last_format_before_members_told_one(leader: int) -> None:
    assert agreed(5, None, 4, leader=leader) == [UNTOLD, UNTOLD]


def test_the_next_generation_agrees_again() -> None:
    members = {"old": member(0, None), "new": member(1, 4)}
    rebalance(members, "old")
    assert members["new"].row_format == UNTOLD
    members.pop("old")
    rebalance(members, "new")
    assert members["new"].row_format == 4
    members["back"] = member(2, None)
    rebalance(members, "new")
    assert members["new"].row_format == UNTOLD
