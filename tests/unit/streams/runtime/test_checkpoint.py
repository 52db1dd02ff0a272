"""Tests checkpoints during a rebalance, with records and at the end, on a stub of the Faust app."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from aiokafka import TopicPartition
from faust.types import TP
from tests.unit.streams.runtime.test_lane import Listing, ends, records

from traceweir.streams.runtime.changelog_restore import ChangelogRestore, StopRequested
from traceweir.streams.runtime.checkpoint import Checkpoints
from traceweir.streams.runtime.delivery import Delivery
from traceweir.streams.runtime.lane import Lane
from traceweir.streams.stages.base import End, StageSpec


class GatedDelivery:
    """A delivery that starts and sends when the test lets it, and counts its checkpoints."""

    def __init__(self) -> None:
        self.may_start, self.may_send = asyncio.Event(), asyncio.Event()
        self.begun = self.ended = 0

    async def start(self) -> None:
        await self.may_start.wait()

    async def send(self, *checkpoint: object) -> int:
        self.begun += 1
        await self.may_send.wait()
        self.ended += 1
        return -1

    async def stop(self) -> None:
        """Does nothing: there is no connection."""


def app_of(*, ready: bool = True, rebalancing: bool = False, started: bool = True) -> MagicMock:
    app = MagicMock(should_stop=False, rebalancing=rebalancing, rebalancing_count=1)
    app.configure_mock(**{"tables.actives_ready": ready, "_consumer.started": started})
    app.tables.on_rebalance = AsyncMock()
    return app


def checkpoints_of(
    app: MagicMock, delivery: Callable[[int], Delivery] = lambda number: GatedDelivery(), spec: StageSpec | None = None
) -> Checkpoints:
    """Returns the checkpoints of one stage that reads the topic `a`, without a pause between checkpoints."""
    table = MagicMock(changelog_topic_name="changelog", data=MagicMock(offset_key=b"offset"))
    spec = spec or StageSpec("one", ("a",), (), lambda partition, read, changed: Listing())
    return Checkpoints(app, table, [spec], delivery, AsyncMock(return_value="id"), {}, interval_s=0.0)


def checkpoints_of_two_partitions(**app: bool) -> Checkpoints:
    """Returns checkpoints of two partitions, each with a lane whose last fetch ended at offset 5."""
    found = checkpoints_of(app_of(**app))
    found.lanes = {0: lane(), 1: lane()}
    found.fetched({TP("a", number): End(5, 5, 100.0) for number in found.lanes})
    return found


def lane(*, woken: bool = False, locked: bool = False, full: bool = False) -> MagicMock:
    found = MagicMock(rounds=7)
    found.wake.is_set.return_value, found.lock.locked.return_value, found.full.return_value = woken, locked, full
    return found


async def take_over(app: MagicMock, numbers: Sequence[int]) -> None:
    """Assigns these partitions, as Faust does after a rebalance."""
    places = {TP(topic, number) for topic in ("a", "changelog") for number in numbers}
    await app.tables.on_rebalance(places, set(), places)


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def due(found: Checkpoints) -> dict[str, object]:
    return {duty.name: duty.mark for duty in found.duties() if duty.due}


# Duties


def test_the_only_duty_of_an_idle_partition_is_fetching() -> None:
    assert due(checkpoints_of_two_partitions()) == {
        "partition 0: fetching a": (5, 100.0),
        "partition 1: fetching a": (5, 100.0),
    }


def test_a_partition_that_was_never_fetched_has_the_duty_of_fetching() -> None:
    found = checkpoints_of_two_partitions()
    found.fetched({TP("a", 0): End(5, 5, 100.0)})
    assert due(found)["partition 1: fetching a"] is None


def test_a_full_partition_has_no_duty_of_fetching() -> None:
    found = checkpoints_of_two_partitions()
    found.lanes[1] = lane(full=True)
    assert due(found).keys() == {"partition 0: fetching a"}


@pytest.mark.parametrize("busy", [{"woken": True}, {"locked": True}])
def test_a_checkpoint_is_due_when_records_are_pending_or_a_checkpoint_has_begun(busy: dict[str, bool]) -> None:
    found = checkpoints_of_two_partitions()
    found.lanes[0] = lane(**busy)
    assert due(found)["partition 0: the next checkpoint"] == 7


async def test_each_producer_that_starts_counts_as_progress_of_catching_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def stopped(self: ChangelogRestore, numbers: object, changelog_id: Awaitable[str], inputs: object) -> None:
        await changelog_id
        raise StopRequested

    monkeypatch.setattr(ChangelogRestore, "read", stopped)
    app, deliveries = app_of(ready=False), {0: GatedDelivery(), 1: GatedDelivery()}
    found = checkpoints_of(app, deliveries.__getitem__)
    taking = asyncio.create_task(take_over(app, [0, 1]))
    await turns()
    assert found.state() == {"phase": "catching up", "partitions": [0, 1]}
    ((name, before),) = due(found).items()
    assert name == "catching up (partition 0, partition 1)"
    deliveries[0].may_start.set()
    await turns()
    assert due(found)[name] != before

    deliveries[1].may_start.set()
    await taking
    assert found.state() == {"phase": "joining", "partitions": []}


def test_joining_the_group_is_a_duty() -> None:
    assert due(checkpoints_of(app_of(ready=False))).keys() == {"joining (no partition yet)"}


def test_a_worker_without_partitions_is_ready_and_has_no_duties() -> None:
    found = checkpoints_of(app_of())
    assert found.state() == {"phase": "ready", "partitions": []}
    assert due(found) == {}


@pytest.mark.parametrize(
    ("given", "phase"),
    [
        ({"ready": True}, "ready"),
        ({"ready": True, "rebalancing": True}, "joining"),
        ({"ready": False}, "joining"),
        ({"ready": False, "started": False}, "starting"),
    ],
)
def test_the_phase_follows_the_group(given: dict[str, bool], phase: str) -> None:
    assert checkpoints_of(app_of(**given)).phase == phase


def test_a_worker_that_gives_up_or_stops_has_the_phase_stopping_and_no_duties() -> None:
    app = app_of()
    given_up, stopped = checkpoints_of_two_partitions(), checkpoints_of(app)
    given_up.problems.append("the worker stops after ProducerFenced; its log contains the details")
    app.should_stop = True
    assert [(each.phase, due(each)) for each in (given_up, stopped)] == [("stopping", {})] * 2


# Records, and the last checkpoint


async def owning(
    app: MagicMock,
    deliveries: Mapping[int, GatedDelivery],
    monkeypatch: pytest.MonkeyPatch,
    spec: StageSpec | None = None,
) -> tuple[Checkpoints, dict[int, Lane]]:
    """Returns checkpoints and lanes of assigned partitions that are read to their end."""

    async def read(
        self: ChangelogRestore, numbers: Sequence[int], changelog_id: Awaitable[str], inputs: Collection[str]
    ) -> dict[Any, int]:
        await changelog_id
        return {TopicPartition(topic, number): 0 for topic in inputs for number in numbers}

    monkeypatch.setattr(ChangelogRestore, "read", read)
    for delivery in deliveries.values():
        delivery.may_start.set()
    checkpoints = checkpoints_of(app, deliveries.__getitem__, spec)
    await take_over(app, sorted(deliveries))
    lanes = dict(checkpoints.lanes)
    for one in lanes.values():
        one.pending_seeks()
        one.fetched(ends(one), 100.0)
    return checkpoints, lanes


async def test_a_lane_observes_the_clock_before_it_takes_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints, lanes = await owning(app_of(), {0: GatedDelivery()}, monkeypatch)
    stage = lanes[0].stages["one"]
    assert isinstance(stage, Listing)
    stage.ticks.clear()

    await checkpoints.take(TP("a", 0), records("a", 1))

    assert [behind for _, behind in stage.ticks] == [["a"]]


async def test_a_revoked_partition_begins_no_checkpoint_after_its_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sends = {0: GatedDelivery(), 1: GatedDelivery()}
    checkpoints, lanes = await owning(app_of(), sends, monkeypatch)
    for number in lanes:
        await checkpoints.take(TP("a", number), records("a", 1))
    await turns()
    assert [each.begun for each in sends.values()] == [1, 1]

    await checkpoints.take(TP("a", 1), records("a", 1, first=1))
    revoked = asyncio.create_task(checkpoints.revoke())
    sends[1].may_send.set()
    for more in range(2, 200):
        await checkpoints.take(TP("a", 1), records("a", 1, first=more))
        await asyncio.sleep(0)
    assert (sends[1].begun, revoked.done()) == (2, False)  # the checkpoint in progress, and the last checkpoint

    sends[0].may_send.set()
    await revoked
    assert all(each.begun == each.ended > 0 for each in sends.values())
    assert all(lane.dead for lane in lanes.values())
    assert checkpoints.lanes == {}
