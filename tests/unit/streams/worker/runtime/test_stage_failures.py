"""Tests what checkpoints do after a stage has raised."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar
from unittest.mock import AsyncMock

import pytest
from aiokafka import TopicPartition
from faust.types import TP
from tests.unit.streams.worker.runtime.test_checkpoint import GatedDelivery, app_of, owning, turns
from tests.unit.streams.worker.runtime.test_lane import Listing, ends, records

from traceweir.streams.base.stages.base import Record, StageSpec
from traceweir.streams.base.stages.errors import RecordRejected, SessionFailed
from traceweir.streams.worker.runtime import checkpoint
from traceweir.streams.worker.runtime.batches import RowsByPlace
from traceweir.streams.worker.runtime.checkpoint import Checkpoints
from traceweir.streams.worker.runtime.checkpoint_rows import OFFSETS


class Raising(Listing):
    """A stage that raises on the record with a chosen offset, or in a tick."""

    def __init__(self, offset: int | None = None, *, in_tick: bool = False) -> None:
        super().__init__()
        self.offset, self.in_tick = offset, in_tick

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        super().apply(topic, records)
        if self.offset in [record.offset for record in records]:
            raise KeyError("nobody expected this")

    def tick(self, now: float, behind: Collection[str]) -> None:
        if self.in_tick and self.applied:
            raise KeyError("nobody expected this")
        super().tick(now, behind)


L = TypeVar("L", bound=Listing)


class Kept(GatedDelivery):
    """A delivery that keeps what it sends."""

    def __init__(self) -> None:
        super().__init__()
        self.may_start.set()
        self.may_send.set()
        self.sent: list[Any] = []

    async def send(self, rows: RowsByPlace, *others: object) -> dict[TopicPartition, int]:
        self.sent.append(rows)
        return await super().send(rows, *others)

    @property
    def rows(self) -> list[dict[bytes, Any]]:
        """The rows of partition 0 in each checkpoint."""
        return [dict(rows[TopicPartition("changelog", 0)]) for rows in self.sent]


async def owning_one(new: Callable[[], L], monkeypatch: pytest.MonkeyPatch) -> tuple[Checkpoints, Kept, list[L]]:
    """Checkpoints that own partition 0, their delivery, and the stages that they build there."""
    built: list[L] = []

    def build(partition: int, read: object, changed: object) -> L:
        built.append(new())
        return built[-1]

    app, delivery = app_of(), Kept()
    app.crash = AsyncMock()
    found, _ = await owning(app, delivery, monkeypatch, StageSpec("one", ("a",), (), build))
    return found, delivery, built


async def test_the_record_on_which_a_stage_raises_is_rejected_and_its_neighbours_are_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, delivery, built = await owning_one(lambda: Raising(2), monkeypatch)
    log = records("a", 1, 2, 3, 4, 5)
    for _ in range(40):  # fetches; a checkpoint ends between two of them
        lane = found.lanes[0]
        if unread := log[lane.position["a"] :]:
            await found.take(TP("a", 0), unread)
        found.fetched(ends(found.lanes[0]))
        await turns()

    assert [stage.dropped for stage in built] == [True, True, True, False]
    assert [offset for _, offset, _ in built[-1].rejected] == [2]
    assert [times for _, times in built[-1].applied] == [[1], [2], [4], [5]]
    assert found.problems == []
    assert [json.loads(rows[OFFSETS])["a"] for rows in delivery.rows][-3:] == [3, 4, 5]


async def test_a_stage_that_raises_in_a_tick_ends_the_worker_and_commits_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, delivery, built = await owning_one(lambda: Raising(in_tick=True), monkeypatch)
    seconds = itertools.count(1_000.0)
    monkeypatch.setattr(checkpoint, "seconds_now", lambda: next(seconds))
    lane = found.lanes[0]
    await found.take(TP("a", 0), records("a", 1, 2, 3))
    found.fetched(ends(lane))
    assert lane.dead
    await turns()

    assert found.lanes == {}
    assert built[-1].dropped
    assert delivery.sent == []
    assert found.phase == "stopping"


class Closing(Listing):
    """A stage that cannot close a session once it has taken records, until the session is set aside."""

    def __init__(self) -> None:
        super().__init__()
        self.aside: list[tuple[bytes, str]] = []
        self.counters: Counter[str] = Counter()

    def tick(self, now: float, behind: Collection[str]) -> None:
        if self.applied and not self.aside:
            raise SessionFailed(b"bad", KeyError("nobody expected this"))
        super().tick(now, behind)

    def set_aside(self, session: bytes, why: RecordRejected) -> None:
        self.aside.append((session, why.detail))
        self.counters[f"dead_lettered.{why.reason}"] += 1


async def test_a_session_on_which_a_tick_raises_is_set_aside_and_nothing_is_committed_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, delivery, built = await owning_one(Closing, monkeypatch)
    seconds = itertools.count(1_000.0)
    monkeypatch.setattr(checkpoint, "seconds_now", lambda: next(seconds))
    counted: Counter[str] = Counter()
    found.rounds.committed = (lambda counts, _: counted.update(counts),)
    log = records("a", 1, 2, 3)
    for _ in range(10):  # fetches; a checkpoint ends between two of them
        if unread := log[found.lanes[0].position["a"] :]:
            await found.take(TP("a", 0), unread)
        found.fetched(ends(found.lanes[0]))
        await turns()

    assert [stage.aside for stage in built] == [
        [],
        [],
        [],
        [(b"bad", "the stage one raised KeyError: 'nobody expected this'")],
    ]
    assert found.problems == []
    assert [json.loads(rows[OFFSETS])["a"] for rows in delivery.rows] == [1, 2, 3]
    # Each record counts once, although the lane was built again.
    assert counted == {"read.a": 3, "one.dead_lettered.poison": 1}


async def isolating_during_a_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Checkpoints, Kept, list[Raising], asyncio.Task[None]]:
    """Returns checkpoints of which one is being sent, and the task in which the stage has raised on the next record."""
    found, delivery, built = await owning_one(lambda: Raising(1), monkeypatch)
    delivery.may_send.clear()
    await found.take(TP("a", 0), records("a", 1))
    await turns()
    assert delivery.begun == 1
    isolating = asyncio.create_task(found.take(TP("a", 0), records("a", 2, first=1)))
    await turns()
    return found, delivery, built, isolating


async def test_a_lane_that_is_isolated_waits_for_the_checkpoint_that_is_on_its_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, delivery, built, isolating = await isolating_during_a_checkpoint(monkeypatch)
    assert (len(built), delivery.ended) == (1, 0)

    delivery.may_send.set()
    await isolating
    assert (len(built), delivery.ended) == (2, 1)


async def test_a_partition_that_is_being_revoked_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found, delivery, built, isolating = await isolating_during_a_checkpoint(monkeypatch)
    revoking = asyncio.create_task(found.revoke())
    await turns()

    delivery.may_send.set()
    await asyncio.gather(isolating, revoking)
    assert len(built) == 1
    assert found.lanes == {}
    assert delivery.ended == 1


async def test_a_cancelled_fetch_leaves_no_dead_lane_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    found, delivery, built, isolating = await isolating_during_a_checkpoint(monkeypatch)
    isolating.cancel()
    delivery.may_send.set()
    await turns()

    assert len(built) == 2
    assert not found.lanes[0].dead
