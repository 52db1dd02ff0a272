"""Tests which partitions a checkpoint contains, and what happens to the others."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import AsyncMock

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import ProducerFenced
from faust.types import TP
from tests.unit.streams.worker.runtime.test_checkpoint import app_of, owning, turns
from tests.unit.streams.worker.runtime.test_lane import Listing, records
from tests.unit.streams.worker.runtime.test_stage_failures import Kept

from traceweir.streams.base.clock import seconds_now
from traceweir.streams.base.stages.base import Cut, End, Output, StageSpec
from traceweir.streams.testing import Message
from traceweir.streams.worker.kafka.partition_table import PartitionTable
from traceweir.streams.worker.runtime.batches import RowsByPlace
from traceweir.streams.worker.runtime.checkpoint import Checkpoints
from traceweir.streams.worker.runtime.checkpoint_rows import OFFSETS
from traceweir.streams.worker.runtime.cluster_clock import ClocksApartError
from traceweir.streams.worker.runtime.lane import Lane


class Breaking(Listing):
    """A stage that cannot tell its changes."""

    def cut(self) -> Cut:
        if self.applied:
            raise KeyError("nobody expected this")
        return super().cut()


async def three(
    monkeypatch: pytest.MonkeyPatch, kinds: Sequence[type[Listing]] = (Listing, Listing, Listing)
) -> tuple[Checkpoints, dict[int, Lane], Kept]:
    """Returns checkpoints of three partitions, each with a stage of its kind, and what they send."""
    delivery = Kept()
    spec = StageSpec("one", ("a",), (), lambda partition, read, changed: kinds[partition]())
    app = app_of()
    app.crash = AsyncMock()
    checkpoints, lanes = await owning(app, delivery, monkeypatch, spec, partitions=3)
    return checkpoints, lanes, delivery


def offsets(sent: RowsByPlace) -> dict[int, int]:
    """Returns the offset of the input by partition."""
    return {place.partition: json.loads(dict(rows)[OFFSETS] or b"")["a"] for place, rows in sent.items()}


async def test_partitions_that_are_due_at_the_same_time_have_one_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints, lanes, delivery = await three(monkeypatch)
    for number in (0, 2):
        await checkpoints.take(TP("a", number), records("a", *range(1, 2 + number)))
    await turns()
    assert [offsets(sent) for sent in delivery.sent] == [{0: 1, 2: 3}]
    assert checkpoints.lanes == lanes


async def test_a_comparison_of_the_clocks_holds_no_lock_and_comes_after_the_measured_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoints, _, delivery = await three(monkeypatch)
    owner, began, may_end = checkpoints.rounds.ownership, asyncio.Event(), asyncio.Event()

    async def compare(ends: Mapping[TopicPartition, int], since: float) -> None:
        assert not checkpoints.rounds.lock.locked()
        began.set()
        await may_end.wait()

    monkeypatch.setattr(owner, "compare_clocks", compare)
    finished: list[int] = []
    checkpoints.rounds.finished = lambda: finished.append(len(delivery.sent))
    await checkpoints.take(TP("a", 0), records("a", 1))
    await began.wait()
    assert finished == [1]
    assert len(delivery.sent) == 1
    await checkpoints.take(TP("a", 1), records("a", 1))
    await checkpoints.revoke()
    assert len(delivery.sent) == 2


async def test_clocks_that_are_apart_end_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints, _, _ = await three(monkeypatch)
    compare = AsyncMock(side_effect=ClocksApartError("60 s"))
    monkeypatch.setattr(checkpoints.rounds.ownership, "compare_clocks", compare)
    await checkpoints.take(TP("a", 0), records("a", 1))
    await turns()
    assert checkpoints.problems == ["the worker stops after ClocksApartError; its log contains the details"]


@pytest.mark.parametrize(("ahead_s", "stays"), [(100, True), (200, False)])
async def test_a_clock_that_has_gone_back_lets_the_worker_take_its_partitions_over_again(
    ahead_s: int, stays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints, lanes, _ = await three(monkeypatch)
    stage: Any = lanes[1].stages["one"]
    stage.watermark_ms = int((seconds_now() + ahead_s) * 1000)
    await checkpoints.take(TP("a", 0), records("a", 1))
    await turns()
    assert (checkpoints.lanes, checkpoints.problems) == (lanes if stays else {}, [])
    assert all(lane.dead is not stays for lane in lanes.values())


async def test_each_partition_gets_its_own_rows_with_its_own_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints, _, delivery = await three(monkeypatch)
    written: dict[int, int] = {}
    monkeypatch.setattr(
        PartitionTable, "write", lambda self, partition, rows, offset, *_: written.update({partition: offset})
    )

    async def send(rows: RowsByPlace, *others: object) -> Mapping[TopicPartition, int]:
        return {place: 100 + place.partition for place in rows}

    monkeypatch.setattr(delivery, "send", send)
    for number in (0, 1):
        await checkpoints.take(TP("a", number), records("a", 1))
    await turns()
    assert written == {0: 100, 1: 101}


async def test_a_partition_whose_stage_raises_is_left_out_and_the_others_are_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoints, lanes, delivery = await three(monkeypatch, (Listing, Breaking, Listing))
    counted: list[Mapping[str, int]] = []

    def note(counts: Mapping[str, int], outputs: Sequence[Output]) -> None:
        counted.append(counts)

    checkpoints.rounds.committed = (note,)
    for number in lanes:
        await checkpoints.take(TP("a", number), records("a", 1))
    await turns()
    assert offsets(delivery.sent[0]) == {0: 1, 2: 1}
    assert counted == [{"read.a": 1}] * 2
    assert (lanes[1].dead, checkpoints.lanes[1].dead) == (True, False)
    assert checkpoints.problems == []


async def test_a_last_checkpoint_names_the_partition_that_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints, lanes, delivery = await three(monkeypatch, (Listing, Breaking, Listing))
    for number in lanes:
        await checkpoints.take(TP("a", number), records("a", 1))
    await checkpoints.revoke()
    assert offsets(delivery.sent[0]) == {0: 1, 2: 1}
    assert checkpoints.rounds.not_committed == [1]
    assert checkpoints.lanes == {}


class Handing(Kept):
    """A delivery whose second topic begins at the offset 7, and which asks once for what follows."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[object] = []

    async def send(self, rows: RowsByPlace, *others: Any) -> dict[TopicPartition, int]:
        *_, further = others
        self.asked.append(further)
        more = await further({TopicPartition("b", 0): 7}) if further is not None else None
        ends = await super().send(rows)
        return ends | dict.fromkeys(more.rows, 5) if more is not None else ends


class Forwarding(Listing):
    """A stage with one row and one output for each record."""

    def cut(self) -> Cut:
        taken, self.applied = self.applied, []
        outputs = [Output("b" if topic == "a" else "c", 0, b"k", b"v") for topic, _ in taken]
        return super().cut()._replace(outputs=outputs, rows=[(b"last", b"%d" % len(taken))] if taken else [])


async def handing(monkeypatch: pytest.MonkeyPatch) -> tuple[Checkpoints, Handing, dict[str, object]]:
    """Returns checkpoints of a partition whose stage `two` reads what its stage `one` writes, and the rows as written."""
    written: dict[str, object] = {}

    def write(
        self: PartitionTable, partition: int, rows: Sequence[tuple[bytes, bytes]], offset: int, *others: object
    ) -> None:
        written.update({key.decode(): offset for key, _ in rows})

    monkeypatch.setattr(PartitionTable, "write", write)
    delivery, app = Handing(), app_of()
    app.crash = AsyncMock()
    specs = [
        StageSpec(name, (source,), (), lambda *args: Forwarding()) for name, source in (("one", "a"), ("two", "b"))
    ]
    checkpoints, lanes = await owning(app, delivery, monkeypatch, *specs)
    lanes[0].has_gap_before("b", 0)
    lanes[0].fetched({TP("b", 0): End(7, 7, 100.0)}, 100.0)
    return checkpoints, delivery, written


async def test_the_table_gets_the_rows_of_all_parts_with_the_offset_of_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoints, _, written = await handing(monkeypatch)
    counted = Counter[str]()
    checkpoints.rounds.committed = (lambda counts, outputs: counted.update(counts),)
    await checkpoints.take(TP("a", 0), records("a", 1))
    await turns()
    lane = checkpoints.lanes[0]
    assert (written["one/last"], written["two/last"]) == (5, 5)
    assert (counted, lane.offsets.committed) == ({"read.a": 1, "read.b": 1}, {"a": 1, "b": 8})
    assert not lane.in_checkpoint
    assert checkpoints.problems == []


async def test_a_last_checkpoint_hands_nothing_over(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints, delivery, written = await handing(monkeypatch)
    await checkpoints.take(TP("a", 0), records("a", 1))
    await checkpoints.revoke()
    assert delivery.asked == [None]
    assert "two/last" not in written


class Wide(Listing):
    """A stage with a row of 12 MB for each batch."""

    def cut(self) -> Cut:
        taken, self.applied = self.applied, []
        return super().cut()._replace(rows=[(b"%d" % number, b"x" * 12_000_000) for number in range(len(taken))])


def size(sent: RowsByPlace) -> int:
    return sum(len(value or b"") for rows in sent.values() for _, value in rows)


async def test_partitions_that_do_not_fit_a_transaction_come_with_the_next_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoints, lanes, delivery = await three(monkeypatch, (Wide, Wide, Wide))
    for number in lanes:
        await checkpoints.take(TP("a", number), [*records("a", 1), *wide("a", 2)])
    await turns()
    assert [offsets(sent) for sent in delivery.sent] == [{number: 2} for number in lanes]
    assert max(map(size, delivery.sent)) < 12_001_000


async def test_a_last_checkpoint_has_as_many_transactions_as_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints, lanes, delivery = await three(monkeypatch, (Wide, Wide, Wide))
    for number in lanes:
        await checkpoints.take(TP("a", number), [*records("a", 1), *wide("a", 2)])
    await checkpoints.revoke()
    assert [offsets(sent) for sent in delivery.sent] == [{number: 2} for number in lanes]
    assert (checkpoints.lanes, checkpoints.rounds.not_committed) == ({}, [])


async def test_a_last_checkpoint_that_fails_is_not_tried_with_other_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints, lanes, delivery = await three(monkeypatch, (Wide, Wide, Wide))
    send = AsyncMock(side_effect=ProducerFenced("fenced"))
    monkeypatch.setattr(delivery, "send", send)
    for number in lanes:
        await checkpoints.take(TP("a", number), [*records("a", 1), *wide("a", 2)])
    await checkpoints.revoke()
    assert send.await_count == 1
    assert (checkpoints.lanes, checkpoints.problems) == ({}, [])


async def test_the_consumer_stops_when_all_partitions_together_have_the_bytes_of_a_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoints, lanes, _ = await three(monkeypatch)
    checkpoints.rounds.end()
    found = []
    for number in lanes:
        found.append([checkpoints.full(TP("a", each)) for each in lanes])
        await checkpoints.take(TP("a", number), wide("a", 1))
    found.append([checkpoints.full(TP("a", each)) for each in lanes])
    assert found == [[False] * 3, [False] * 3, [False] * 3, [True] * 3]


def wide(topic: str, *numbers: int) -> list[Message]:
    """Returns records of 5 MB."""
    return [Message(topic, 0, number - 1, 1, b"key", b"x" * 5_000_000) for number in numbers]
